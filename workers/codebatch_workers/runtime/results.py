"""Results of a unit, item by item, before they are encoded."""

from __future__ import annotations

import msgspec

from codebatch.model.entry import Entry
from codebatch.model.record import FailureReason, Record
from codebatch.model.record_counts import RecordCounts


class TaskFailure(msgspec.Struct, frozen=True, kw_only=True):
    """The failure of a task on one item. `evidence` is an error message or a traceback."""

    reason: FailureReason
    evidence: str


class ReusedRecords(msgspec.Struct, frozen=True):
    """Record lines of an item from an older batch, to be committed unchanged."""

    lines: bytes


class EncodedRecords(msgspec.Struct, frozen=True):
    """The records of one item, their encoded lines, and their types."""

    lines: bytes
    records: list[Record]
    types: list[type[Record]]


NO_RECORDS = EncodedRecords(b"", [], [])

TaskResult = list[Record] | TaskFailure


class UnitResults(msgspec.Struct, kw_only=True):
    """The results of the finished items [start, end) of a unit. For each task, there is one result per item.

    `reused_counts` has two values for each task: the number of its reused results, and the sum of their counts.
    """

    start: int
    items: list[Entry] = msgspec.field(default_factory=list)
    results: dict[str, list[TaskResult | ReusedRecords]] = msgspec.field(default_factory=dict)
    reused_counts: dict[str, tuple[int, RecordCounts]] = msgspec.field(default_factory=dict)

    @property
    def end(self) -> int:
        """The number of the item after the last finished item."""
        return self.start + len(self.items)
