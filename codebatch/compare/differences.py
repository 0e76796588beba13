"""Changes between two batches.

There is a change for each finding, metric, symbol, edge, duplicate group or file that differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from codebatch.compare.matching.findings import MatchingPass
from codebatch.compare.states import ChangeState
from codebatch.model.record import BaseRecord, Diagnostic, Duplicate, Edge, Metric, Record, Symbol


class TreeFile(BaseRecord, frozen=True, kw_only=True, tag="file"):
    """A file of a snapshot as a record. It needs no analysis. `object` is the digest of its content."""

    size: int
    executable: bool
    object: str


ComparedRecord = Record | TreeFile


class Change(NamedTuple):
    """A difference between a record in an older batch and the matching record in a newer batch.

    - `state`: the kind of change, such as `new`, `fixed` or `moved`.
    - `old`, `new`: the record in the older and in the newer batch, or None if the batch has no such record.
    - `by`: how a finding in one batch was matched with a finding in the other batch, or None.
    - `reason`: why the finding is suppressed or cannot be compared, or None.

    Duplicates are compared by group. `old` and `new` are then the first records of a group. If a group was split or
    several groups were joined, several changes have the same record.

    Example:

        for change in store.batch("latest").compare("latest~1").differences(("new",)):
            print(change.new.path, change.new.line, change.new.message)
    """

    state: ChangeState
    old: ComparedRecord | None
    new: ComparedRecord | None
    by: MatchingPass | None = None
    reason: str | None = None

    @property
    def record(self) -> ComparedRecord:
        """The record in the newer batch or, if that batch has none, in the older batch."""
        record = self.new or self.old
        assert record is not None, "it is in one of the two"
        return record


ChangeSortKey = tuple[str, bytes, int, int, tuple[str, ...]]


def change_sort_key(change: Change) -> ChangeSortKey:
    """Return the sort key of a change: kind, path, line, column, then names that differ at one location."""
    record = change.record
    names: tuple[str, ...]
    match record:
        case Diagnostic():
            return "diagnostic", record.path_bytes, record.line, record.column, (record.code, record.message)
        case Metric():
            names = record.symbol, record.metric
        case Symbol():
            names = record.symbol_type, record.qualified
        case Edge():
            names = record.edge_type, record.source, record.target
        case Duplicate():
            names = (record.group,)
        case _:
            names = ()
    kind = str(record.__struct_config__.tag)
    return kind, record.path_bytes, getattr(record, "line", 0), getattr(record, "column", 0), names


# The number of changes in each state, including `unchanged`.
StateCounts = Mapping[ChangeState, int]
