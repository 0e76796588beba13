"""The commands `summary`, `errors`, `top` and `query`: queries of one batch."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from itertools import chain
from typing import get_args

import click
import msgspec

from codebatch.cli.answers.empty_results import no_records_note
from codebatch.cli.framework.answer_printing import emit_document, emit_formatted, emit_rows, open_queried_batch
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.context import (
    CommandContext,
    OutputForm,
    query_batch_option,
    table_lines,
    with_common_options,
)
from codebatch.cli.framework.filter_options import task_option
from codebatch.cli.framework.format_option import resolve_form
from codebatch.cli.framework.formats import (
    FORMS_FOR_PROGRAMS,
    STREAMED_FORMS,
    default_columns,
    write_painted_records,
    write_rows,
)
from codebatch.cli.framework.groups import CommandGroup, group_with_common_options
from codebatch.cli.framework.path_arguments import path_restriction, paths_argument
from codebatch.cli.framework.record_types import RecordQuery, RecordTypeCommand, with_record_query
from codebatch.cli.output.records import record_line, summary_lines
from codebatch.model.task import JsonValue
from codebatch.model.text.quantities import count_text
from codebatch.operations.api.batch import Batch
from codebatch.query.fields import METRIC_PREFIX, JsonRecord, RankingField, record_path

ERRORS_SHOWN_DEFAULT = 50
TOP_SHOWN_DEFAULT = 10
WORST_SHOWN_DEFAULT = 10


@command()
@query_batch_option
@task_option
@with_common_options
def summary(context: CommandContext, batch_reference: str | None, task: str | None) -> int:
    """Show how many files, lines and records a batch has."""
    batch = open_queried_batch(context, batch_reference)
    answer = batch.summary(task)
    lines = summary_lines(answer.result, () if context.as_json else batch.worst(WORST_SHOWN_DEFAULT).result)
    return emit_document(context, answer, msgspec.structs.asdict(answer.result), lines)


@command()
@query_batch_option
@task_option
@common_option("limit", default_text=f"{ERRORS_SHOWN_DEFAULT}, or all with --json")
@with_common_options
def errors(context: CommandContext, batch_reference: str | None, task: str | None, limit: int | None) -> int:
    """List files that a task could not process, and findings of severity error.

    The files that a task could not process come first, each with evidence such as a traceback.
    """
    answer = open_queried_batch(context, batch_reference).errors(task)
    rows = [(row, 1) for row in answer.result] if context.as_json else _merge_equal_failures(answer.result)
    displayed_rows = rows if limit is None and context.as_json else rows[: limit or ERRORS_SHOWN_DEFAULT]
    lines = (line for row, count in displayed_rows for line in _failure_lines(row, count))
    status = emit_rows(context, answer, [row for row, _ in displayed_rows], lines, if_none="no errors")
    if len(displayed_rows) < len(rows):
        context.note(f"{len(rows) - len(displayed_rows):,} more; show them with --limit {len(rows)}")
    return status


@command()
@query_batch_option
@task_option
@option(
    "--by",
    metavar="FIELD",
    default="kind",
    show_default=True,
    help=f"Field to count by, or {METRIC_PREFIX}NAME to list the greatest values of a metric",
    details=(
        f"Fields are {', '.join(get_args(RankingField))}, and other fields of records such as name, target or class."
    ),
)
@common_option("limit", default_text=f"{TOP_SHOWN_DEFAULT}, or all with --json")
@with_common_options
def top(context: CommandContext, batch_reference: str | None, task: str | None, by: str, limit: int | None) -> int:
    """Count records by kind, rule, path or another field.

    Prints the most frequent values first. For a metric, prints the files or functions with the greatest values.
    """
    batch = open_queried_batch(context, batch_reference)
    if limit is None and not context.as_json:
        limit = TOP_SHOWN_DEFAULT
    answer = batch.top(by, limit=limit, task=task)
    if by == "code" and not context.as_json:
        return emit_rows(context, answer, (), _rule_code_lines(batch, answer.result, task))
    header = ("value", by.removeprefix(METRIC_PREFIX)) if by.startswith(METRIC_PREFIX) else ("count", by)
    lines = table_lines(((count, name) for name, count in answer.result), header, paths=("path", "dir"))
    return emit_rows(context, answer, dict(answer.result), lines)


_HELP_BY_NOUN = {
    "outputs": "List records of every kind",
    "diagnostics": "List findings",
    "symbols": "List definitions",
    "edges": "List edges: imports, calls, inheritance and file dependencies",
    "metrics": "List metrics of files and functions",
    "files": "List files with their language, class and number of lines",
    "failures": "List files that a task could not process",
    "duplicates": "List duplicate blocks",
    "stats": "Count records by kind or by another field",
}


class RecordTypeGroup(CommandGroup):
    """The group of record types.

    A process calls only one of these commands, so each command is created only when it is called.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_HELP_BY_NOUN)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _noun_command(cmd_name) if cmd_name in _HELP_BY_NOUN else None


@click.group(cls=RecordTypeGroup)
@group_with_common_options
def query() -> None:
    """Filter, sort and count the records of a batch."""


