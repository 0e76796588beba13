"""A task of the project's own: a function, run as a task (codebatch/system/own_tasks.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import msgspec

from codebatch.model.record import Record
from codebatch_workers.api.project import Project
from codebatch_workers.syntax.source import SourceFile


class _Function:
    def __init__(self, function: Callable[..., object], config: msgspec.Struct | None) -> None:
        self._function = function
        self._arguments = () if config is None else (config,)

    def _call(self, given: object) -> list[Record]:
        """What the function gives. It is not looked at here."""
        return cast("list[Record]", self._function(given, *self._arguments))


class FileFunction(_Function):
    """Calls a function for each file."""

    def run_file(self, file: SourceFile) -> list[Record]:
        """What the function gives."""
        return self._call(file)


class ProjectFunction(_Function):
    """Calls a function for the project."""

    def run_project(self, project: Project) -> list[Record]:
        """What the function gives."""
        return self._call(project)
