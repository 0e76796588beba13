"""In which definition a line is: the innermost symbol around it that can hold a statement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from codebatch.compare.batches import read_items
from codebatch.model.record import Symbol, SymbolType
from codebatch.query.records import BatchRecords

_TASK = "symbols"

# What holds no statement but its own: a variable is around what is assigned to it, and goes where that goes.
_NOT_HOLDING: frozenset[SymbolType] = frozenset(
    ("constant", "enum_member", "field", "import", "parameter", "type", "variable")
)


class _Span(NamedTuple):
    """Lines [first, last] of a definition."""

    first: int
    last: int
    qualified: str


class Scopes:
    """The definitions of a file."""

    def __init__(self, symbols: Iterable[Symbol]) -> None:
        spans = (
            _Span(each.line, max(each.end_line - (each.end_column == 1), each.line), each.qualified)
            for each in symbols
            if each.symbol_type not in _NOT_HOLDING
        )
        # The innermost first: it begins last, and of those that begin together it ends first.
        self._spans: Sequence[_Span] = sorted(spans, key=lambda span: (-span.first, span.last))

    def at(self, line: int) -> str:
        """The qualified name of what is around a line; empty where nothing is."""
        return next((span.qualified for span in self._spans if span.first <= line <= span.last), "")


NO_SCOPES = Scopes(())


def have_scopes(*batches: BatchRecords) -> bool:
    """Whether all of some batches tell definitions: else none is asked, for one side alone would tell them apart."""
    return all(_TASK in records.task_names for records in batches)


def read_scopes(records: BatchRecords, paths: Iterable[bytes]) -> dict[bytes, Scopes]:
    """The definitions of some files. Raises StoreCorrupt."""
    items = records.find_items(sorted(paths)).values()
    return {path: Scopes(found) for path, found in read_items(records, _TASK, items, Symbol).items()}
