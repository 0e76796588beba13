"""`summary`, `errors`, `top`, `inspect`, `query`: questions about one batch."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import cast, get_args

import click
import msgspec

from codebatch.application import questions
from codebatch.application.asking import Question
from codebatch.application.questions import Inspected, Ranking
from codebatch.cli.asking import answer_document, answer_rows, answer_written, ask
from codebatch.cli.filtering import Asked, NounCommand, filtering
from codebatch.cli.formats import FOR_PROGRAMS, STREAMED, Form, columns_of, is_colored, write_colored, write_rows
from codebatch.cli.groups import Group, answering_group
from codebatch.cli.options import Answering, answering, asked_batch_option, table
from codebatch.cli.show import KINDS_SHOWN, record_line, summary_lines
from codebatch.cli.terminal import printable
from codebatch.errors import InvalidInput
from codebatch.model.entry import display_path, path_row
from codebatch.model.quantities import count_of
from codebatch.query.fields import JsonRecord, chosen, value_of
from codebatch.query.filters import RecordFilter
from codebatch.query.summary import worst_findings

ERRORS_SHOWN = 50
WORST_SHOWN = 10
METRIC = "metric:"

task_option = click.option("--task", "task", metavar="NAME", help="Only what this task said.")


def _check_ranking(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if value not in get_args(Ranking) and not value.startswith(METRIC):
        raise click.BadParameter(f"{value!r} is not one of {', '.join(get_args(Ranking))}, {METRIC}NAME", ctx, param)
    return value


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
    metavar=f"[{'|'.join(get_args(Ranking))}|{METRIC}NAME]",
    default="kind",
    show_default=True,
    callback=_check_ranking,
    help="What to count; of metric:NAME the greatest.",
)
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True, help="At most so many.")
@answering
def top(answering: Answering, batch_reference: str | None, task: str | None, by: str, limit: int) -> int:
    """Most frequent kinds, codes, severities or languages; paths with most diagnostics; where a metric is greatest."""
    question = ask(answering, batch_reference)
    if by.startswith(METRIC):
        metric = by.removeprefix(METRIC)
        greatest = questions.rank_metric(question, metric, limit=limit, task=task)
        lines = table(((value, place) for place, value in greatest.found), ("value", metric))
        return answer_rows(answering, greatest, dict(greatest.found), lines)
    answer = questions.rank(question, msgspec.convert(by, Ranking), task)
    ranked = answer.found[:limit]
    if by == "code" and not answering.as_json:
        return answer_rows(answering, answer, (), _code_lines(question, ranked, task))
    return answer_rows(answering, answer, dict(ranked), table(((count, name) for name, count in ranked), ("count", by)))


@click.command()
@click.argument("path", metavar="FILE")
@asked_batch_option
@click.option("--kinds", metavar="A,B", help="Only these kinds of records.")
@answering
def inspect(answering: Answering, path: str, batch_reference: str | None, kinds: str | None) -> int:
    """Everything a batch says of one file."""
    question = ask(answering, batch_reference)
    named = () if kinds is None else tuple(kinds.split(","))
    asked = RecordFilter(kinds=named or _kinds_shown(answering))
    answer = questions.inspect(question, path, asked, kinds=named)
    found = answer.found
    document: dict[str, object] = {**path_row(found.path), "batch_id": question.batch.id, "records": found.records}
    lines = [record_line(record) for record in found.records]
    if answering.explain:
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
    form, answering = _form(answering, asked)
    wanted = asked.records.check()
    wanted.refuse_impossible()
    if asked.is_count or asked.group_by or asked.noun == "stats":
        return _answer_counts(answering, question, asked, form)
    named = wanted.named_kinds
    if not wanted.kinds and form not in FOR_PROGRAMS:
        wanted = msgspec.structs.replace(wanted, kinds=KINDS_SHOWN)
    fields = asked.shape.fields
    answer = questions.search_lazily(question, wanted, task=asked.task, kinds=named, shape=asked.shape)
    languages = question.records.languages_for(wanted, fields)

    def as_json(record: JsonRecord) -> JsonRecord:
        return chosen(record, fields, languages) if fields else record

    if form in STREAMED:
        rows: Iterable[JsonRecord] = answer.found
    else:
        rows = list(answer.found)  # What is damaged is met before anything is written.
    if form == "json":
        return answer_rows(answering, answer, list(map(as_json, rows)), ())
    if form == "plain" and not fields and is_colored(asked.color):
        return answer_written(answering, answer, partial(write_colored, rows))
    if form == "plain" and not fields:
        return answer_rows(answering, answer, (), map(record_line, rows))
    columns = fields or columns_of(form, wanted.possible_kinds)
    write = partial(write_rows, form, rows, columns, lambda row, field: value_of(row, field, languages), as_json)
    return answer_written(answering, answer, write)


def _answer_counts(answering: Answering, question: Question, asked: Asked, form: Form) -> int:
    field = asked.group_by or "kind"
    kinds = asked.records.named_kinds
    answer = questions.count_by(question, asked.records, field, task=asked.task, kinds=kinds)
    rows: list[JsonRecord]
    columns: tuple[str, ...]
    if asked.is_count:
        rows, columns = [{"count": answer.found.total}], ("count",)
        document: dict[str, int] = {"count": answer.found.total}
    else:
        end = asked.shape.limit and asked.shape.offset + asked.shape.limit
        groups = answer.found.counts[asked.shape.offset : end]
        rows, columns = [{"count": count, field: value} for value, count in groups], ("count", field)
        document = dict(groups)
        if answer.found.absent:
            answering.note(f"{count_of(answer.found.absent, 'record')} without {field}")
    if form == "json":
        return answer_rows(answering, answer, document, ())
    if asked.form is None and not asked.is_count:
        return answer_rows(answering, answer, (), table(((row["count"], row[field]) for row in rows), columns))
    write = partial(write_rows, form, rows, columns, JsonRecord.get, lambda row: row)
    return answer_written(answering, answer, write)


def _form(answering: Answering, asked: Asked) -> tuple[Form, Answering]:
    """The form of the answer; under `-o json` all is as under `--json`. Raises InvalidInput."""
    if answering.as_json and asked.form not in (None, "json"):
        raise InvalidInput(f"-o {asked.form} means nothing beside --json")
    form: Form = "json" if answering.as_json else asked.form or "plain"
    return form, msgspec.structs.replace(answering, as_json=form == "json")


for noun, told in (
    ("outputs", "Records of every kind; for people, without those that are for machines."),
    ("diagnostics", "Diagnostics."),
    ("symbols", "What is defined where."),
    ("edges", "Imports, calls, inheritance, and which file depends on which."),
    ("metrics", "Numbers about files and functions."),
    ("files", "What each file is."),
    ("failures", "What a task could not do."),
    ("duplicates", "Blocks of code that stand at several places."),
    ("stats", "How many records of every kind there are, or of every value of another field."),
):
    _add_noun(noun, told)


def _code_lines(question: Question, ranked: list[tuple[str, int]], task: str | None) -> list[str]:
    """Codes, with what severities they stand in the batch, and what they find: the rule says it, or a first message."""
    from codebatch.system.plugins import load_question  # 2 ms, which no other answer takes

    found = questions.describe_codes(question, [code for code, _ in ranked], task)
    rules = cast("list[dict[str, object]]", load_question("list_rules")({}))
    finds = {rule["code"]: rule["summary"] for rule in rules if rule["summary"]}
    cells = ((count, code, found[code][0], finds.get(code, found[code][1])) for code, count in ranked)
    return table(([printable(str(cell)) for cell in row] for row in cells), ("count", "code", "severity", "finds"))


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
