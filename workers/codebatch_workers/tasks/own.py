"""A task of the project's own: a function, run as a task (codebatch/system/own_tasks.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

import msgspec

from codebatch.model.record import RECORD_TYPES, Record
from codebatch_workers.source import SourceFile


class FunctionTask:
    """Calls a function for each file; what it gives must be records."""

    def __init__(self, function: Callable[..., object], config: msgspec.Struct | None) -> None:
        self._function = function
        self._arguments = () if config is None else (config,)

    def run(self, file: SourceFile) -> list[Record]:
        """The records of one file, in the order in which they are given."""
        given = list(cast("Iterable[object]", self._function(file, *self._arguments) or ()))
        for each in given:
            if type(each) not in RECORD_TYPES:
                raise TypeError(f"a task gives records, not {type(each).__name__}")
        return cast("list[Record]", given)
