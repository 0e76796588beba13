"""The command `sql`: SQL queries of the records of a batch."""

from __future__ import annotations

import contextlib
import re
import signal
from collections.abc import Iterable, Iterator
from decimal import Decimal
from functools import partial
from itertools import chain
from types import FrameType

import click
import msgspec

from codebatch.cli.framework.answer_printing import emit_document, emit_formatted, open_queried_batch
from codebatch.cli.framework.commands import HelpfulCommand, command
from codebatch.cli.framework.context import CommandContext, OutputForm, query_batch_option, with_common_options
from codebatch.cli.framework.format_option import form_option, resolve_form
from codebatch.cli.framework.formats import STREAMED_FORMS, write_rows
from codebatch.model.task import JsonValue
from codebatch.operations.queries.batch_query import Answer
from codebatch.operations.queries.sql import SqlResult
from codebatch.query.fields import JsonRecord

_INTEGER_BITS = 64
"""Number of bits that JSON readers support in integers. DuckDB has integers of up to 128 bits."""
_SQL_COMMENT = re.compile(r"--[^\s=]*\s")


class StatementCommand(HelpfulCommand):
    """A command whose argument may begin with an SQL comment (`--`), although options begin in the same way."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(
            ctx, [f"\n{argument}" if _SQL_COMMENT.match(argument) else argument for argument in args]
        )


@command(cls=StatementCommand)
@click.argument("statement", metavar="STATEMENT")
@query_batch_option
@form_option
@with_common_options
def sql(context: CommandContext, statement: str, batch_reference: str | None, form: OutputForm | None) -> int:
    """Query the records of a batch with SQL.

    STATEMENT is one SELECT statement. DuckDB runs the statement; the extra `sql` of codebatch installs DuckDB. These
    views can be queried:

    \b
    files       one row per file, with its metrics and number of findings
    functions   one row per function, with its metrics
    findings    one row per finding, with language and enclosing function
    diagnostics metrics symbols edges failures asts changes fingerprints names duplicates omissions
                the records of one kind, with their fields as columns

    `codebatch sql "describe files"` lists the columns of a view.
    """
    form, context = resolve_form(context, form)
    batch = open_queried_batch(context, batch_reference)
    with _exiting_on_signals(), batch.sql(statement) as answer:
        return _answer_sql(context, answer, form or "table")


def _answer_sql(context: CommandContext, answer: Answer[SqlResult], form: OutputForm) -> int:
    columns = [column.name for column in answer.result.columns]
    rows_found = (dict(zip(columns, map(_json_value, row), strict=True)) for row in answer.result.rows)
    if form in STREAMED_FORMS:
        first = next(rows_found, None)
        rows: Iterable[JsonRecord] = () if first is None else chain((first,), rows_found)
    else:
        rows = list(rows_found)  # All rows are read first, so that errors of DuckDB are reported before any output.
    if form == "json":
        named = [column._asdict() for column in answer.result.columns]
        document: dict[str, object] = {"batch_id": answer.question.batch.id, "columns": named, "rows": rows}
        return emit_document(context, answer, document, ())
    write = partial(write_rows, form, rows, columns, _display_cell)
    return emit_formatted(context, answer, write, if_none="" if rows else "no rows")


def _json_value(value: object) -> JsonValue:
    """Return a value of DuckDB as JSON.

    If JSON cannot represent the value, return the text that DuckDB prints for it.
    """
    match value:
        case None | str() | bool():
            return value
        case int():
            return value if value.bit_length() < _INTEGER_BITS else str(value)
        case float():
            return value if value - value == 0 else None  # JSON cannot represent infinity and NaN.
        case Decimal():
            return float(value)
        case list() | tuple():
            return [_json_value(element) for element in value]
        case dict():
            return {str(key): _json_value(element) for key, element in value.items()}
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case _:
            return str(value)


def _display_cell(row: JsonRecord, column: str) -> JsonValue:
    value = row[column]
    return msgspec.json.encode(value).decode() if isinstance(value, dict) else value


@contextlib.contextmanager
def _exiting_on_signals() -> Iterator[None]:
    """Make SIGHUP and SIGTERM raise SystemExit, so that temporary copies of records are removed at the end."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    numbers = [number_ for number_ in (signal.SIGHUP, signal.SIGTERM) if signal.getsignal(number_) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)
