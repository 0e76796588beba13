"""`summary`, `errors`, `top`, `inspect`, `query`: questions about one batch."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import click
import msgspec

from codebatch.cli.asking import Asked, ask, shown_paths
from codebatch.cli.groups import Group, answering_group
from codebatch.cli.options import Answering, answering, asked_batch_option, human_bytes, table
from codebatch.cli.show import KINDS_SHOWN, record_line, record_path, summary_lines
from codebatch.errors import InvalidInput
from codebatch.model.entry import display_path, path_fields, path_from_fields
from codebatch.model.outcome import add_counts
from codebatch.model.record import KINDS, SEVERITIES
from codebatch.model.shard import PROJECT_PATH
from codebatch.query.completeness import (
    check_kinds,
    completeness,
    completeness_at,
    rests_on_all_files,
    tasks_that_give,
)
from codebatch.query.records import BatchRecords, JsonRecord, RecordFilter
from codebatch.query.summary import summarise, worst_findings
from codebatch.store.journal import JournalLine, read_journal

ERRORS_SHOWN = 50
WORST_SHOWN = 10

task_option = click.option("--task", "task", metavar="NAME", help="Only what this task said.")


@click.command()
@asked_batch_option
@task_option
@answering
def summary(answering: Answering, batch_reference: str | None, task: str | None) -> int:
    """Counts of what a batch found."""
    asked = ask(answering, batch_reference)
    records = asked.records
    found = summarise(records, task)
    lines = summary_lines(found, () if answering.as_json else worst_findings(records, WORST_SHOWN))
    whole = completeness(records, records.choose_tasks(task), tells_failures=True)
    return asked.answer_document(msgspec.structs.asdict(found), lines, whole)


@click.command()
@asked_batch_option
@task_option
@click.option("--limit", type=click.IntRange(min=1), help=f"At most so many. Default: {ERRORS_SHOWN}, with --json all.")
@answering
def errors(answering: Answering, batch_reference: str | None, task: str | None, limit: int | None) -> int:
    """Error diagnostics and failures of a batch, failures first, with their evidence."""
    question = ask(answering, batch_reference)
    records = question.records
    names = records.choose_tasks(task)
    failures = [r for name in names for r in records.iter_records(name, RecordFilter(kinds=("failure",)))]
    asked = RecordFilter(kinds=("diagnostic",), severities=("error",))
    found = [{**record, "task_id": name} for name in names for record in records.iter_records(name, asked)]
    journal = read_journal(question.store.files, question.batch.root, answering.note) if failures else []
    evidence = _evidence(records, journal)
    told = [{**record, **evidence.get((_path(record), str(record["task"])), {})} for record in failures]
    rows = told + sorted(found, key=_place)
    shown = rows if limit is None and answering.as_json else rows[: limit or ERRORS_SHOWN]
    whole = completeness(records, names, tells_failures=True)
    lines = (line for row in shown for line in _error_lines(row))
    status = question.answer_rows(shown, lines, whole, if_none="no errors")
    if len(shown) < len(rows):
        answering.note(f"{len(rows) - len(shown):,} more; show them with --limit {len(rows)}")
    return status


@click.command()
@asked_batch_option
@task_option
@click.option(
    "--by",
    type=click.Choice(["kind", "code", "severity", "lang", "path"]),
    default="kind",
    show_default=True,
    help="What to count.",
)
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True, help="At most so many.")
@answering
def top(answering: Answering, batch_reference: str | None, task: str | None, by: str, limit: int) -> int:
    """Most frequent kinds, codes, severities or languages; paths with most diagnostics."""
    question = ask(answering, batch_reference)
    records = question.records
    names = records.choose_tasks(task)
    if by == "path":
        asked = RecordFilter(kinds=("diagnostic",))
        counted = Counter(record_path(record) for name in names for record in records.iter_records(name, asked))
    else:
        counts = add_counts(records.counts(name) for name in names)
        counted = Counter(
            {"kind": counts.kinds, "code": counts.codes, "severity": counts.severities, "lang": counts.languages}[by]
        )
    ranked = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
    whole = completeness(records, names, tells_failures=by == "kind")
    return question.answer_rows(dict(ranked), table(((count, name) for name, count in ranked), ("count", by)), whole)


@click.command()
@click.argument("path", metavar="FILE")
@asked_batch_option
@click.option("--kinds", metavar="A,B", help="Only these kinds of records.")
@click.option("--explain", is_flag=True, help="Say where the answer comes from.")
@answering
def inspect(answering: Answering, path: str, batch_reference: str | None, kinds: str | None, explain: bool) -> int:
    """Everything a batch says of one file."""
    question = ask(answering, batch_reference)
    records, batch = question.records, question.batch
    named = tuple(kinds.split(",")) if kinds else ()
    asked = RecordFilter(kinds=named or _kinds_shown(answering)).check()
    name, item = find_item(answering, records, path)
    check_kinds(question.catalogue, records, named)
    tasks = tasks_that_give(question.catalogue, records.task_names, named)
    by_task = {task: records.item_records(task, item) for task in tasks}
    text, encoded = path_fields(name)
    place: dict[str, object] = {"path": text} if isinstance(text, str) else {"path_b64": encoded}
    # The failure of a project task stands at the first item of all, and is none of that file's.
    found = [r for task in by_task.values() for r in task or () if asked.matches(r) and place.items() <= r.items()]
    document: dict[str, object] = {**place, "batch_id": batch.id, "records": found}
    lines = [record_line(record) for record in found]
    whole = completeness_at(
        records, by_task, found, needs_all_files=rests_on_all_files(question.catalogue, records, tasks, named)
    )
    if explain:
        shard = next(shard for shard in records.plan.shards if shard.start <= item < shard.end)
        where = str(records.outputs.root) if records.outputs else "the outcomes so far (nothing is merged yet)"
        document["explain"] = {
            "batch_id": batch.id,
            "snapshot_id": batch.about.snapshot_id,
            "object": records.items[item].object,
            "shard_id": shard.id,
            "item": item - shard.start,
            "tasks": list(by_task),
            "read_from": where,
        }
        lines += [
            f"batch {batch.id}, snapshot {batch.about.snapshot_id}, object {records.items[item].object}",
            f"item {item - shard.start} of shard {shard.id}, tasks {', '.join(by_task)}, read from {where}",
        ]
    status = question.answer_document(document, lines, whole)
    if not found and whole.is_complete:
        answering.note(f"nothing is said of {display_path(name)}")
    return status


@click.group(cls=Group)
@answering_group
def query() -> None:
    """Records of a batch, filtered."""


@query.command()
@asked_batch_option
@task_option
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help=f"One of {', '.join(KINDS)}; may be repeated.")
@click.option("--path", "path", metavar="TEXT", default="", help="Only paths that contain this.")
@click.option("--name", "names", multiple=True, metavar="NAME", help="Symbols of this name; a * at the end: a prefix.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many.")
@answering
def outputs(
    answering: Answering,
    batch_reference: str | None,
    task: str | None,
    kinds: tuple[str, ...],
    path: str,
    names: tuple[str, ...],
    limit: int | None,
) -> int:
    """Records of every kind; for people, without those that are for machines."""
    asked = RecordFilter(kinds=kinds or _kinds_shown(answering), path=path, names=names).check()
    return _answer_records(ask(answering, batch_reference), task, asked, limit, kinds or (("symbol",) if names else ()))


@query.command()
@asked_batch_option
@task_option
@click.option("--severity", "severities", multiple=True, type=click.Choice(SEVERITIES), help="May be repeated.")
@click.option("--code", "codes", multiple=True, metavar="CODE", help="A rule; a * at the end: a prefix.")
@click.option("--tool", "tools", multiple=True, metavar="TOOL", help="Who found it.")
@click.option("--path", "path", metavar="TEXT", default="", help="Only paths that contain this.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many.")
@answering
def diagnostics(
    answering: Answering,
    batch_reference: str | None,
    task: str | None,
    severities: tuple[str, ...],
    codes: tuple[str, ...],
    tools: tuple[str, ...],
    path: str,
    limit: int | None,
) -> int:
    """Diagnostics."""
    asked = RecordFilter(kinds=("diagnostic",), severities=severities, codes=codes, tools=tools, path=path)
    return _answer_records(ask(answering, batch_reference), task, asked, limit, asked.kinds)


def _answer_records(
    question: Asked, task: str | None, asked: RecordFilter, limit: int | None, kinds: tuple[str, ...]
) -> int:
    """Answer with what a filter lets pass; `kinds` are those that the question names."""
    records = question.records
    names = records.choose_tasks(task)
    found: list[JsonRecord] = []
    for name in names:
        for record in records.iter_records(name, asked):
            if limit is not None and len(found) == limit:
                break
            found.append(record)
    if not found:
        check_kinds(question.catalogue, records, kinds)
    is_told = asked.matches({"kind": "failure", "path": asked.path})
    needed = names if records.is_done else tasks_that_give(question.catalogue, names, kinds)
    of_all = rests_on_all_files(question.catalogue, records, names, kinds)
    whole = completeness(records, needed, tells_failures=is_told, path=asked.path, needs_all_files=of_all)
    return question.answer_rows(found, map(record_line, found), whole)


def _kinds_shown(answering: Answering) -> tuple[str, ...]:
    return () if answering.as_json else KINDS_SHOWN


def find_item(answering: Answering, records: BatchRecords, path: str) -> tuple[bytes, int]:
    """The item that a path from the command line names: as in the snapshot, or as seen from the current directory.

    From there first where it begins with `./` or `../`. Where it could be either, a note says which was taken.
    """
    given = os.fsencode(path)
    candidates: list[bytes] = []
    parent, name = os.path.split(os.path.abspath(path))
    absolute = Path(os.path.realpath(parent), name)
    roots = [os.fsdecode(root) for root in records.batch.about.sources]
    for root in [*roots, os.path.commonpath(roots)] if roots else []:
        if absolute == Path(root) and not absolute.is_dir():
            candidates.append(os.fsencode(absolute.name))
        elif absolute.is_relative_to(root):
            candidates.append(os.fsencode(absolute.relative_to(root)))
    in_snapshot = [given, os.path.normpath(given)]
    candidates = candidates + in_snapshot if given.startswith((b"./", b"../")) else in_snapshot + candidates
    items = {each: item for each in dict.fromkeys(candidates) if (item := records.find_item(each)) is not None}
    if items:
        chosen, *others = items
        if others:
            answering.note(
                f"{display_path(chosen)} is asked, as the project has it; there is {display_path(others[0])} too"
            )
        return chosen, items[chosen]
    of = f", which is of {', '.join(shown_paths(records.batch))} alone" if records.batch.about.paths else ""
    raise InvalidInput(
        f"the batch{of and of + ','} has no file {path!r}", hint=f"see: codebatch files --batch {records.batch.id}"
    )


def _evidence(records: BatchRecords, lines: list[JournalLine]) -> dict[tuple[bytes, str], dict[str, str]]:
    """What the journal knows of why a task failed at a file; the last word counts."""
    shards = {shard.id: shard for shard in records.plan.shards}
    found: dict[tuple[bytes, str], dict[str, str]] = {}
    deaths: dict[tuple[bytes, str | None], str] = {}
    for line in lines:
        if line.shard is None or line.start is None:
            continue
        shard = shards.get(line.shard)
        if shard is not None and not 0 <= line.start < shard.items:
            continue
        path = PROJECT_PATH if shard is None else records.items[shard.start + line.start].path
        if line.event == "lost":
            peak = f"peak memory: {human_bytes(line.memory_peak_bytes)}" if line.memory_peak_bytes else None
            deaths[path, line.task] = deaths[path, None] = "\n".join(filter(None, [line.reason, peak, line.evidence]))
        elif line.event == "failed" and line.task is not None:
            death = "" if line.reason == "needs" else deaths.get((path, line.task)) or deaths.get((path, None), "")
            found[path, line.task] = {"evidence": line.evidence or death}
    return found


def _error_lines(row: JsonRecord) -> list[str]:
    evidence = str(row.get("evidence") or "").strip()
    return [record_line(row), *(f"    {line}" for line in evidence.splitlines()[-8:])]


def _path(record: JsonRecord) -> bytes:
    path, path_b64 = record.get("path"), record.get("path_b64")
    return path_from_fields(path if isinstance(path, str) else None, path_b64 if isinstance(path_b64, str) else None)


def _place(record: JsonRecord) -> tuple[bytes, int, int, str]:
    line, column = record["line"], record["column"]
    assert isinstance(line, int)
    assert isinstance(column, int)
    return _path(record), line, column, str(record["code"])
