"""The syntax errors that the task `parse` reports, for contents that no snapshot has: those that changes propose."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from codebatch.model.record import Diagnostic
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.lint.python.ruff import RuffRunner
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks.parse import ParseTask

_KNOWN_MAX = 8


class SyntaxErrors:
    """A finder of syntax errors. It remembers the last files."""

    def __init__(self, ruff: RuffRunner, known_max: int = _KNOWN_MAX) -> None:
        """`ruff` must not be the one of other tasks, which keeps the findings of a unit."""
        self._parse = ParseTask(ruff, None)
        self._known_max = known_max
        self._known: dict[tuple[bytes, str, bytes], list[Diagnostic]] = {}

    def find(self, file: SourceFile) -> list[Diagnostic]:
        """Return the syntax errors in a file, by position. Raises RuffError."""
        return self.find_all([file])[0]

    def find_all(self, files: Sequence[SourceFile]) -> list[list[Diagnostic]]:
        """Return the syntax errors in each of some files. One process of ruff checks many files. Raises RuffError."""
        keys = [(file.path, file.language, file.content) for file in files]
        unknown = {key: file for key, file in zip(keys, files, strict=True) if key not in self._known}
        while unknown:
            chosen = list({key[0]: key for key in unknown}.values())  # ruff checks one content of each path.
            new = list(map(unknown.pop, chosen))
            records = self._parse.complete(new, list(map(self._parse.run_file, new)))
            for key, of_file in zip(chosen, records, strict=True):
                self._known[key] = [record for record in of_file if isinstance(record, Diagnostic)]
        errors = [self._known[key] for key in keys]
        for key in list(self._known)[: -self._known_max]:
            del self._known[key]
        return errors


def shared_syntax_errors(environment: TaskEnvironment[msgspec.Struct]) -> SyntaxErrors:
    """Return the instance that all tasks of a process share. The first call creates it."""
    errors = environment.shared.get(__name__)
    if not isinstance(errors, SyntaxErrors):
        errors = environment.shared[__name__] = SyntaxErrors(
            RuffRunner((), environment.scratch, environment.try_memory())
        )
    return errors
