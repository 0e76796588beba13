"""The options that choose records, and in what order and form they are wanted, by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, get_args

import click
from click.core import ParameterSource

from codebatch.cli.form_option import form_option
from codebatch.cli.options import path_option
from codebatch.model.record import KINDS, SEVERITIES, SymbolType

F = TypeVar("F", bound=Callable[..., object])
Option = Callable[[F], F]


def _refuse_empty(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not value and ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE:
        raise click.BadParameter("it is empty", ctx, param)  # An unset variable, which asks for nothing.
    return value


OPTIONS: dict[str, Option[Callable[..., object]]] = {
    "--kind": click.option(
        "--kind", "kind", multiple=True, metavar="KIND", help=f"One of {', '.join(KINDS)}; may be repeated."
    ),
    "--severity": click.option(
        "--severity", "severity", multiple=True, type=click.Choice(SEVERITIES), help="May be repeated."
    ),
    "--code": click.option("--code", "code", multiple=True, metavar="CODE", help="A rule; a * at the end: a prefix."),
    "--tool": click.option("--tool", "tool", multiple=True, metavar="TOOL", help="Who found it."),
    "--name": click.option(
        "--name", "name", multiple=True, metavar="NAME", help="Symbols of this name; a * at the end: a prefix."
    ),
    "--symbol-type": click.option(
        "--symbol-type",
        "symbol_type",
        multiple=True,
        metavar="TYPE",
        type=click.Choice(get_args(SymbolType)),
        help="Symbols that are this: function, class, …; may be repeated.",
    ),
    "--metric": click.option("--metric", "metric", multiple=True, metavar="NAME", help="Metrics of this name."),
    "--lang": click.option("--lang", "lang", multiple=True, metavar="NAME", help="Only in files of this language."),
    "--path": path_option,
    "--where": click.option(
        "--where",
        "where",
        metavar="CONDITION",
        default="",
        callback=_refuse_empty,
        help="A condition on fields, such as 'value > 20 and not glob(path, \"tests/**\")'.",
    ),
    "--task": click.option("--task", "task", metavar="NAME", help="Only what this task said."),
}
OF_SHAPE: dict[str, Option[Callable[..., object]]] = {
    "--sort": click.option(
        "--sort", "sort", metavar="FIELD", default="", callback=_refuse_empty, help="By this field; -FIELD: downwards."
    ),
    "--limit": click.option("--limit", "limit", type=click.IntRange(min=1), help="At most so many."),
    "--offset": click.option(
        "--offset", "offset", type=click.IntRange(min=0), default=0, help="Without the first so many."
    ),
    "--fields": click.option(
        "--fields", "fields", metavar="A,B", default="", callback=_refuse_empty, help="Only these fields of each."
    ),
    "--count": click.option("--count", "is_count", is_flag=True, help="Only how many there are."),
    "--group-by": click.option(
        "--group-by", "group_by", metavar="FIELD", default="", callback=_refuse_empty, help="How many have which value."
    ),
    "--output": form_option,
}
OPTIONS.update(OF_SHAPE)


def filter_options(*names: str) -> Callable[[F], F]:
    """Give a command some of the options that nouns have, under their names."""

    def decorate(function: F) -> F:
        for name in reversed(names):
            function = OPTIONS[name](function)  # type: ignore[assignment]
        return function

    return decorate
