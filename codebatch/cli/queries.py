"""`summary`, `errors`, `top`, `inspect`, `query`: questions about one batch."""

from __future__ import annotations

import click
import msgspec

from codebatch.application import questions
from codebatch.application.asking import Question
from codebatch.application.questions import Inspected, Ranking
from codebatch.cli.asking import answer_document, answer_rows, ask
from codebatch.cli.filtering import Asked, NounCommand, filtering
from codebatch.cli.groups import Group, answering_group
from codebatch.cli.options import Answering, answering, asked_batch_option, table
from codebatch.cli.show import KINDS_SHOWN, record_line, summary_lines
from codebatch.model.entry import display_path, path_row
from codebatch.query.filters import JsonRecord, RecordFilter
from codebatch.query.summary import worst_findings

ERRORS_SHOWN = 50
WORST_SHOWN = 10

task_option = click.option("--task", "task", metavar="NAME", help="Only what this task said.")


@click.command()
@asked_batch_option
@task_option
@answering
def summary(answering: Answering, batch_reference: str | None, task: str | None) -> int:
    """Counts of what a batch found."""
    question = ask(answering, batch_reference)
    answer = questions.summarise(question, task)
    lines = summary_lines(answer.found, () if answering.as_json else worst_findings(question.records, WORST_SHOWN))
    return answer_document(answering, answer, msgspec.structs.asdict(answer.found), lines)


@click.command()
@asked_batch_option
@task_option
@click.option("--limit", type=click.IntRange(min=1), help=f"At most so many. Default: {ERRORS_SHOWN}, with --json all.")
@answering
def errors(answering: Answering, batch_reference: str | None, task: str | None, limit: int | None) -> int:
    """Error diagnostics and failures of a batch, failures first, with their evidence."""
    answer = questions.find_errors(ask(answering, batch_reference), task)
    rows = answer.found
    shown = rows if limit is None and answering.as_json else rows[: limit or ERRORS_SHOWN]
    lines = (line for row in shown for line in _error_lines(row))
    status = answer_rows(answering, answer, shown, lines, if_none="no errors")
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
def top(answering: Answering, batch_reference: str | None, task: str | None, by: Ranking, limit: int) -> int:
    """Most frequent kinds, codes, severities or languages; paths with most diagnostics."""
    answer = questions.rank(ask(answering, batch_reference), by, task)
    ranked = answer.found[:limit]
    return answer_rows(answering, answer, dict(ranked), table(((count, name) for name, count in ranked), ("count", by)))


@click.command()
@click.argument("path", metavar="FILE")
@asked_batch_option
@click.option("--kinds", metavar="A,B", help="Only these kinds of records.")
@click.option("--explain", is_flag=True, help="Say where the answer comes from.")
@answering
def inspect(answering: Answering, path: str, batch_reference: str | None, kinds: str | None, explain: bool) -> int:
    """Everything a batch says of one file."""
    question = ask(answering, batch_reference)
    named = () if kinds is None else tuple(kinds.split(","))
    asked = RecordFilter(kinds=named or _kinds_shown(answering))
    answer = questions.inspect(question, path, asked, kinds=named)
    found = answer.found
    document: dict[str, object] = {**path_row(found.path), "batch_id": question.batch.id, "records": found.records}
    lines = [record_line(record) for record in found.records]
    if explain:
        document["explain"], more = _explained(question, found)
        lines += more
    status = answer_document(answering, answer, document, lines)
    if not found.records and answer.whole.is_complete:
        answering.note(f"nothing is said of {display_path(found.path)}")
    return status


@click.group(cls=Group)
@answering_group
def query() -> None:
    """Records of a batch, filtered."""


def _add_noun(noun: str, told: str) -> None:
    @answering
    @asked_batch_option
    @filtering(noun)
    def records(answering: Answering, batch_reference: str | None, asked: Asked) -> int:
        return _answer_records(answering, ask(answering, batch_reference), asked)

    query.command(noun, cls=NounCommand, help=told)(records)


def _answer_records(answering: Answering, question: Question, asked: Asked) -> int:
    wanted = asked.records.check()
    wanted.refuse_impossible()
    named = wanted.named_kinds
    if not wanted.kinds:
        wanted = msgspec.structs.replace(wanted, kinds=_kinds_shown(answering))
    answer = questions.search(question, wanted, task=asked.task, limit=asked.limit, kinds=named)
    return answer_rows(answering, answer, answer.found, map(record_line, answer.found))


for noun, told in (
    ("outputs", "Records of every kind; for people, without those that are for machines."),
    ("diagnostics", "Diagnostics."),
    ("symbols", "What is defined where."),
    ("edges", "Imports, calls, inheritance, and which file depends on which."),
    ("metrics", "Numbers about files and functions."),
    ("files", "What each file is."),
    ("failures", "What a task could not do."),
    ("duplicates", "Blocks of code that stand at several places."),
):
    _add_noun(noun, told)


def _kinds_shown(answering: Answering) -> tuple[str, ...]:
    return () if answering.as_json else KINDS_SHOWN


def _explained(question: Question, found: Inspected) -> tuple[dict[str, object], list[str]]:
    """Where the answer about a file comes from, as JSON and as lines."""
    records, batch = question.records, question.batch
    shard = next(shard for shard in records.plan.shards if shard.start <= found.item < shard.end)
    where = records.source.place
    object_, item = records.items[found.item].object, found.item - shard.start
    document = {
        "batch_id": batch.id,
        "snapshot_id": batch.about.snapshot_id,
        "object": object_,
        "shard_id": shard.id,
        "item": item,
        "tasks": list(found.tasks),
        "read_from": where,
    }
    return document, [
        f"batch {batch.id}, snapshot {batch.about.snapshot_id}, object {object_}",
        f"item {item} of shard {shard.id}, tasks {', '.join(found.tasks)}, read from {where}",
    ]


def _error_lines(row: JsonRecord) -> list[str]:
    evidence = str(row.get("evidence") or "").strip()
    return [record_line(row), *(f"    {line}" for line in evidence.splitlines()[-8:])]
