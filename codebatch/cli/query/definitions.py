"""The commands `def`, `callers` and `outline`: the definitions and callers of a name, and the definitions in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from codebatch.cli.answers.empty_results import search_volume_text
from codebatch.cli.framework.answer_printing import emit_rows, open_queried_batch
from codebatch.cli.framework.commands import command
from codebatch.cli.framework.completion import complete_file
from codebatch.cli.framework.context import CommandContext, query_batch_option, with_common_options
from codebatch.cli.output.records import record_line
from codebatch.model.entry import display_path
from codebatch.query.fields import JsonRecord, record_path


@command("def")
@click.argument("name")
@query_batch_option
@with_common_options
def define(context: CommandContext, name: str, batch_reference: str | None) -> int:
    """Find the definitions of a name.

    NAME can be qualified, such as Class.method. Imports of a name are not definitions.
    """
    batch = open_queried_batch(context, batch_reference)
    answer = batch.definitions(name)
    lines = map(record_line, answer.result)
    if_none = "" if answer.result else f"no definition of {name} (searched {search_volume_text(batch, 'symbol')})"
    return emit_rows(context, answer, answer.result, lines, if_none=if_none)


@command()
@click.argument("name")
@query_batch_option
@with_common_options
def callers(context: CommandContext, name: str, batch_reference: str | None) -> int:
    """List the functions that call a name.

    Each function is listed with its first call and its number of calls. Calls are found by name, so calls of other
    functions with this name are listed too.
    """
    batch = open_queried_batch(context, batch_reference)
    answer = batch.callers(name)
    rows = [caller.row for caller in answer.result]
    if_none = "" if rows else f"no calls of {name} (searched {search_volume_text(batch, 'edge')})"
    return emit_rows(context, answer, rows, map(_call_line, rows), if_none=if_none)


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
    return f"{record_path(row)}:{row['line']}: {row['scope'] or '(file)'} calls {row['target']}{times}"


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
