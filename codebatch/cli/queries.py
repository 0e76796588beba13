"""`summary`, `errors`, `top`, `inspect`, `query`: questions about one batch."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import click

from codebatch.cli.groups import Group, answering_group
from codebatch.cli.options import Answering, answering, batch_option, human_bytes, table
from codebatch.cli.show import KINDS_SHOWN, record_line, record_path, summary_lines
from codebatch.errors import InvalidInput
from codebatch.model.entry import display_path, path_fields, path_from_fields
from codebatch.model.outcome import add_counts
from codebatch.model.record import KINDS, SEVERITIES
from codebatch.model.shard import PROJECT_PATH
from codebatch.query.records import BatchRecords, JsonRecord, RecordFilter
from codebatch.query.summary import summarise, worst_findings
from codebatch.store.journal import JournalLine, read_journal

ERRORS_SHOWN = 50
WORST_SHOWN = 10

task_option = click.option("--task", "task", metavar="NAME", help="Only what this task said.")


@click.command()
@batch_option
@task_option
@answering
def summary(answering: Answering, batch_reference: str | None, task: str | None) -> None:
    """Counts of what a batch found."""
    records = BatchRecords(*answering.batch(batch_reference))
    found = summarise(records, task)
    answering.print(found, summary_lines(found, () if answering.as_json else worst_findings(records, WORST_SHOWN)))


@click.command()
@batch_option
@task_option
@click.option("--limit", type=click.IntRange(min=1), help=f"At most so many. Default: {ERRORS_SHOWN}, with --json all.")
@answering
def errors(answering: Answering, batch_reference: str | None, task: str | None, limit: int | None) -> None:
    """Error diagnostics and failures of a batch, failures first, with their evidence."""
    store, batch = answering.batch(batch_reference)
    records = BatchRecords(store, batch)
    names = records.choose_tasks(task)
    failures = [r for name in names for r in records.iter_records(name, RecordFilter(kinds=("failure",)))]
    asked = RecordFilter(kinds=("diagnostic",), severities=("error",))
    found = [{**record, "task_id": name} for name in names for record in records.iter_records(name, asked)]
    evidence = _evidence(records, read_journal(store.files, batch.root, answering.note)) if failures else {}
    told = [{**record, **evidence.get((_path(record), str(record["task"])), {})} for record in failures]
    rows = told + sorted(found, key=_place)
    shown = rows if limit is None and answering.as_json else rows[: limit or ERRORS_SHOWN]
    answering.print(shown, (line for row in shown for line in _error_lines(row)), if_none="no errors")
    if len(shown) < len(rows):
        answering.note(f"{len(rows) - len(shown):,} more; show them with --limit {len(rows)}")


@click.command()
@batch_option
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
def top(answering: Answering, batch_reference: str | None, task: str | None, by: str, limit: int) -> None:
    """Most frequent kinds, codes, severities or languages; paths with most diagnostics."""
    records = BatchRecords(*answering.batch(batch_reference))
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
    answering.print(dict(ranked), table(((count, name) for name, count in ranked), ("count", by)))


@click.command()
@click.argument("path", metavar="FILE")
@batch_option
@click.option("--kinds", metavar="A,B", help="Only these kinds of records.")
@click.option("--explain", is_flag=True, help="Say where the answer comes from.")
@answering
def inspect(answering: Answering, path: str, batch_reference: str | None, kinds: str | None, explain: bool) -> None:
    """Everything a batch says of one file."""
    store, batch = answering.batch(batch_reference)
    records = BatchRecords(store, batch)
    asked = RecordFilter(kinds=tuple(kinds.split(",")) if kinds else _kinds_shown(answering)).check()
    name, item = find_item(records, path)
    by_task = {task: records.item_records(task, item) for task in records.task_names}
    text, encoded = path_fields(name)
    place: dict[str, object] = {"path": text} if isinstance(text, str) else {"path_b64": encoded}
    # The failure of a project task stands at the first item of all, and is none of that file's.
    found = [r for task in by_task.values() for r in task or () if asked.matches(r) and place.items() <= r.items()]
    document: dict[str, object] = {**place, "batch_id": batch.id, "records": found}
    lines = [record_line(record) for record in found]
    unknown = [task for task, answer in by_task.items() if answer is None]
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
    answering.print(document, lines)
    if unknown:
        answering.note(f"not done yet: {', '.join(unknown)}")
    if not found:
        answering.note(f"nothing is said of {display_path(name)}")


@click.group(cls=Group)
@answering_group
def query() -> None:
    """Records of a batch, filtered."""


@query.command()
@batch_option
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
) -> None:
    """Records of every kind; for people, without those that are for machines."""
    asked = RecordFilter(kinds=kinds or _kinds_shown(answering), path=path, names=names)
    _print_records(answering, batch_reference, task, asked, limit)


@query.command()
@batch_option
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
) -> None:
    """Diagnostics."""
    asked = RecordFilter(kinds=("diagnostic",), severities=severities, codes=codes, tools=tools, path=path)
    _print_records(answering, batch_reference, task, asked, limit)


def _print_records(
    answering: Answering, batch_reference: str | None, task: str | None, asked: RecordFilter, limit: int | None
) -> None:
    records = BatchRecords(*answering.batch(batch_reference))
    names = records.choose_tasks(task)
    asked = asked.check()
    found: list[JsonRecord] = []
    for name in names:
        for record in records.iter_records(name, asked):
            if limit is not None and len(found) == limit:
                break
            found.append(record)
    answering.print(found, map(record_line, found))


def _kinds_shown(answering: Answering) -> tuple[str, ...]:
    return () if answering.as_json else KINDS_SHOWN


def find_item(records: BatchRecords, path: str) -> tuple[bytes, int]:
    """The item that a path from the command line names: as in the snapshot, or as seen from the current directory."""
    given = os.fsencode(path)
    candidates = [given, os.path.normpath(given)]
    parent, name = os.path.split(os.path.abspath(path))
    absolute = Path(os.path.realpath(parent), name)
    roots = [root for root in records.batch.about.source.split("\n") if root]
    for root in [*roots, os.path.commonpath(roots)] if roots else []:
        if absolute == Path(root):
            candidates.append(os.fsencode(absolute.name))
        elif absolute.is_relative_to(root):
            candidates.append(os.fsencode(absolute.relative_to(root)))
    for candidate in candidates:
        item = records.find_item(candidate)
        if item is not None:
            return candidate, item
    raise InvalidInput(f"the batch has no file {path!r}", hint=f"see: codebatch files --batch {records.batch.id}")


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
