"""symbols: what a file defines, then what it imports, inherits and calls, each by position. Rules: outline.py."""

from __future__ import annotations

from codebatch.model.record import Record
from codebatch.model.task import NoConfig
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.symbols.outline import outline
from codebatch_workers.syntax.source import SourceFile


def create(_environment: TaskEnvironment[NoConfig]) -> Symbols:
    """The task; it has no configuration."""
    return Symbols()


class Symbols:
    """`symbol` records by position, then `edge` records by position."""

    def run_file(self, file: SourceFile) -> list[Record]:
        """The records of one file; none where there is no tree."""
        found = outline(file)
        return [*found.symbols, *found.edges]
