"""What comes of a unit, item by item, before it is encoded."""

from __future__ import annotations

import msgspec

from codebatch.model.entry import Entry
from codebatch.model.record import FailureReason, Record
from codebatch.model.record_counts import Counts


class TaskFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A task that could not do an item, and what is known of why."""

    reason: FailureReason
    evidence: str


class ReusedRecords(msgspec.Struct, frozen=True):
    """The record lines that an older batch has of an item: they are taken over as they are."""

    lines: bytes


class EncodedRecords(msgspec.Struct, frozen=True):
    """The lines of some records of one file, these, and their types."""

    lines: bytes
    records: list[Record]
    types: list[type[Record]]


NOTHING_SAID = EncodedRecords(b"", [], [])

Result = list[Record] | TaskFailure


class UnitResults(msgspec.Struct, kw_only=True):
    """What came of items [start, end) so far: for each task one result an item.

    `kept`: of each task how many results are to be Kept in all, and the counts of all of them.
    """

    start: int
    items: list[Entry] = msgspec.field(default_factory=list)
    results: dict[str, list[Result | ReusedRecords]] = msgspec.field(default_factory=dict)
    kept: dict[str, tuple[int, Counts]] = msgspec.field(default_factory=dict)

    @property
    def end(self) -> int:
        """The item after the last one done."""
        return self.start + len(self.items)
