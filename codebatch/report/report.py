"""Making the report of a batch."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from codebatch.model.entry import display_path, path_from_fields
from codebatch.operations.api.batch import Batch
from codebatch.operations.hotspots.churn import Churn, churn
from codebatch.operations.hotspots.hotspots import Hotspot, Hotspots
from codebatch.operations.queries.batch_query import Answer, shown_paths
from codebatch.operations.queries.duplicates import DuplicateBlocks
from codebatch.operations.queries.findings import FindingsByRule
from codebatch.query.answers.dependencies import Cycle, FileImport
from codebatch.query.completeness import Completeness, completeness
from codebatch.report.changes import ReportComparison, show_since, utc
from codebatch.report.contents import Cut, FileCycle, HardFunction, Numbers, ReportContents
from codebatch.report.examples import show_copied, show_rule
from codebatch.report.excerpts import Excerpts
from codebatch.report.gathering import PRODUCTION, FileSums, ReportFiles, gather_files, kinds_asked
from codebatch.report.limits import PAGE_BYTES_MAX, ReportLimits, cut, cut_path
from codebatch.report.matrix import make_matrix
from codebatch.report.page import encode_page
from codebatch.report.tree import cut_tree


def make_report(batch: Batch, limits: ReportLimits | None = None, *, older: Batch | str | None = None) -> Answer[bytes]:
    """Return the report of a batch as one HTML file of at most PAGE_BYTES_MAX bytes.

    It includes the changes since an `older` batch.

    To report on an incomplete batch, open both batches with `partial`. The same batches and the same git history give
    the same bytes. Raises InvalidInput, BatchIncomplete or StoreCorrupt.
    """
    limits = limits or ReportLimits()
    found = _find(batch, limits, None if older is None else batch.older(older))
    while True:
        excerpts = Excerpts(batch, limits.text)
        contents = _contents(batch, found, excerpts, limits)
        page = encode_page(contents)
        if len(page) <= PAGE_BYTES_MAX or limits == limits.halved():
            break
        limits = limits.halved()
    whole = _whole(batch, excerpts)
    if whole.is_complete and found.compared is not None and not found.compared.is_complete:
        whole = found.compared.findings.old.whole
    return batch.check(Answer(question=batch.question, found=page, whole=whole))


class _ReportInputs(NamedTuple):
    """What a report is made of, before it is cut; None is what the batch was not asked for."""

    files: ReportFiles
    findings: FindingsByRule | None
    hotspots: Hotspots | None
    all_hotspots: Hotspots | None
    copies: DuplicateBlocks | None
    imports: Sequence[FileImport]
    cycles: Sequence[Cycle]
    history: Churn
    compared: ReportComparison | None


def _find(batch: Batch, limits: ReportLimits, older: Batch | None) -> _ReportInputs:
    has_imports, has_metrics = "dependencies" in batch.tasks, "analyze" in batch.tasks
    findings = batch.findings().found if "diagnostic" in kinds_asked(batch) else None
    return _ReportInputs(
        files=gather_files(batch, findings.rules if findings else ()),
        findings=findings,
        hotspots=batch.hotspots(limit=limits.functions).found if has_metrics else None,
        all_hotspots=batch.hotspots(limit=limits.functions, everything=True).found
        if "analyze" in batch.tasks
        else None,
        copies=batch.copies(limit=limits.copies).found if "duplicates" in batch.tasks else None,
        imports=batch.imports().found if has_imports else [],
        cycles=batch.import_cycles().found if has_imports else [],
        history=churn(batch.question),
        compared=None if older is None else ReportComparison(batch, older),
    )


def _whole(batch: Batch, excerpts: Excerpts) -> Completeness:
    records = batch.question.records
    whole = completeness(records, batch.tasks, lacks_files=bool(records.batch.about.paths))
    return msgspec.structs.replace(whole, lost=len(excerpts.lost))


def _contents(batch: Batch, found: _ReportInputs, excerpts: Excerpts, limits: ReportLimits) -> ReportContents:
    about = batch.question.batch.about
    text = limits.text
    files = list(found.files.own.values())
    rules = found.findings.rules if found.findings else ()
    blocks = found.copies.blocks if found.copies else ()
    copies = [show_copied(each, excerpts, limits) for each in blocks[: limits.copies]]
    shown_rules = [show_rule(each, excerpts, limits) for each in rules[: limits.rules]]
    names = (display_path(os.path.basename(source.rstrip(b"/"))) or "/" for source in about.sources)
    return ReportContents(
        title=cut(", ".join(names), text),
        batch_id=about.batch_id,
        snapshot_id=about.snapshot_id,
        made_at=utc(about.created_at_ns),
        pipeline=about.pipeline,
        paths=[cut_path(path, text) for path in shown_paths(batch.question.batch)[: limits.places]],
        incomplete=_whole(batch, excerpts).lacking,
        changes_told=cut(found.history.told, text),
        asked=sorted(kinds_asked(batch)),
        numbers=_numbers(batch, found.files, files, limits),
        tree=cut_tree([*files, *found.files.vendored.values()], limits, found.history.changes),
        functions=_functions(found, limits),
        copies=copies,
        matrix=make_matrix(found.imports, limits.directories, text),
        cycles=[
            FileCycle(
                files=len(each.files), shortest=[cut_path(path, text) for path in each.shortest[: limits.cycle_steps]]
            )
            for each in found.cycles[: limits.cycles]
        ],
        rules=shown_rules,
        since=None if found.compared is None else show_since(found.compared, limits),
        in_all=Cut(
            functions=sum(each["functions"] for each in files),
            functions_left_out=sum(found.hotspots.excluded.values()) if found.hotspots else 0,
            copies=found.copies.count if found.copies else 0,
            copies_left_out=found.copies.excluded if found.copies else 0,
            cycles=len(found.cycles),
            rules=len(rules),
            hints=found.findings.hints_hidden if found.findings else 0,
        ),
    )


def _functions(found: _ReportInputs, limits: ReportLimits) -> list[HardFunction]:
    """Return the hotspots of production code, then those of other code."""
    production = found.hotspots.rows if found.hotspots else ()
    others = found.all_hotspots.rows if found.all_hotspots else ()
    functions = [_function(each, PRODUCTION, limits.text) for each in production[: limits.functions]]
    for each in others[: limits.functions]:
        path = path_from_fields(each.path, each.path_b64)
        sums = found.files.own.get(path) or found.files.vendored.get(path)
        if sums is not None and sums.category != PRODUCTION:
            functions.append(_function(each, sums.category, limits.text))
    return functions


def _function(found: Hotspot, category: int, text: int) -> HardFunction:
    return HardFunction(
        name=cut(str(found.symbol), text),
        path=cut_path(display_path(path_from_fields(found.path, found.path_b64)), text),
        line=found.line if isinstance(found.line, int) else 1,
        score=found.score,
        cognitive=found.cognitive if isinstance(found.cognitive, int) else 0,
        changes=found.commits_per_year,
        dependents=found.dependents,
        category=category,
        dependents_partial=found.dependents_partial is True,
    )


def _numbers(batch: Batch, found: ReportFiles, files: Sequence[FileSums], limits: ReportLimits) -> Numbers:
    summary = batch.summary().found
    languages = Counter[str]()
    for each in files:
        languages[each.language] += each["code"]
    ordered = sorted(filter(lambda pair: pair[1], languages.items()), key=lambda pair: (-pair[1], pair[0]))
    told = dict(ordered[: limits.languages])
    if rest := sum(code for _, code in ordered[limits.languages :]):
        told["others"] = rest
    return Numbers(
        files=summary.files,
        code_files=sum(each["code"] > 0 for each in files),
        code=sum(each["code"] for each in files),
        functions=sum(each["functions"] for each in files),
        cognitive=sum(each["cognitive"] for each in files),
        duplicated=sum(each["duplicated_lines"] for each in files),
        partly_parsed=found.partly_parsed,
        failures=summary.failures,
        findings=summary.severities,
        languages=told,
        left_out=dict(sorted(found.left_out.items())),
    )
