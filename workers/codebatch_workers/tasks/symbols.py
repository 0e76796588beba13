"""symbols: the definitions of a file, then its imports, inheritance and calls, each by position (outline.py).

In languages that make names of other files visible without an import, the names that the file uses follow.
"""

from __future__ import annotations

from codebatch.model.record import Record
from codebatch.model.task import NoConfig
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.symbols.outline import file_outline
from codebatch_workers.symbols.used_names import used_names
from codebatch_workers.syntax.source import SourceFile


def create(_environment: TaskEnvironment[NoConfig]) -> SymbolsTask:
    """Return the task. It has no configuration."""
    return SymbolsTask()


class SymbolsTask:
    """The task: `symbol` records by position, then `edge` records by position, then at most one `names` record."""

    def run_file(self, file: SourceFile) -> list[Record]:
        """Return the symbols and edges of a file.

        A file without a tree has none, except for macros of a huge header in C or C++.
        """
        outline = file_outline(file)
        names = used_names(file, outline)
        return [*outline.symbols, *outline.edges, *([] if names is None else [names])]
