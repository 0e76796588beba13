"""Results of a unit, item by item, before they are encoded."""

from __future__ import annotations

import msgspec

from codebatch.model.entry import Entry
from codebatch.model.record import FailureReason, Record
from codebatch.model.record_counts import Counts


class TaskFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A failure of a task on an item, and its evidence."""

    reason: FailureReason
    evidence: str


class ReusedRecords(msgspec.Struct, frozen=True):
    """Record lines of an item from an older batch, to be committed unchanged."""

    lines: bytes


class EncodedRecords(msgspec.Struct, frozen=True):
    """The records of one file with their encoded lines and their types."""

    lines: bytes
    records: list[Record]
    types: list[type[Record]]


NOTHING_SAID = EncodedRecords(b"", [], [])

Result = list[Record] | TaskFailure


class UnitResults(msgspec.Struct, kw_only=True):
    """The results of items [start, end) so far: for each task one result per item.

    `kept` has for each task the number of reused results and their total counts.
    """

    start: int
    items: list[Entry] = msgspec.field(default_factory=list)
    results: dict[str, list[Result | ReusedRecords]] = msgspec.field(default_factory=dict)
    kept: dict[str, tuple[int, Counts]] = msgspec.field(default_factory=dict)

    @property
    def end(self) -> int:
        """The item after the last finished item."""
        return self.start + len(self.items)