@cache
def _noun_command(noun: str) -> click.Command:
    @with_common_options
    @paths_argument
    @query_batch_option
    @with_record_query(noun)
    def records(
        context: CommandContext, paths: tuple[str, ...], batch_reference: str | None, query: RecordQuery
    ) -> int:
        batch = open_queried_batch(context, batch_reference)
        if paths:
            query.filters["path"] = path_restriction(batch, paths, str(query.filters.get("path", "")))
        return _answer_records(context, batch, query)

    more = (
        " Text output leaves out records of the kinds `fingerprints` and `names`, which are for programs."
        if noun == "outputs"
        else ""
    )
    paths = "Each PATH restricts the answer to a file or to the files below a directory."
    return click.command(noun, cls=RecordTypeCommand, help=f"{_HELP_BY_NOUN[noun]}.\n\n{paths}{more}")(records)


def _answer_records(context: CommandContext, batch: Batch, query: RecordQuery) -> int:
    chosen, context = resolve_form(context, query.form)
    form: OutputForm = chosen or "plain"
    if query.is_count or query.group_by or query.noun == "stats":
        return _answer_counts(context, batch, query, form)
    fields = query.fields
    answer = batch.outputs(
        for_machines=form in FORMS_FOR_PROGRAMS,
        **query.filters,
        sort=query.sort,
        offset=query.offset,
        limit=query.limit,
        fields=fields or None,
    )
    if form in STREAMED_FORMS:
        records_found = iter(answer.result)
        first = next(records_found, None)
        rows: Iterable[JsonRecord] = () if first is None else chain((first,), records_found)
    else:
        rows = list(answer.result)  # All records are read first, so that damage is reported before any output.
    if_none = "" if rows else no_records_note(batch, query)
    if form == "json":
        # With `--fields`, records lack some fields, so the schema of the answer does not apply.
        return emit_rows(context, answer, rows, (), if_none=if_none, name="" if fields else None)
    paint = context.painter
    if form == "plain" and not fields and paint is not None:
        return emit_formatted(context, answer, partial(write_painted_records, rows, paint), if_none=if_none)
    if form == "plain" and not fields:
        return emit_rows(context, answer, (), map(record_line, rows), if_none=if_none)
    columns = fields or default_columns(form, answer.asked.possible_kinds)
    write = partial(write_rows, form, rows, columns, *((_field_value,) if fields else ()))
    return emit_formatted(context, answer, write, if_none=if_none)


def _field_value(row: JsonRecord, field: str) -> JsonValue:
    """Return a field of a row that has only the selected fields. Paths are returned in display form."""
    return record_path(row, field) if f"{field}_b64" in row else row.get(field)


def _answer_counts(context: CommandContext, batch: Batch, query: RecordQuery, form: OutputForm) -> int:
    field = query.group_by or "kind"
    answer = batch.stats(field, **query.filters)
    rows: list[JsonRecord]
    columns: tuple[str, ...]
    if query.is_count:
        rows, columns = [{"count": answer.result.total}], ("count",)
        document: dict[str, int] = {"count": answer.result.total}
    else:
        end = query.limit and query.offset + query.limit
        groups = answer.result.counts[query.offset : end]
        rows, columns = [{"count": count, field: value} for value, count in groups], ("count", field)
        document = dict(groups)
        if answer.result.absent:
            context.note(f"not counted: {count_text(answer.result.absent, 'record')} without the field {field}")
    if_none = "" if rows or answer.result.absent else no_records_note(batch, query)
    if form == "json":
        return emit_rows(context, answer, document, (), if_none=if_none)
    if query.form is None and not query.is_count:
        lines = (
            table_lines(((row["count"], row[field]) for row in rows), columns, paths=("path", "dir")) if rows else []
        )
        return emit_rows(context, answer, (), lines, if_none=if_none)
    write = partial(write_rows, form, rows, columns, JsonRecord.get)
    return emit_formatted(context, answer, write, if_none=if_none)


def _rule_code_lines(batch: Batch, ranked: list[tuple[str, int]], task: str | None) -> list[str]:
    """Return a table of rules: count, ID, severity and description.

    The description is the summary of the rule or, for an unknown rule, the message of its first finding.
    """
    from codebatch.plugins.worker_services import language_services  # Other answers do not need this import.

    descriptions = batch.describe_codes([code for code, _ in ranked], task).result
    rules = language_services().list_rules({})
    finds = {rule["code"]: rule["summary"] for rule in rules if rule["summary"]}
    cells = ((count, code, descriptions[code][0], finds.get(code, descriptions[code][1])) for code, count in ranked)
    return table_lines(cells, ("count", "rule", "severity", "detects"))


def _merge_equal_failures(rows: Iterable[JsonRecord]) -> list[tuple[JsonRecord, int]]:
    """Return rows with their number of occurrences: failures first, then all other rows. Equal failures are one row."""
    from codebatch.operations.queries.failure_evidence import group_equal_failures

    all_rows = list(rows)
    failures = group_equal_failures(row for row in all_rows if row.get("kind") == "failure")
    return [*failures, *((row, 1) for row in all_rows if row.get("kind") != "failure")]


def _failure_lines(row: JsonRecord, count: int) -> list[str]:
    evidence = str(row.get("evidence") or "").strip()
    suffix = f", and in {count_text(count - 1, 'other file')}" if count > 1 else ""
    return [record_line(row) + suffix, *(f"    {line}" for line in evidence.splitlines()[-8:])]
