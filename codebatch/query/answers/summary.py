"""Counts of the records of a batch, from stored counts. Records are read only for the worst findings."""

from __future__ import annotations

import itertools

import msgspec

from codebatch.model.record import SEVERITIES
from codebatch.model.record_counts import RecordCounts, add_counts
from codebatch.query.answers.language_lines import LanguageLines
from codebatch.query.filters.filters import JsonRecord, RecordFilter
from codebatch.query.sources.records import BatchRecords


class TaskSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of records of a task."""

    outputs_by_kind: dict[str, int]
    diagnostics_by_severity: dict[str, int]
    total_outputs: int


class SummaryTotals(msgspec.Struct, frozen=True, kw_only=True):
    """The total numbers of records and of findings. Errors and warnings are also counted separately."""

    outputs: int
    diagnostics: int
    errors: int
    warnings: int


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of a batch.

    `languages` maps each language to its number of files. `lines` maps each language to its line counts. `lines` is
    None if lines were not counted.
    """

    batch_id: str
    snapshot_id: str
    pipeline: str
    files: int
    tasks: dict[str, TaskSummary]
    kinds: dict[str, int]
    severities: dict[str, int]
    codes: dict[str, int]
    languages: dict[str, int]
    totals: SummaryTotals
    lines: dict[str, LanguageLines] | None = None

    @property
    def records(self) -> int:
        """The number of all records."""
        return self.totals.outputs

    @property
    def failures(self) -> int:
        """The number of failures. Each failure is one task that failed for one file."""
        return self.kinds.get("failure", 0)


def summarise(records: BatchRecords, task: str | None = None) -> Summary:
    """Return the counts of a batch, for one task or for all tasks."""
    by_task: dict[str, RecordCounts] = {name: records.counts(name) for name in records.choose_tasks(task)}
    total = add_counts(by_task.values())
    return Summary(
        batch_id=records.batch.id,
        snapshot_id=records.batch.about.snapshot_id,
        pipeline=records.batch.about.pipeline,
        files=records.batch.about.items,
        tasks={
            name: TaskSummary(
                outputs_by_kind=counts.kinds,
                diagnostics_by_severity=counts.severities,
                total_outputs=counts.records,
            )
            for name, counts in by_task.items()
        },
        kinds=total.kinds,
        severities=total.severities,
        codes=total.codes,
        languages=total.languages,
        totals=SummaryTotals(
            outputs=sum(total.kinds.values()),
            diagnostics=total.kinds.get("diagnostic", 0),
            errors=total.severities.get("error", 0),
            warnings=total.severities.get("warning", 0),
        ),
    )


def worst_findings(records: BatchRecords, limit: int) -> list[JsonRecord]:
    """Return at most `limit` diagnostics, most severe first. Those of one severity are sorted by path, then by task."""
    findings: list[JsonRecord] = []
    for severity in SEVERITIES:
        if len(findings) >= limit:
            break
        record_filter = RecordFilter(kinds=("diagnostic",), severities=(severity,))
        findings += itertools.islice(records.iter_by_path(records.task_names, record_filter), limit - len(findings))
    return findings


def read_failures(records: BatchRecords, limit: int) -> list[JsonRecord]:
    """Return at most `limit` failures, sorted by task and path.

    If a task failed only because a task that it needs failed, its failure comes last.
    """
    record_filter = RecordFilter(kinds=("failure",))
    records_of_failures = [
        record for task in records.task_names for record in records.iter_records(task, record_filter)
    ]
    return sorted(records_of_failures, key=lambda record: record["reason"] == "needs")[:limit]
