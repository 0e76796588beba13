"""Making the report of a batch."""

from __future__ import annotations

import datetime
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from codebatch import __version__
from codebatch.application.asking import Answer, shown_paths
from codebatch.application.opened_batch import OpenedBatch
from codebatch.model.entry import display_path
from codebatch.model.quantities import count_of
from codebatch.query.completeness import Completeness, completeness
from codebatch.query.dependencies import Cycle, Import
from codebatch.report.contents import Contents, Cut, FileCycle, Numbers
from codebatch.report.excerpts import Excerpts
from codebatch.report.gathering import FileSums, Gathered, gather
from codebatch.report.limits import PAGE_BYTES_MAX, Limits, cut, cut_path
from codebatch.report.matrix import make_matrix
from codebatch.report.page import encode_page
from codebatch.report.shown import show_copies, show_rules
from codebatch.report.tree import cut_tree


def make_report(
    batch: OpenedBatch,
    changes: Mapping[bytes, int] | None = None,
    *,
    changes_told: str = "",
    limits: Limits | None = None,
) -> Answer[bytes]:
    """The page of a batch, whole in one HTML file (page.py), at most PAGE_BYTES_MAX long.

    Of one that is incomplete what there is: `batch` is to be opened with `partial` then. `changes` are how
    often history changed each file, by path, None where there is none; `changes_told` is why, or what of it lacks. All
    that alike gives the same bytes. Raises BatchIncomplete or StoreCorrupt.
    """
    limits = limits or Limits()
    found = _Found(
        gathered=gather(batch, limits.functions),
        imports=batch.imports().found if "dependencies" in batch.tasks else [],
        cycles=batch.import_cycles().found if "dependencies" in batch.tasks else [],
        changes=changes,
        changes_told=changes_told,
    )
    while True:
        excerpts = Excerpts(batch, limits.text)
        contents = _contents(batch, found, excerpts, limits)
        page = encode_page(contents)
        if len(page) <= PAGE_BYTES_MAX or limits == limits.halved():
            break
        limits = limits.halved()
    return batch.check(Answer(question=batch.question, found=page, whole=_whole(batch, excerpts)))


class _Found(NamedTuple):
    """What a report is made of, before it is cut."""

    gathered: Gathered
    imports: Sequence[Import]
    cycles: Sequence[Cycle]
    changes: Mapping[bytes, int] | None
    changes_told: str


def _whole(batch: OpenedBatch, excerpts: Excerpts) -> Completeness:
    records = batch.question.records
    whole = completeness(records, batch.tasks, lacks_files=bool(records.batch.about.paths))
    return msgspec.structs.replace(whole, lost=len(excerpts.lost))


def _contents(batch: OpenedBatch, found: _Found, excerpts: Excerpts, limits: Limits) -> Contents:
    about = batch.question.batch.about
    at = datetime.datetime.fromtimestamp(about.created_at_ns // 10**9, datetime.timezone.utc)
    gathered, cycles, text = found.gathered, found.cycles, limits.text
    files = list(gathered.files.values())
    copies = show_copies(gathered.duplicates, excerpts, limits)
    rules = show_rules(gathered.rules, excerpts, limits)
    names = (display_path(os.path.basename(source.rstrip(b"/"))) or "/" for source in about.sources)
    return Contents(
        title=cut(", ".join(names), text),
        batch_id=about.batch_id,
        snapshot_id=about.snapshot_id,
        made_at=f"{at:%Y-%m-%d %H:%M} UTC",
        pipeline=about.pipeline,
        version=__version__,
        paths=[cut_path(path, text) for path in shown_paths(batch.question.batch)[: limits.places]],
        changes_told=cut(found.changes_told, text),
        incomplete=_told(_whole(batch, excerpts)),
        asked=sorted(gathered.asked),
        numbers=_numbers(batch, gathered, files, limits),
        tree=cut_tree(files, limits, found.changes),
        functions=[
            msgspec.structs.replace(each, name=cut(each.name, text), path=cut_path(each.path, text))
            for each in gathered.functions[: limits.functions]
        ],
        copies=copies,
        matrix=make_matrix(found.imports, limits.directories, text),
        cycles=[
            FileCycle(
                files=len(each.files), shortest=[cut_path(path, text) for path in each.shortest[: limits.cycle_steps]]
            )
            for each in cycles[: limits.cycles]
        ],
        rules=rules,
        in_all=Cut(
            functions=sum(each["functions"] for each in files),
            copies=sum(len(each) > 1 for each in gathered.duplicates.values()),
            cycles=len(cycles),
            rules=len(gathered.rules),
        ),
    )


def _numbers(batch: OpenedBatch, gathered: Gathered, files: Sequence[FileSums], limits: Limits) -> Numbers:
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
        partly_parsed=gathered.partly_parsed,
        failures=summary.failures,
        findings=summary.severities,
        languages=told,
        left_out=dict(sorted(gathered.left_out.items())),
    )


def _told(whole: Completeness) -> str:
    """What lacks of the whole, in words; empty where nothing does."""
    told: list[str] = []
    if whole.done < whole.planned:
        told.append(f"{whole.percent} % of the batch is done")
    if whole.failed:
        told.append(f"{whole.failed:,} of {whole.planned:,} results failed ({', '.join(whole.failed_tasks)})")
    if whole.lost:
        told.append(f"{count_of(whole.lost, 'file')} could not be read")
    if whole.lacks_files:
        told.append("it is of a part of the project alone, and what other files hold is not known")
    return "; ".join(told)
