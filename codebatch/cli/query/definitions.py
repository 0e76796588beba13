"""The commands `def`, `callers` and `implementations` about a name, and `outline` about a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import click

from codebatch.cli.answers.empty_answers import emit_search
from codebatch.cli.answers.file_groups import LIMIT_DEFAULT_TEXT, PlaceCells, RowStyle, emit_file_groups
from codebatch.cli.framework.answer_printing import emit_rows, open_queried_batch
from codebatch.cli.framework.commands import command
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.completion import complete_file
from codebatch.cli.framework.context import (
    CommandContext,
    OutputForm,
    path_option,
    query_batch_option,
    with_common_options,
)
from codebatch.cli.framework.format_option import form_option, resolve_form
from codebatch.cli.framework.path_arguments import path_clause, path_restriction, paths_argument
from codebatch.cli.output.records import implementation_line, record_line, resolution_mark
from codebatch.cli.query.symbol_options import (
    certainty_mark,
    definition_option,
    exact_option,
)
from codebatch.model.entry import display_path
from codebatch.query.fields import JsonRecord, record_path

_IMPLEMENTATION_COLUMNS = (
    "path", "line", "column", "symbol_type", "qualified", "relation", "base", "distance", "resolution"
)  # fmt: skip
_CALLER_COLUMNS = ("path", "line", "scope", "target", "calls", "resolution")


@command("def")
@click.argument("name")
@query_batch_option
@with_common_options
def define(context: CommandContext, name: str, batch_reference: str | None) -> int:
    """Find the definitions of a name.

    NAME can be qualified, such as Class.method. Imports of a name are not definitions.

    If nothing is found, files that were not parsed completely and ignored files are searched for the text of NAME. If
    they contain it, they are listed (exit status 3).
    """
    batch = open_queried_batch(context, batch_reference)
    answer = batch.definitions(name)
    lines = map(record_line, answer.result)
    return emit_search(context, answer, answer.result, lines, f"definition of {name}")


@command()
@click.argument("name")
@paths_argument
@query_batch_option
@path_option
@definition_option
@exact_option
@common_option("limit", help="Maximum number of files", default_text=LIMIT_DEFAULT_TEXT)
@form_option
@with_common_options
def callers(
    context: CommandContext,
    name: str,
    paths: tuple[str, ...],
    batch_reference: str | None,
    definition: str,
    is_exact: bool,
    path: str,
    limit: int | None,
    form: OutputForm | None,
) -> int:
    """List the functions that call a name.

    Each function is listed with its first call and its number of calls. Calls that refer to another definition of NAME
    are left out. A call is marked if it is not certain that it refers to a definition in the project: see
    `codebatch help languages`.

    Each PATH restricts the list to a file or to the files below a directory.

    On a terminal, functions are grouped by file. Otherwise, each is one line.

    If nothing is found, files that were not parsed completely and ignored files are searched for the text of NAME. If
    they contain it, they are listed (exit status 3).
    """
    form, context = resolve_form(context, form)
    batch = open_queried_batch(context, batch_reference)
    paths_restriction = path_restriction(batch, paths, path)
    answer = batch.callers(name, paths_restriction, definition=definition, is_exact=is_exact)
    rows = [caller.row for caller in answer.result]
    style = RowStyle("calling function", _CALLER_COLUMNS, _call_line, _call_cells)
    return emit_file_groups(
        context, answer, rows, f"calls of {name}{path_clause(paths_restriction)}", style, form, limit
    )


@command()
@click.argument("name")
@paths_argument
@query_batch_option
@path_option
@definition_option
@common_option("limit", help="Maximum number of files", default_text=LIMIT_DEFAULT_TEXT)
@form_option
@with_common_options
def implementations(
    context: CommandContext,
    name: str,
    paths: tuple[str, ...],
    batch_reference: str | None,
    definition: str,
    path: str,
    limit: int | None,
    form: OutputForm | None,
) -> int:
    """List the types that inherit a type, or the methods that override a method.

    NAME is a class, interface, trait or protocol, also one of a library, or a method such as Class.method. Types that
    inherit it indirectly are listed, too. In Go, types implement each interface whose methods they have. A row is
    marked if it is not certain.

    Each PATH restricts the list to a file or to the files below a directory.
    """
    form, context = resolve_form(context, form)
    batch = open_queried_batch(context, batch_reference)
    paths_restriction = path_restriction(batch, paths, path)
    answer = batch.implementations(name, paths_restriction, definition=definition)
    rows = [implementation.row for implementation in answer.result]
    style = RowStyle("implementation", _IMPLEMENTATION_COLUMNS, implementation_line, _implementation_cells)
    subject = f"implementations of {name}{path_clause(paths_restriction)}"
    return emit_file_groups(context, answer, rows, subject, style, form, limit)


@command()
@click.argument("path", metavar="FILE", shell_complete=complete_file)
@query_batch_option
@with_common_options
def outline(context: CommandContext, path: str, batch_reference: str | None) -> int:
    """List the definitions in a file.

    Definitions are listed in the order of the file. Nested definitions are indented below the enclosing definition.
    """
    answer = open_queried_batch(context, batch_reference).outline(path)
    symbols = answer.result.records
    if_none = f"no definitions in {display_path(answer.result.path)}"
    return emit_rows(context, answer, symbols, _outline_lines(symbols), if_none=if_none)


def _call_line(row: JsonRecord) -> str:
    times = f", {row['calls']} times" if row["calls"] != 1 else ""
    call = f"{row['scope'] or '(file)'} calls {row['target']}{times}{certainty_mark(row)}"
    return f"{record_path(row)}:{row['line']}: {call}"


def _call_cells(rows: Sequence[JsonRecord]) -> Iterator[PlaceCells]:
    """Yield the line, scope and call of calling functions in one file."""
    for row in rows:
        times = f", {row['calls']} times" if row["calls"] != 1 else ""
        yield str(row["line"]), str(row["scope"] or "(file)"), f"calls {row['target']}{times}{certainty_mark(row)}"


def _implementation_cells(rows: Sequence[JsonRecord]) -> Iterator[PlaceCells]:
    """Yield the place, type and text of implementations in one file."""
    for row in rows:
        text = f"{row['relation']} {row['base']}{resolution_mark(row)}"
        yield f"{row['line']}:{row['column']}", f"{row['symbol_type']} {row['qualified']}", text


def _outline_lines(symbols: Iterable[JsonRecord]) -> Iterator[str]:
    """Yield a line for each symbol, indented by the depth of its nesting in other symbols."""
    enclosing: list[object] = []
    for symbol in symbols:
        while enclosing and symbol["scope"] != enclosing[-1]:
            enclosing.pop()
        parameters = symbol.get("parameters", [])
        signature = f"({', '.join(map(str, parameters))})" if isinstance(parameters, list) and parameters else ""
        yield f"{symbol['line']:>6}  {'  ' * len(enclosing)}{symbol['symbol_type']} {symbol['name']}{signature}"
        enclosing.append(symbol["qualified"])
