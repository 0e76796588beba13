"""Exports of a batch, or of its regressions in comparison with another batch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, get_args

import msgspec

from codebatch.errors import InvalidInput
from codebatch.interchange.checkstyle import export_checkstyle
from codebatch.interchange.ctags import export_ctags
from codebatch.interchange.findings import Export, ExportedFindings, Form, Outgoing
from codebatch.interchange.github import export_github
from codebatch.interchange.gitlab import export_gitlab
from codebatch.interchange.rdjson import export_rdjson
from codebatch.interchange.sarif import export_sarif
from codebatch.interchange.scanning_limits import by_tool, cut
from codebatch.model.record import Severity
from codebatch.model.text.suggestions import did_you_mean
from codebatch.operations.api.batch import Batch
from codebatch.operations.comparison.comparison import Comparison
from codebatch.operations.export.findings import with_fingerprints, worst_first
from codebatch.operations.export.notebooks import on_lines_of_files
from codebatch.operations.export.regressions import not_comparable, regressions, suppressed
from codebatch.operations.export.sources import BatchSources
from codebatch.operations.export.tools import summaries_of, tools_of
from codebatch.operations.queries.batch_query import Answer
from codebatch.operations.queries.findings import SHOWN
from codebatch.query.completeness import Completeness, tasks_that_give
from codebatch.query.filters.filters import path_bytes
from codebatch.query.filters.record_options import Filters, Several, as_tuple

if TYPE_CHECKING:
    from typing_extensions import Unpack


def make_export(
    batch: Batch,
    form: Form,
    *,
    than: Batch | str | None = None,
    severity: Severity | Sequence[Severity] | None = None,
    code: Several = None,
    tool: Several = None,
    **filters: Unpack[Filters],
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
        tags = export_ctags((path_bytes(symbol), symbol) for symbol in symbols.found)
        return Answer(question=batch.question, found=tags, whole=symbols.whole)
    if form not in get_args(Form):
        raise InvalidInput(f"unknown format {form!r}", hint=did_you_mean(form, get_args(Form)))
    severity = severity or SHOWN
    if than is None:
        answer = batch.diagnostics(severity=severity, code=code, tool=tool, **filters)
        chosen = _ExportInput([Outgoing(diagnostic, diagnostic.path_bytes) for diagnostic in answer], answer)
    else:
        comparison = batch.compare(than, kind="diagnostic", severity=severity, code=code, tool=tool, **filters)
        chosen = _choose_regressions(comparison, form)
    tools = tools_of(batch, filters.get("task"), () if tool is None else as_tuple("tool", tool))
    return batch.check(_build_export(batch, form, chosen, tools))


class _ExportInput(NamedTuple):
    """The findings to export, with what is known about their completeness.

    `answer` has the completeness, `lost` are files with missing content, and `left_out` are notes on omitted findings.
    """

    findings: list[Outgoing]
    answer: Answer[object]
    lost: frozenset[bytes] = frozenset()
    left_out: tuple[str, ...] = ()


def _choose_regressions(comparison: Comparison, form: Form) -> _ExportInput:
    findings = [*regressions(comparison)]
    if form == "sarif":
        findings += suppressed(comparison)
    return _ExportInput(
        findings,
        comparison.old if comparison.new.is_complete and not comparison.old.is_complete else comparison.new,
        frozenset(path for _, path in comparison.trees.lost),
        tuple(not_comparable(comparison)),
    )


def _build_export(batch: Batch, form: Form, chosen: _ExportInput, tools: dict[str, str]) -> Answer[Export]:
    records = batch.question.records
    sources = BatchSources(records, chosen.lost)
    findings = worst_first(records, chosen.findings) if form in ("sarif", "github") else chosen.findings

    def identify(chosen_findings: Sequence[Outgoing]) -> list[Outgoing]:
        tasks = tasks_that_give(batch.question.catalogue, records.task_names, ("diagnostic",))
        return on_lines_of_files(with_fingerprints(records, tasks, chosen_findings, sources), sources)

    def exported_findings() -> ExportedFindings:
        placed = on_lines_of_files(findings, sources)
        lacking = _completeness_of(chosen.answer, sources).lacking
        if lacking and chosen.answer.question is not batch.question:
            lacking = f"the older batch, {chosen.answer.question.batch.id}: {lacking}"
        return ExportedFindings(findings=tuple(placed), tools=tools, incomplete=lacking)

    match form:
        case "sarif":
            accepted = cut(by_tool(findings, tools))
            identified = by_tool(identify([*chain(*accepted.values())]), dict.fromkeys(accepted, ""))
            export = export_sarif(exported_findings(), identified, summaries_of(accepted))
        case "github":
            export = export_github(exported_findings())
        case "gitlab":
            export = export_gitlab(identify(findings))
        case "checkstyle":
            export = export_checkstyle(on_lines_of_files(findings, sources))
        case _:
            export = export_rdjson(on_lines_of_files(findings, sources), sources.content)
    export = msgspec.structs.replace(export, excluded=(*chosen.left_out, *export.excluded))
    return Answer(question=chosen.answer.question, found=export, whole=_completeness_of(chosen.answer, sources))


def _completeness_of(answer: Answer[object], sources: BatchSources) -> Completeness:
    return msgspec.structs.replace(answer.whole, lost=len(sources.lost))
