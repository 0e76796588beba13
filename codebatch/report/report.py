"""Creation of the report of a batch."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from codebatch.model.entry import display_path, path_from_fields
from codebatch.operations.api.batch import Batch
from codebatch.operations.hotspots.churn import FileChurn, read_churn
from codebatch.operations.hotspots.hotspots import Hotspot, Hotspots
from codebatch.operations.queries.batch_query import Answer, displayed_restriction
from codebatch.operations.queries.duplicates import NO_DUPLICATES, DuplicateBlocks
from codebatch.operations.queries.findings import FindingsByRule
from codebatch.query.answers.dependencies import Cycle, FileImport
from codebatch.query.completeness import Completeness, tasks_completeness
from codebatch.report.changes import ReportComparison, show_since, utc_text
from codebatch.report.contents import FileCycle, HardFunction, ReportContents, ReportNumbers, ReportTotals
from codebatch.report.examples import make_copied_block, make_report_rule
from codebatch.report.excerpts import ExcerptReader
from codebatch.report.gathering import PRODUCTION, FileSums, ReportFiles, emittable_kinds, gather_files
from codebatch.report.limits import PAGE_BYTES_MAX, ReportLimits, cut_path, cut_text
from codebatch.report.matrix import make_matrix
from codebatch.report.page import encode_page
from codebatch.report.tree import cut_tree


def make_report(batch: Batch, limits: ReportLimits | None = None, *, older: Batch | str | None = None) -> Answer[bytes]:
    """Return a report of a batch as one HTML file of at most PAGE_BYTES_MAX bytes.

    With `older`, the report includes the changes since this older batch.

    To report on an incomplete batch, open both batches with `partial`. The same batches and the same git history give
    the same bytes. Raises InvalidInput, BatchIncomplete or StoreCorrupt.
    """
    limits = limits or ReportLimits()
    inputs = _read_inputs(batch, limits, None if older is None else batch.older(older))
    while True:
        excerpts = ExcerptReader(batch, limits.text)
        contents = _make_contents(batch, inputs, excerpts, limits)
        page = encode_page(contents)
        if len(page) <= PAGE_BYTES_MAX or limits == limits.halved_limits():
            break
        limits = limits.halved_limits()
    report_completeness = _report_completeness(batch, excerpts)
    if report_completeness.is_complete and inputs.compared is not None and not inputs.compared.is_complete:
        report_completeness = inputs.compared.findings.old.completeness
    return batch.check(Answer(question=batch.question, result=page, completeness=report_completeness))


class _ReportInputs(NamedTuple):
    """The data of a report before limits are applied.

    A member is None or empty if the batch does not have the tasks that emit its data.
    """

    files: ReportFiles
    findings: FindingsByRule | None
    hotspots: Hotspots | None
    all_hotspots: Hotspots | None
    copies: DuplicateBlocks | None
    imports: Sequence[FileImport]
    cycles: Sequence[Cycle]
    history: FileChurn
    compared: ReportComparison | None


def _read_inputs(batch: Batch, limits: ReportLimits, older: Batch | None) -> _ReportInputs:
    has_imports, has_metrics = "dependencies" in batch.tasks, "analyze" in batch.tasks
    findings = batch.findings().result if "diagnostic" in emittable_kinds(batch) else None
    return _ReportInputs(
        files=gather_files(batch, findings.rules if findings else ()),
        findings=findings,
        hotspots=batch.hotspots(limit=limits.functions).result if has_metrics else None,
        all_hotspots=batch.hotspots(limit=limits.functions, everything=True).result
        if "analyze" in batch.tasks
        else None,
        copies=batch.copies(limit=limits.copies).result if "duplicates" in batch.tasks else None,
        imports=batch.imports().result if has_imports else [],
        cycles=batch.import_cycles().result if has_imports else [],
        history=read_churn(batch.question),
        compared=None if older is None else ReportComparison(batch, older),
    )


def _report_completeness(batch: Batch, excerpts: ExcerptReader) -> Completeness:
    records = batch.question.records
    known_completeness = tasks_completeness(records, batch.tasks, lacks_files=bool(records.batch.about.paths))
    return msgspec.structs.replace(known_completeness, lost=len(excerpts.missing_paths))


def _make_contents(
    batch: Batch, inputs: _ReportInputs, excerpts: ExcerptReader, limits: ReportLimits
) -> ReportContents:
    about = batch.question.batch.about
    text = limits.text
    files = list(inputs.files.production.values())
    rules = inputs.findings.rules if inputs.findings else ()
    duplicates = inputs.copies or NO_DUPLICATES
    copies = [make_copied_block(item, excerpts, limits) for item in duplicates.blocks[: limits.copies]]
    shown_rules = [make_report_rule(item, excerpts, limits) for item in rules[: limits.rules]]
    names = (display_path(os.path.basename(source.rstrip(b"/"))) or "/" for source in about.sources)
    return ReportContents(
        title=cut_text(", ".join(names), text),
        batch_id=about.batch_id,
        snapshot_id=about.snapshot_id,
        made_at=utc_text(about.created_at_ns),
        pipeline=about.pipeline,
        paths=[cut_path(path, text) for path in displayed_restriction(batch.question.batch)[: limits.places]],
        incomplete=_report_completeness(batch, excerpts).missing_text,
        history_note=cut_text(inputs.history.note, text),
        asked=sorted(emittable_kinds(batch)),
        numbers=_make_numbers(batch, inputs.files, files, limits),
        tree=cut_tree([*files, *inputs.files.vendored.values()], limits, inputs.history.changes),
        functions=_make_functions(inputs, limits),
        copies=copies,
        matrix=make_matrix(inputs.imports, limits.directories, text),
        cycles=[
            FileCycle(
                files=len(item.files), shortest=[cut_path(path, text) for path in item.shortest[: limits.cycle_steps]]
            )
            for item in inputs.cycles[: limits.cycles]
        ],
        rules=shown_rules,
        since=None if inputs.compared is None else show_since(inputs.compared, limits),
        in_all=ReportTotals(
            functions=sum(item["functions"] for item in files),
            functions_left_out=sum(inputs.hotspots.excluded.values()) if inputs.hotspots else 0,
            copies=duplicates.count,
            copies_bound="at most " * duplicates.count_is_upper_bound,
            copies_left_out=duplicates.excluded,
            copies_left_out_bound="at most " * duplicates.excluded_is_upper_bound,
            cycles=len(inputs.cycles),
            rules=len(rules),
            hints=inputs.findings.hints_hidden if inputs.findings else 0,
        ),
    )


def _make_functions(inputs: _ReportInputs, limits: ReportLimits) -> list[HardFunction]:
    """Return the hotspots in production code, followed by the hotspots in test and vendored code."""
    production = inputs.hotspots.rows if inputs.hotspots else ()
    all_functions = inputs.all_hotspots.rows if inputs.all_hotspots else ()
    functions = [_make_function(hotspot, PRODUCTION, limits.text) for hotspot in production[: limits.functions]]
    for hotspot in all_functions[: limits.functions]:
        path = path_from_fields(hotspot.path, hotspot.path_b64)
        sums = inputs.files.production.get(path) or inputs.files.vendored.get(path)
        if sums is not None and sums.category != PRODUCTION:
            functions.append(_make_function(hotspot, sums.category, limits.text))
    return functions


def _make_function(hotspot: Hotspot, category: int, text: int) -> HardFunction:
    return HardFunction(
        name=cut_text(str(hotspot.symbol), text),
        path=cut_path(display_path(path_from_fields(hotspot.path, hotspot.path_b64)), text),
        line=hotspot.line if isinstance(hotspot.line, int) else 1,
        score=hotspot.score,
        cognitive=hotspot.cognitive if isinstance(hotspot.cognitive, int) else 0,
        changes=hotspot.commits_per_year,
        dependents=hotspot.dependents,
        category=category,
        dependents_partial=hotspot.dependents_partial is True,
    )


def _make_numbers(
    batch: Batch, files_of_report: ReportFiles, files: Sequence[FileSums], limits: ReportLimits
) -> ReportNumbers:
    summary = batch.summary().result
    languages = Counter[str]()
    for sums in files:
        languages[sums.language] += sums["code"]
    ordered = sorted(filter(lambda pair: pair[1], languages.items()), key=lambda pair: (-pair[1], pair[0]))
    languages_shown = dict(ordered[: limits.languages])
    if other_code := sum(code for _, code in ordered[limits.languages :]):
        languages_shown["others"] = other_code
    production = [sums for sums in files if sums.category == PRODUCTION]
    return ReportNumbers(
        files=summary.files,
        code_files=sum(sums["code"] > 0 for sums in files),
        code=sum(sums["code"] for sums in files),
        functions=sum(sums["functions"] for sums in files),
        cognitive=sum(sums["cognitive"] for sums in files),
        production=sum(sums["code"] for sums in production),
        production_duplicated=sum(sums["duplicated_lines"] for sums in production),
        partly_parsed=files_of_report.partly_parsed,
        failures=summary.failures,
        findings=summary.severities,
        languages=languages_shown,
        left_out=dict(sorted(files_of_report.excluded_lines.items())),
    )
