"""The options of `query`: one parser of them for every noun, which has those that mean something for its records."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar, get_args

import click
import msgspec
from click.core import ParameterSource

from codebatch.errors import InvalidInput
from codebatch.model.record import KINDS, SEVERITIES, SymbolType
from codebatch.query.filters import RecordFilter

F = TypeVar("F", bound=Callable[..., object])
Option = Callable[[F], F]


def _refuse_empty(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not value and ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE:
        raise click.BadParameter("it is empty", ctx, param)  # An unset variable, which asks for nothing.
    return value


path_option = click.option(
    "--path",
    "path",
    metavar="TEXT",
    default="",
    help="Only paths that contain this, case ignored; with * ? or [, a pattern as in .gitignore.",
)

_OPTIONS: dict[str, Option[Callable[..., object]]] = {
    "--kind": click.option(
        "--kind", "kinds", multiple=True, metavar="KIND", help=f"One of {', '.join(KINDS)}; may be repeated."
    ),
    "--severity": click.option(
        "--severity", "severities", multiple=True, type=click.Choice(SEVERITIES), help="May be repeated."
    ),
    "--code": click.option("--code", "codes", multiple=True, metavar="CODE", help="A rule; a * at the end: a prefix."),
    "--tool": click.option("--tool", "tools", multiple=True, metavar="TOOL", help="Who found it."),
    "--name": click.option(
        "--name", "names", multiple=True, metavar="NAME", help="Symbols of this name; a * at the end: a prefix."
    ),
    "--symbol-type": click.option(
        "--symbol-type",
        "symbol_types",
        multiple=True,
        metavar="TYPE",
        type=click.Choice(get_args(SymbolType)),
        help="Symbols that are this: function, class, …; may be repeated.",
    ),
    "--metric": click.option("--metric", "metrics", multiple=True, metavar="NAME", help="Metrics of this name."),
    "--lang": click.option(
        "--lang", "languages", multiple=True, metavar="NAME", help="Only in files of this language."
    ),
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
    "--limit": click.option("--limit", "limit", type=click.IntRange(min=1), help="At most so many."),
}
_OF_ALL = ("--lang", "--path", "--where", "--task", "--limit")


class Noun(NamedTuple):
    """What `query` can be asked for: the kinds of its records, none where they are of every kind, and its options."""

    kinds: tuple[str, ...]
    options: tuple[str, ...]


NOUNS = {
    "outputs": Noun((), ("--kind", "--severity", "--code", "--tool", "--name", "--symbol-type", "--metric", *_OF_ALL)),
    "diagnostics": Noun(("diagnostic",), ("--severity", "--code", "--tool", *_OF_ALL)),
    "symbols": Noun(("symbol",), ("--name", "--symbol-type", *_OF_ALL)),
    "edges": Noun(("edge",), _OF_ALL),
    "metrics": Noun(("metric",), ("--metric", *_OF_ALL)),
    "files": Noun(("file",), _OF_ALL),
    "failures": Noun(("failure",), _OF_ALL),
    "duplicates": Noun(("duplicate",), _OF_ALL),
}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the options of a noun ask for: which records, of which task, how many."""

    noun: str
    records: RecordFilter
    task: str | None
    limit: int | None


class NounCommand(click.Command):
    """A noun of `query`. An option that only others have is refused with their names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            able = [noun for noun, about in NOUNS.items() if error.option_name in about.options]
            if not able:
                raise
            told = f"{error.option_name} means nothing for {self.name}"
            hint = f"those that have it: {', '.join(f'query {noun}' for noun in able)}"
            raise InvalidInput(told, hint=hint) from error


def filtering(noun: str) -> Callable[[F], F]:
    """Give a command the options of a noun, as one `asked` argument."""

    def decorate(function: F) -> F:
        def wrapped(*, task: str | None, limit: int | None, **arguments: object) -> object:
            fields = {name: arguments.pop(name) for name in RecordFilter.__struct_fields__ if name in arguments}
            fields.setdefault("kinds", NOUNS[noun].kinds)
            asked = msgspec.convert(fields, RecordFilter)
            return function(asked=Asked(noun=noun, records=asked, task=task, limit=limit), **arguments)

        wrapped.__name__ = function.__name__
        wrapped.__doc__ = function.__doc__
        for option in reversed(NOUNS[noun].options):
            wrapped = _OPTIONS[option](wrapped)
        return wrapped  # type: ignore[return-value]

    return decorate
