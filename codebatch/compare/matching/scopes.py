"""The scope of a line: the innermost symbol that encloses the line and can contain statements."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from codebatch.compare.batches import read_items
from codebatch.model.record import Symbol, SymbolType
from codebatch.query.sources.records import BatchRecords

_SYMBOLS_TASK = "symbols"

# Symbol types that are not scopes, because they contain no statements. A variable encloses only its own assignment.
_SYMBOL_TYPES_WITHOUT_STATEMENTS: frozenset[SymbolType] = frozenset(
    ("constant", "enum_member", "field", "import", "parameter", "type", "variable")
)


class _DefinitionLines(NamedTuple):
    """The lines of a definition. `begins` is the negative first line, `last` the last line.

    Of the definitions that enclose a line, the innermost compares as the least: it begins last or, of several that
    begin there, ends first.
    """

    begins: int
    last: int
    qualified: str


class FileScopes:
    """The scope of each line of a file."""

    def __init__(self, symbols: Iterable[Symbol]) -> None:
        spans = sorted(
            (
                _DefinitionLines(
                    -symbol.line, max(symbol.end_line - (symbol.end_column == 1), symbol.line), symbol.qualified
                )
                for symbol in symbols
                if symbol.symbol_type not in _SYMBOL_TYPES_WITHOUT_STATEMENTS
            ),
            reverse=True,
        )
        self._lines: list[int] = []
        """The lines from which another symbol is the innermost one.

        `_around[i]` is the name of this symbol from `_lines[i]` on, or an empty text outside of symbols.
        """
        self._definitions_by_line: list[str] = []
        within: list[_DefinitionLines] = []
        waiting = iter(spans)
        next_span = next(waiting, None)
        for line in sorted({*(-span.begins for span in spans), *(span.last + 1 for span in spans)}):
            while next_span is not None and -next_span.begins == line:
                heappush(within, next_span)
                next_span = next(waiting, None)
            while within and within[0].last < line:
                heappop(within)
            self._lines.append(line)
            self._definitions_by_line.append(within[0].qualified if within else "")

    def scope_at(self, line: int) -> str:
        """Return the qualified name of the innermost symbol around a line, or an empty text."""
        index = bisect_right(self._lines, line)
        return self._definitions_by_line[index - 1] if index else ""


NO_SCOPES = FileScopes(())


def have_scopes(*batches: BatchRecords) -> bool:
    """Return whether all batches have symbols.

    If one batch has none, scopes are not compared, because its findings would have no scope.
    """
    return all(_SYMBOLS_TASK in records.task_names for records in batches)


def read_scopes(records: BatchRecords, paths: Iterable[bytes]) -> dict[bytes, FileScopes]:
    """Return the scopes of some files. Raises StoreCorrupt."""
    items = records.find_items(sorted(paths)).values()
    return {path: FileScopes(symbols) for path, symbols in read_items(records, _SYMBOLS_TASK, items, Symbol).items()}
