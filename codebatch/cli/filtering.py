"""The options of `query`: one parser of them for every noun, which has those that mean something for its records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar, get_args

import click
import msgspec
from click.core import ParameterSource

from codebatch.cli.options import Form, path_option
from codebatch.errors import InvalidInput
from codebatch.model.record import KINDS, SEVERITIES, SymbolType
from codebatch.query.wanted import OutputFilters

F = TypeVar("F", bound=Callable[..., object])
Option = Callable[[F], F]


def _refuse_empty(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not value and ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE:
        raise click.BadParameter("it is empty", ctx, param)  # An unset variable, which asks for nothing.
    return value


_OPTIONS: dict[str, Option[Callable[..., object]]] = {
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
_OF_SHAPE = {
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
    "--output": click.option(
        "-o", "--output", "form", type=click.Choice(get_args(Form)), help="The form of the answer; --json is json."
    ),
}
_OPTIONS.update(_OF_SHAPE)
_FILTERS = OutputFilters.__annotations__
_OF_ALL = ("--lang", "--path", "--where", "--task")
_OF_RECORDS = (*_OF_ALL, *_OF_SHAPE)
_OF_OUTPUTS = ("--kind", "--severity", "--code", "--tool", "--name", "--symbol-type", "--metric")


class Noun(msgspec.Struct, frozen=True):
    """What `query` can be asked for: the kinds of its records, none where they are of every kind, and its options."""

    kinds: tuple[str, ...]
    options: tuple[str, ...]


NOUNS = {
    "outputs": Noun((), (*_OF_OUTPUTS, *_OF_RECORDS)),
    "diagnostics": Noun(("diagnostic",), ("--severity", "--code", "--tool", *_OF_RECORDS)),
    "symbols": Noun(("symbol",), ("--name", "--symbol-type", *_OF_RECORDS)),
    "edges": Noun(("edge",), _OF_RECORDS),
    "metrics": Noun(("metric",), ("--metric", *_OF_RECORDS)),
    "files": Noun(("file",), _OF_RECORDS),
    "failures": Noun(("failure",), _OF_RECORDS),
    "duplicates": Noun(("duplicate",), _OF_RECORDS),
    "stats": Noun((), (*_OF_OUTPUTS, *_OF_ALL, "--limit", "--offset", "--group-by", "--output")),
}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the options of a noun ask for: which records, in what order and form; or how many."""

    noun: str
    filters: OutputFilters
    sort: str = ""
    offset: int = 0
    limit: int | None = None
    fields: tuple[str, ...] = ()
    form: Form | None
    is_count: bool = False
    group_by: str = ""


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


def filter_options(*names: str) -> Callable[[F], F]:
    """Give a command some of the options that nouns have, under their names."""

    def decorate(function: F) -> F:
        for name in reversed(names):
            function = _OPTIONS[name](function)  # type: ignore[assignment]
        return function

    return decorate


def filtering(noun: str) -> Callable[[F], F]:
    """Give a command the options of a noun, as one `asked` argument."""

    def decorate(function: F) -> F:
        def wrapped(**arguments: object) -> object:
            filters = {name: value for name in _FILTERS if (value := arguments.pop(name, None)) not in (None, ())}
            asked = {name: arguments.pop(name) for name in Asked.__struct_fields__ if name in arguments}
            asked["fields"] = _names(asked.get("fields"))
            filters |= {"kind": NOUNS[noun].kinds} if NOUNS[noun].kinds else {}
            found = msgspec.convert({**asked, "noun": noun, "filters": filters}, Asked)
            return function(asked=_checked(found), **arguments)

        wrapped.__name__ = function.__name__
        wrapped.__doc__ = function.__doc__
        for option in reversed(NOUNS[noun].options):
            wrapped = _OPTIONS[option](wrapped)
        return wrapped  # type: ignore[return-value]

    return decorate


def _names(given: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(given).split(","))) if given else ()


def _checked(asked: Asked) -> Asked:
    """The same. Raises InvalidInput for options of which one makes the other mean nothing."""
    given = {"--group-by": asked.group_by, "--sort": asked.sort, "--fields": asked.fields}
    taken = {"--limit": asked.limit, "--offset": asked.offset}
    if asked.is_count:
        _refuse_beside("--count", {**given, **taken})
    if asked.group_by:
        _refuse_beside("--group-by", {"--sort": asked.sort, "--fields": asked.fields})
    return asked


def _refuse_beside(option: str, others: Mapping[str, object]) -> None:
    for other, value in others.items():
        if value:
            raise InvalidInput(f"{other} means nothing beside {option}")
