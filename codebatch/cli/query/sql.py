"""`sql`: SQL queries of the records of a batch."""

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

from codebatch.cli.framework.answers import ask, emit_document, emit_formatted
from codebatch.cli.framework.commands import HelpfulCommand, command
from codebatch.cli.framework.context import CommandContext, Form, asked_batch_option, with_common_options
from codebatch.cli.framework.format_option import form_option
from codebatch.cli.framework.formats import STREAMED, write_rows
from codebatch.errors import InvalidInput
from codebatch.model.task import Json
from codebatch.operations.queries.batch_query import Answer
from codebatch.operations.queries.sql import Rows
from codebatch.query.fields import JsonRecord

_INTEGER_BITS = 64
"""What JSON's readers hold. DuckDB's greatest have twice as many."""
_COMMENT = re.compile(r"--[^\s=]*\s")


class StatementCommand(HelpfulCommand):
    """A command whose argument may begin with a comment of SQL, which looks like an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [f"\n{each}" if _COMMENT.match(each) else each for each in args])


@command(cls=StatementCommand)
@click.argument("statement", metavar="STATEMENT")
@asked_batch_option
@form_option
@with_common_options
def sql(answering: CommandContext, statement: str, batch_reference: str | None, form: Form | None) -> int:
    """Query the records of a batch with SQL.

    STATEMENT is one SELECT statement. DuckDB runs the statement; `pip install 'codebatch[sql]'` installs DuckDB. These
    views can be queried:

    \b
    files       one row per file, with its metrics and number of findings
    functions   one row per function, with its metrics
    findings    one row per finding, with language and enclosing function
    file diagnostic metric symbol edge failure ast fingerprints duplicate
                the records of one kind, with their fields as columns

    `codebatch sql "describe files"` lists the columns of a view.
    """
    if answering.as_json and form not in (None, "json"):
        raise InvalidInput(f"-o {form} cannot be used with --json")
    form = "json" if answering.as_json else form or "table"
    answering = msgspec.structs.replace(answering, as_json=form == "json")
    batch = ask(answering, batch_reference)
    with _ended_in_order(), batch.sql(statement) as answer:
        return _answer(answering, answer, form)


def _answer(answering: CommandContext, answer: Answer[Rows], form: Form) -> int:
    columns = [column.name for column in answer.found.columns]
    found = (dict(zip(columns, map(_plain, row), strict=True)) for row in answer.found.rows)
    if form in STREAMED:
        first = next(found, None)
        rows: Iterable[JsonRecord] = () if first is None else chain((first,), found)
    else:
        rows = list(found)  # What DuckDB refuses while it answers is met before anything is written.
    if form == "json":
        named = [column._asdict() for column in answer.found.columns]
        document: dict[str, object] = {"batch_id": answer.question.batch.id, "columns": named, "rows": rows}
        return emit_document(answering, answer, document, ())
    write = partial(write_rows, form, rows, columns, _shown)
    return emit_formatted(answering, answer, write, if_none="" if rows else "no rows")


def _plain(value: object) -> Json:
    """A value of DuckDB's as JSON has it. What JSON has no form for is the text that DuckDB would show."""
    match value:
        case None | str() | bool():
            return value
        case int():
            return value if value.bit_length() < _INTEGER_BITS else str(value)
        case float():
            return value if value - value == 0 else None  # Neither infinite nor no number.
        case Decimal():
            return float(value)
        case list() | tuple():
            return [_plain(each) for each in value]
        case dict():
            return {str(key): _plain(each) for key, each in value.items()}
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case _:
            return str(value)


def _shown(row: JsonRecord, column: str) -> Json:
    value = row[column]
    return msgspec.json.encode(value).decode() if isinstance(value, dict) else value


@contextlib.contextmanager
def _ended_in_order() -> Iterator[None]:
    """Have a signal that ends us be an exception, so that no copy of records stays behind."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    numbers = [each for each in (signal.SIGHUP, signal.SIGTERM) if signal.getsignal(each) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)
