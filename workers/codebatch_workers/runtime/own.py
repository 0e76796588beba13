"""A task of the project's own: a function, run as a task (codebatch/system/own_tasks.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import msgspec

from codebatch.model.record import Record
from codebatch_workers.syntax.source import SourceFile


class FunctionTask:
    """Calls a function for each file, or for the project. What it gives is not looked at here."""

    def __init__(self, function: Callable[..., object], config: msgspec.Struct | None) -> None:
        self._function = function
        self._arguments = () if config is None else (config,)

    def run(self, file: SourceFile) -> list[Record]:
        """What the function gives."""
        return cast("list[Record]", self._function(file, *self._arguments))
