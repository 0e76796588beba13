"""What a report tells of what became of an older batch."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from codebatch.compare.differences import Change
from codebatch.compare.states import State
from codebatch.model.entry import display_path
from codebatch.model.record import SEVERITIES, Diagnostic, Metric
from codebatch.operations.api.batch import Batch
from codebatch.operations.comparison.comparison import Comparison
from codebatch.operations.queries.findings import SHOWN
from codebatch.report.contents import Became, Grown, Since
from codebatch.report.limits import ReportLimits, cut, cut_path

_TOLD: tuple[State, ...] = ("severity_raised", "new", "fixed", "severity_lowered")


class ReportComparison:
    """A batch beside an older one. It is read once, and told within as many limits as one likes.

    Raises InvalidInput where they cannot be compared, BatchIncomplete unless both were opened with `partial`.
    """

    def __init__(self, batch: Batch, older: Batch) -> None:
        self.findings = batch.compare(older, kind="diagnostic", severity=SHOWN)
        self.found = sorted(self.findings.differences(_TOLD), key=_weight)
        self.steps: list[Grown] = []
        if "analyze" in batch.tasks and "analyze" in older.tasks:
            metrics = batch.compare(older, kind="metric", metric="cognitive")
            self.steps = sorted(_steps(metrics), key=lambda each: (each.before - each.after, each.path, each.line))
        self.about = older.question.batch.about

    @property
    def is_complete(self) -> bool:
        return self.findings.is_complete


def show_since(compared: ReportComparison, limits: ReportLimits) -> Since:
    """The worst of it first. Raises StoreCorrupt."""
    counts = compared.findings.counts
    return Since(
        batch_id=compared.about.batch_id,
        made_at=utc(compared.about.created_at_ns),
        states={state: count for state, count in counts.items() if count},
        findings=[_became(each, limits.text) for each in compared.found[: limits.changed]],
        findings_count=len(compared.found),
        functions=[_cut(each, limits.text) for each in compared.steps[: limits.changed]],
        functions_count=len(compared.steps),
    )


def utc(ns: int) -> str:
    """An instant, to the minute."""
    return f"{datetime.datetime.fromtimestamp(ns // 10**9, datetime.timezone.utc):%Y-%m-%d %H:%M} UTC"


def _weight(each: Change) -> tuple[int, int, bytes, int]:
    record = each.new or each.old
    assert isinstance(record, Diagnostic), "it was asked for"
    return _TOLD.index(each.state), SEVERITIES.index(record.severity), record.path_bytes, record.line


def _became(each: Change, text: int) -> Became:
    record = each.new or each.old
    assert isinstance(record, Diagnostic), "it was asked for"
    return Became(
        state=each.state,
        severity=record.severity,
        code=cut(record.code, text),
        message=cut(record.message, text),
        path=cut_path(display_path(record.path_bytes), text),
        line=record.line,
    )


def _steps(comparison: Comparison) -> Iterator[Grown]:
    for each in comparison.differences({"worsened", "improved", "added"}):
        record = each.new or each.old
        if isinstance(record, Metric) and record.symbol:
            before, after = (int(of.value) if isinstance(of, Metric) else 0 for of in (each.old, each.new))
            yield Grown(
                name=record.symbol, path=display_path(record.path_bytes), line=record.line, before=before, after=after
            )


def _cut(each: Grown, text: int) -> Grown:
    return Grown(
        name=cut(each.name, text), path=cut_path(each.path, text), line=each.line, before=each.before, after=each.after
    )
