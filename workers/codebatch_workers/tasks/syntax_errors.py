"""The syntax errors that the task `parse` reports, for contents that no snapshot has: those that changes propose."""

from __future__ import annotations

import msgspec

from codebatch.model.record import Diagnostic
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.lint.python.ruff import RuffRunner
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks.parse import ParseTask

_KNOWN_MAX = 8


class SyntaxErrors:
    """A finder of syntax errors. It remembers the last files."""

    def __init__(self, ruff: RuffRunner) -> None:
        """`ruff` must not be the one of other tasks, which keeps the findings of a unit."""
        self._parse = ParseTask(ruff, None)
        self._known: dict[tuple[bytes, str, bytes], list[Diagnostic]] = {}

    def find(self, file: SourceFile) -> list[Diagnostic]:
        """Return the syntax errors in a file, by position. Raises RuffError."""
        key = file.path, file.language, file.content
        if key not in self._known:
            (records,) = self._parse.complete([file], [self._parse.run_file(file)])
            while len(self._known) >= _KNOWN_MAX:
                del self._known[next(iter(self._known))]
            self._known[key] = [record for record in records if isinstance(record, Diagnostic)]
        return self._known[key]


def shared_syntax_errors(environment: TaskEnvironment[msgspec.Struct]) -> SyntaxErrors:
    """Return the instance that all tasks of a process share. The first call creates it."""
    errors = environment.shared.get(__name__)
    if not isinstance(errors, SyntaxErrors):
        errors = environment.shared[__name__] = SyntaxErrors(
            RuffRunner((), environment.scratch, environment.try_memory())
        )
    return errors
