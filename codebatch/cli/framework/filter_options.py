"""Options of `query` by name: filters of records, the order of rows, and the output format."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, get_args

import click
from click.core import ParameterSource

from codebatch.cli.framework.commands import option
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.context import path_option
from codebatch.cli.framework.format_option import form_option
from codebatch.model.record import RECORD_KINDS, SEVERITIES, SymbolType

F = TypeVar("F", bound=Callable[..., object])
OptionDecorator = Callable[[F], F]


def _refuse_empty_value(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not value and ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE:
        # An empty value usually comes from an unset variable.
        raise click.BadParameter("must not be empty", ctx, param)
    return value


task_option = option("--task", "task", metavar="NAME", help="Only results of this task")

FILTER_OPTIONS: dict[str, OptionDecorator[Callable[..., object]]] = {
    "--kind": option(
        "--kind", "kind", multiple=True, metavar="KIND", help=f"Only this kind: {', '.join(RECORD_KINDS)}"
    ),
    "--severity": option(
        "--severity",
        "severity",
        multiple=True,
        metavar="SEVERITY",
        type=click.Choice(SEVERITIES),
        help=f"Only this severity: {', '.join(SEVERITIES[:-1])} or {SEVERITIES[-1]}",
    ),
    "--code": option(
        "--code", "code", multiple=True, metavar="RULE", help="Only this rule ID, or a prefix such as E7*"
    ),
    "--tool": option("--tool", "tool", multiple=True, metavar="TOOL", help="Only findings of this tool"),
    "--name": option(
        "--name", "name", multiple=True, metavar="NAME", help="Only symbols with this name, or a prefix such as get_*"
    ),
    "--symbol-type": option(
        "--symbol-type",
        "symbol_type",
        multiple=True,
        metavar="TYPE",
        type=click.Choice(get_args(SymbolType)),
        help="Only symbols of this type, such as function or class",
    ),
    "--metric": option("--metric", "metric", multiple=True, metavar="NAME", help="Only metrics with this name"),
    "--lang": common_option("lang"),
    "--path": path_option,
    "--where": option(
        "--where",
        "where",
        metavar="CONDITION",
        default="",
        callback=_refuse_empty_value,
        help="Only records that satisfy a condition on their fields",
        details="An example is 'value > 20 and not glob(path, \"tests/**\")'.",
    ),
    "--task": task_option,
}
SHAPE_OPTIONS: dict[str, OptionDecorator[Callable[..., object]]] = {
    "--sort": option(
        "--sort",
        "sort",
        metavar="FIELD",
        default="",
        callback=_refuse_empty_value,
        help="Sort by this field; -FIELD sorts in descending order",
    ),
    "--limit": common_option("limit"),
    "--offset": option(
        "--offset", "offset", metavar="N", type=click.IntRange(min=0), default=0, help="Skip the first N results"
    ),
    "--fields": option(
        "--fields",
        "fields",
        metavar="FIELD,...",
        default="",
        callback=_refuse_empty_value,
        help="Print only these fields",
    ),
    "--count": option("--count", "is_count", is_flag=True, help="Print only the number of results"),
    "--group-by": option(
        "--group-by",
        "group_by",
        metavar="FIELD",
        default="",
        callback=_refuse_empty_value,
        help="Count the results by the value of a field",
    ),
    "--output": form_option,
}
FILTER_OPTIONS.update(SHAPE_OPTIONS)


def filter_options(*names: str) -> Callable[[F], F]:
    """Return a decorator that adds the named options of `query` to a command."""

    def decorate(function: F) -> F:
        for name in reversed(names):
            function = FILTER_OPTIONS[name](function)  # type: ignore[assignment]
        return function

    return decorate
