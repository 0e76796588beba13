"""In which definition a line is: the innermost symbol around it that can hold a statement."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from codebatch.compare.batches import read_items
from codebatch.model.record import Symbol, SymbolType
from codebatch.query.sources.records import BatchRecords

_TASK = "symbols"

# What holds no statement but its own: a variable is around what is assigned to it, and goes where that goes.
_NOT_HOLDING: frozenset[SymbolType] = frozenset(
    ("constant", "enum_member", "field", "import", "parameter", "type", "variable")
)


class _DefinitionLines(NamedTuple):
    """Lines [-begins, last] of a definition. The innermost is the least: it begins last, and of several ends first."""

    begins: int
    last: int
    qualified: str


class Scopes:
    """The definitions of a file."""

    def __init__(self, symbols: Iterable[Symbol]) -> None:
        spans = sorted(
            (
                _DefinitionLines(-each.line, max(each.end_line - (each.end_column == 1), each.line), each.qualified)
                for each in symbols
                if each.symbol_type not in _NOT_HOLDING
            ),
            reverse=True,
        )
        self._lines: list[int] = []
        """Where another one is the innermost than in the line before, and which, empty for none, in the same order."""
        self._around: list[str] = []
        within: list[_DefinitionLines] = []
        waiting = iter(spans)
        upcoming = next(waiting, None)
        for line in sorted({*(-span.begins for span in spans), *(span.last + 1 for span in spans)}):
            while upcoming is not None and -upcoming.begins == line:
                heappush(within, upcoming)
                upcoming = next(waiting, None)
            while within and within[0].last < line:
                heappop(within)
            self._lines.append(line)
            self._around.append(within[0].qualified if within else "")

    def at(self, line: int) -> str:
        """The qualified name of what is around a line; empty where nothing is."""
        place = bisect_right(self._lines, line)
        return self._around[place - 1] if place else ""


NO_SCOPES = Scopes(())


def have_scopes(*batches: BatchRecords) -> bool:
    """Whether all of some batches tell definitions: else none is asked, for one side alone would tell them apart."""
    return all(_TASK in records.task_names for records in batches)


def read_scopes(records: BatchRecords, paths: Iterable[bytes]) -> dict[bytes, Scopes]:
    """The definitions of some files. Raises StoreCorrupt."""
    items = records.find_items(sorted(paths)).values()
    return {path: Scopes(found) for path, found in read_items(records, _TASK, items, Symbol).items()}
