"""The record types of `query`: one parser of their options, of which each type has those that apply to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import click
import msgspec

from codebatch.cli.framework.commands import HelpfulCommand
from codebatch.cli.framework.context import Form
from codebatch.cli.framework.filter_options import OF_SHAPE, OPTIONS
from codebatch.errors import InvalidInput
from codebatch.query.filters.record_options import OutputFilters

F = TypeVar("F", bound=Callable[..., object])


_FILTERS = OutputFilters.__annotations__
_OF_ALL = ("--lang", "--path", "--where", "--task")
_OF_RECORDS = (*_OF_ALL, *OF_SHAPE)
_OF_OUTPUTS = ("--kind", "--severity", "--code", "--tool", "--name", "--symbol-type", "--metric")


class RecordType(msgspec.Struct, frozen=True):
    """A record type of `query`: the kinds of its records, none if it has every kind, and its options."""

    kinds: tuple[str, ...]
    options: tuple[str, ...]


NOUNS = {
    "outputs": RecordType((), (*_OF_OUTPUTS, *_OF_RECORDS)),
    "diagnostics": RecordType(("diagnostic",), ("--severity", "--code", "--tool", *_OF_RECORDS)),
    "symbols": RecordType(("symbol",), ("--name", "--symbol-type", *_OF_RECORDS)),
    "edges": RecordType(("edge",), _OF_RECORDS),
    "metrics": RecordType(("metric",), ("--metric", *_OF_RECORDS)),
    "files": RecordType(("file",), _OF_RECORDS),
    "failures": RecordType(("failure",), _OF_RECORDS),
    "duplicates": RecordType(("duplicate",), _OF_RECORDS),
    "stats": RecordType((), (*_OF_OUTPUTS, *_OF_ALL, "--limit", "--offset", "--group-by", "--output")),
}


class RecordQuery(msgspec.Struct, frozen=True, kw_only=True):
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


class RecordTypeCommand(HelpfulCommand):
    """A record type of `query`. An option that only other types have is refused with their names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            able = [noun for noun, about in NOUNS.items() if error.option_name in about.options]
            if not able:
                raise
            told = f"{error.option_name} cannot be used with {self.name}"
            hint = f"available in: {', '.join(f'query {noun}' for noun in able)}"
            raise InvalidInput(told, hint=hint) from error


def filtering(noun: str) -> Callable[[F], F]:
    """Give a command the options of a record type, as one `asked` argument."""

    def decorate(function: F) -> F:
        def wrapped(**arguments: object) -> object:
            filters = {name: value for name in _FILTERS if (value := arguments.pop(name, None)) not in (None, ())}
            asked = {name: arguments.pop(name) for name in RecordQuery.__struct_fields__ if name in arguments}
            asked["fields"] = _names(asked.get("fields"))
            filters |= {"kind": NOUNS[noun].kinds} if NOUNS[noun].kinds else {}
            found = msgspec.convert({**asked, "noun": noun, "filters": filters}, RecordQuery)
            return function(asked=_checked(found), **arguments)

        wrapped.__name__ = function.__name__
        wrapped.__doc__ = function.__doc__
        for option in reversed(NOUNS[noun].options):
            wrapped = OPTIONS[option](wrapped)
        return wrapped  # type: ignore[return-value]

    return decorate


def _names(given: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(given).split(","))) if given else ()


def _checked(asked: RecordQuery) -> RecordQuery:
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
            raise InvalidInput(f"{other} cannot be used with {option}")
