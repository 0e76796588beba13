"""The changes since an older batch, as shown in a report."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from codebatch.compare.differences import Change
from codebatch.compare.states import ChangeState
from codebatch.model.entry import display_path
from codebatch.model.record import SEVERITIES, Diagnostic, Metric
from codebatch.operations.api.batch import Batch
from codebatch.operations.comparison.comparison import Comparison
from codebatch.operations.queries.findings import SEVERITIES_SHOWN
from codebatch.report.contents import ChangedFinding, ChangedFunction, ChangesSince
from codebatch.report.limits import ReportLimits, cut_path, cut_text

_STATES_SHOWN: tuple[ChangeState, ...] = ("severity_raised", "new", "fixed", "severity_lowered")


class ReportComparison:
    """The comparison of a batch with an older batch.

    It is computed once, and can then be shown with different limits. Raises InvalidInput if the batches are not
    comparable. Raises BatchIncomplete if a batch is incomplete, unless both batches were opened with `partial`.
    """

    def __init__(self, batch: Batch, older: Batch) -> None:
        self.findings = batch.compare(older, kind="diagnostic", severity=SEVERITIES_SHOWN)
        self.found = sorted(self.findings.differences(_STATES_SHOWN), key=_change_weight)
        self.changed_functions: list[ChangedFunction] = []
        if "analyze" in batch.tasks and "analyze" in older.tasks:
            metrics = batch.compare(older, kind="metric", metric="cognitive")
            self.changed_functions = sorted(
                _changed_functions(metrics), key=lambda step: (step.before - step.after, step.path, step.line)
            )
        self.batch_file = older.question.batch.about

    @property
    def is_complete(self) -> bool:
        return self.findings.is_complete


def show_since(compared: ReportComparison, limits: ReportLimits) -> ChangesSince:
    """Return the changes within the limits, the most severe first. Raises StoreCorrupt."""
    counts = compared.findings.counts
    return ChangesSince(
        batch_id=compared.batch_file.batch_id,
        made_at=utc_text(compared.batch_file.created_at_ns),
        states={state: count for state, count in counts.items() if count},
        findings=[_change_row(item, limits.text) for item in compared.found[: limits.changed]],
        findings_count=len(compared.found),
        functions=[_cut_names(item, limits.text) for item in compared.changed_functions[: limits.changed]],
        functions_count=len(compared.changed_functions),
    )


def utc_text(ns: int) -> str:
    """Return a time in UTC, to the minute."""
    return f"{datetime.datetime.fromtimestamp(ns // 10**9, datetime.timezone.utc):%Y-%m-%d %H:%M} UTC"


def _change_weight(change: Change) -> tuple[int, int, bytes, int]:
    record = change.new or change.old
    assert isinstance(record, Diagnostic), "it was asked for"
    return _STATES_SHOWN.index(change.state), SEVERITIES.index(record.severity), record.path_bytes, record.line


def _change_row(change: Change, text: int) -> ChangedFinding:
    record = change.new or change.old
    assert isinstance(record, Diagnostic), "it was asked for"
    return ChangedFinding(
        state=change.state,
        severity=record.severity,
        code=cut_text(record.code, text),
        message=cut_text(record.message, text),
        path=cut_path(display_path(record.path_bytes), text),
        line=record.line,
    )


def _changed_functions(comparison: Comparison) -> Iterator[ChangedFunction]:
    for change in comparison.differences({"worsened", "improved", "added"}):
        record = change.new or change.old
        if isinstance(record, Metric) and record.symbol:
            before, after = (int(side.value) if isinstance(side, Metric) else 0 for side in (change.old, change.new))
            yield ChangedFunction(
                name=record.symbol, path=display_path(record.path_bytes), line=record.line, before=before, after=after
            )


def _cut_names(step: ChangedFunction, text: int) -> ChangedFunction:
    return ChangedFunction(
        name=cut_text(step.name, text),
        path=cut_path(step.path, text),
        line=step.line,
        before=step.before,
        after=step.after,
    )
