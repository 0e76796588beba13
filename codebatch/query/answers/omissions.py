"""Summaries of omissions: parts of the output of programs that are in no finding of a batch."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from codebatch.model.record import Omission, OmittedPart
from codebatch.model.task import BUILT_IN_TASKS
from codebatch.model.text.quantities import count_text
from codebatch.query.fields import as_typed_record
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.sources.records import BatchRecords

_OMISSIONS = RecordFilter(kinds=("omission",))


class OmissionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The omissions of one task and part: their number, and a sample."""

    task: str
    part: OmittedPart
    count: int
    sample: str

    @property
    def text(self) -> str:
        """A sentence for people."""
        match self.part:
            case "lines":
                lines = count_text(self.count, "line")
                return f"{lines} of the output of {self.task} may report problems, but cannot be read: {self.sample}"
            case "findings":
                findings = count_text(self.count, "finding")
                return (
                    f"{findings} of {self.task} left out: not at a place in a file of the call, such as {self.sample}"
                )
            case "values":
                values = count_text(self.count, "value")
                return f"{values} of {self.task} unknown, so findings have a default instead, such as {self.sample}"


def read_omissions(records: BatchRecords, tasks: Iterable[str]) -> tuple[OmissionSummary, ...]:
    """Return the omissions of some tasks. Records are read only if a task has any. Raises StoreCorrupt."""
    summaries: dict[tuple[str, OmittedPart], OmissionSummary] = {}
    for task in (task for task in tasks if task not in BUILT_IN_TASKS):
        for record in records.iter_records(task, _OMISSIONS, is_auxiliary=True):
            found = as_typed_record(record, Omission)
            known = summaries.get((task, found.part))
            count = found.count + (known.count if known else 0)
            sample = known.sample if known else found.sample
            summaries[task, found.part] = OmissionSummary(task=task, part=found.part, count=count, sample=sample)
    return tuple(summaries.values())


def omission_notes(records: BatchRecords, tasks: Iterable[str]) -> tuple[str, ...] | None:
    """Return a note for people about each part of the output that is in no finding of some tasks.

    Return None if there is none.
    """
    return tuple(summary.text for summary in read_omissions(records, tasks)) or None
