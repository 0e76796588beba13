"""Exports of a batch, or of its regressions in comparison with another batch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, get_args

import msgspec

from codebatch.errors import InvalidInput
from codebatch.interchange.checkstyle import export_checkstyle
from codebatch.interchange.ctags import export_ctags
from codebatch.interchange.findings import Export, ExportedFinding, ExportedFindings, ExportFormat, own_finding
from codebatch.interchange.github import export_github
from codebatch.interchange.gitlab import export_gitlab
from codebatch.interchange.junit import export_junit
from codebatch.interchange.rdjson import export_rdjson
from codebatch.interchange.sarif import export_sarif
from codebatch.interchange.scanning_limits import group_by_tool, limit_findings_by_tool
from codebatch.model.record import Severity
from codebatch.model.text.suggestions import did_you_mean_text
from codebatch.operations.api.batch import Batch
from codebatch.operations.comparison.comparison import Comparison
from codebatch.operations.export.findings import with_fingerprints, worst_first
from codebatch.operations.export.notebooks import relocate_notebook_findings
from codebatch.operations.export.regressions import iter_not_comparable, iter_regressions, iter_suppressed
from codebatch.operations.export.sources import BatchSources
from codebatch.operations.export.tools import possible_tools, rule_summaries
from codebatch.operations.queries.batch_query import Answer
from codebatch.operations.queries.findings import SEVERITIES_SHOWN
from codebatch.operations.queries.unmatched_filters import nothing_read
from codebatch.query.completeness import Completeness, emitting_tasks
from codebatch.query.filters.filters import path_bytes
from codebatch.query.filters.record_options import CommonFilters, OneOrMany, as_tuple, make_filter

if TYPE_CHECKING:
    from typing_extensions import Unpack


def make_export(
    batch: Batch,
    form: ExportFormat,
    *,
    than: Batch | str | None = None,
    severity: Severity | Sequence[Severity] | None = None,
    code: OneOrMany = None,
    tool: OneOrMany = None,
    **filters: Unpack[CommonFilters],
) -> Answer[Export]:
    """Return the findings of a batch in the format of another program.

    If an older batch `than` is given, only regressions since that batch are returned.
    """
    if form == "ctags":
        if than is not None:
            raise InvalidInput(
                "ctags cannot be used with two batches", hint="for example: codebatch export ctags -o tags"
            )
        for name, value in {"severity": severity, "code": code, "tool": tool}.items():
            if value is not None:
                raise InvalidInput(f"`{name}` cannot be used with ctags, which lists definitions")
        symbols = batch.symbols(**filters)
        tags = export_ctags((path_bytes(symbol), symbol) for symbol in symbols.result)
        return Answer(question=batch.question, result=tags, completeness=symbols.completeness)
    if form not in get_args(ExportFormat):
        raise InvalidInput(f"unknown format {form!r}", hint=did_you_mean_text(form, get_args(ExportFormat)))
    severity = severity or SEVERITIES_SHOWN
    if than is None:
        answer = batch.diagnostics(severity=severity, code=code, tool=tool, **filters)
        chosen = _ExportInput([ExportedFinding(diagnostic, diagnostic.path_bytes) for diagnostic in answer], answer)
        reasons = nothing_read((batch.question,), make_filter({"tool": tool, **filters}))  # type: ignore[typeddict-unknown-key]
    else:
        comparison = batch.compare(than, kind="diagnostic", severity=severity, code=code, tool=tool, **filters)
        chosen = _choose_regressions(comparison, form)
        reasons = comparison.reasons_for_nothing()
    if not chosen.findings:
        chosen = chosen.with_doubt("; ".join(reasons))
    tools = possible_tools(batch, filters.get("task"), () if tool is None else as_tuple("tool", tool))
    return batch.check(_build_export(batch, form, chosen, tools))


def make_report(
    batch: Batch,
    form: ExportFormat,
    findings: Sequence[ExportedFinding],
    completeness: Completeness,
    *,
    is_accepted: bool = False,
) -> Export:
    """Return chosen findings of a batch in the format of another program.

    Formats without a place for missing results get a finding about them. `is_accepted` is set if the user accepts that
    results are missing.
    """
    findings = [finding for finding in findings if form == "junit" or not finding.is_allowed]
    if completeness.missing_text and form not in ("junit", "sarif"):
        severity: Severity = "warning" if is_accepted else "error"
        findings.append(own_finding(b".", "incomplete", completeness.missing_text, severity=severity))
    answer = Answer(question=batch.question, result=None, completeness=completeness)
    chosen = _ExportInput(findings, answer, is_accepted=is_accepted)
    return _build_export(batch, form, chosen, possible_tools(batch, None, ())).result


class _ExportInput(NamedTuple):
    """The findings to export, with what is known about their completeness.

    - `answer`: the findings with their completeness.
    - `lost`: files whose content is missing.
    - `omission_notes`: notes on omitted findings.
    - `is_accepted`: whether the user accepts that results are missing.
    """

    findings: list[ExportedFinding]
    answer: Answer[object]
    lost: frozenset[bytes] = frozenset()
    omission_notes: tuple[str, ...] = ()
    is_accepted: bool = False

    def with_doubt(self, doubt: str) -> _ExportInput:
        """Return the input of an export without findings. `doubt` is why this proves nothing, or empty."""
        if not doubt:
            return self
        completeness = self.answer.completeness.with_doubt(doubt)
        answer = Answer(question=self.answer.question, result=None, completeness=completeness)
        return self._replace(answer=answer, omission_notes=(*self.omission_notes, f"incomplete: {doubt}"))


def _choose_regressions(comparison: Comparison, form: ExportFormat) -> _ExportInput:
    findings = [*iter_regressions(comparison)]
    if form == "sarif":
        findings += iter_suppressed(comparison)
    return _ExportInput(
        findings,
        comparison.old if comparison.new.is_complete and not comparison.old.is_complete else comparison.new,
        frozenset(path for _, path in comparison.trees.lost),
        tuple(iter_not_comparable(comparison)),
    )


def _build_export(batch: Batch, form: ExportFormat, chosen: _ExportInput, tools: dict[str, str]) -> Answer[Export]:
    records = batch.question.records
    sources = BatchSources(records, chosen.lost)
    findings = worst_first(records, chosen.findings) if form in ("sarif", "github") else chosen.findings

    def identify(chosen_findings: Sequence[ExportedFinding]) -> list[ExportedFinding]:
        tasks = emitting_tasks(batch.question.catalogue, records.task_names, ("diagnostic",))
        return relocate_notebook_findings(with_fingerprints(records, tasks, chosen_findings, sources), sources)

    def exported_findings() -> ExportedFindings:
        placed = relocate_notebook_findings(findings, sources)
        missing_text = _export_completeness(chosen.answer, sources).missing_text
        if missing_text and chosen.answer.question is not batch.question:
            missing_text = f"the older batch, {chosen.answer.question.batch.id}: {missing_text}"
        return ExportedFindings(
            findings=tuple(placed), tools=tools, incomplete=missing_text, is_accepted=chosen.is_accepted
        )

    match form:
        case "sarif":
            accepted = limit_findings_by_tool(group_by_tool(findings, tools))
            identified = group_by_tool(identify([*chain(*accepted.values())]), dict.fromkeys(accepted, ""))
            export = export_sarif(exported_findings(), identified, rule_summaries(accepted))
        case "github":
            export = export_github(exported_findings())
        case "junit":
            export = export_junit(exported_findings())
        case "gitlab":
            export = export_gitlab(identify(findings))
        case "checkstyle":
            export = export_checkstyle(relocate_notebook_findings(findings, sources))
        case _:
            export = export_rdjson(relocate_notebook_findings(findings, sources), sources.content)
    export = msgspec.structs.replace(export, excluded=(*chosen.omission_notes, *export.excluded))
    return Answer(
        question=chosen.answer.question, result=export, completeness=_export_completeness(chosen.answer, sources)
    )


def _export_completeness(answer: Answer[object], sources: BatchSources) -> Completeness:
    return msgspec.structs.replace(answer.completeness, lost=len(sources.lost))
