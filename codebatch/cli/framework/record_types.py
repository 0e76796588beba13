"""The record types of `query`.

The same code parses the options of all types, but each type accepts only the options that apply to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import click
import msgspec

from codebatch.cli.framework.commands import HelpfulCommand
from codebatch.cli.framework.context import OutputForm
from codebatch.cli.framework.filter_options import FILTER_OPTIONS, SHAPE_OPTIONS
from codebatch.errors import InvalidInput
from codebatch.query.filters.record_options import OutputFilters

F = TypeVar("F", bound=Callable[..., object])


_FILTER_NAMES = OutputFilters.__annotations__
_OPTIONS_OF_ALL_QUERIES = ("--lang", "--path", "--where", "--task")
_OPTIONS_OF_RECORDS = (*_OPTIONS_OF_ALL_QUERIES, *SHAPE_OPTIONS)
_OPTIONS_OF_OUTPUTS = ("--kind", "--severity", "--code", "--tool", "--name", "--symbol-type", "--metric")


class RecordTypeOptions(msgspec.Struct, frozen=True):
    """A record type of `query`: the kinds of its records, and its options. If `kinds` is empty, it has all kinds."""

    kinds: tuple[str, ...]
    options: tuple[str, ...]


RECORD_TYPES_BY_NOUN = {
    "outputs": RecordTypeOptions((), (*_OPTIONS_OF_OUTPUTS, *_OPTIONS_OF_RECORDS)),
    "diagnostics": RecordTypeOptions(("diagnostic",), ("--severity", "--code", "--tool", *_OPTIONS_OF_RECORDS)),
    "symbols": RecordTypeOptions(("symbol",), ("--name", "--symbol-type", *_OPTIONS_OF_RECORDS)),
    "edges": RecordTypeOptions(("edge",), _OPTIONS_OF_RECORDS),
    "metrics": RecordTypeOptions(("metric",), ("--metric", *_OPTIONS_OF_RECORDS)),
    "files": RecordTypeOptions(("file",), _OPTIONS_OF_RECORDS),
    "failures": RecordTypeOptions(("failure",), _OPTIONS_OF_RECORDS),
    "duplicates": RecordTypeOptions(("duplicate",), _OPTIONS_OF_RECORDS),
    "stats": RecordTypeOptions(
        (), (*_OPTIONS_OF_OUTPUTS, *_OPTIONS_OF_ALL_QUERIES, "--limit", "--offset", "--group-by", "--output")
    ),
}


class RecordQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a `query` command: filters, order, columns and format, or a count."""

    noun: str
    filters: OutputFilters
    sort: str = ""
    offset: int = 0
    limit: int | None = None
    fields: tuple[str, ...] = ()
    form: OutputForm | None
    is_count: bool = False
    group_by: str = ""


class RecordTypeCommand(HelpfulCommand):
    """The command of a record type.

    If an option is given that only other types have, the error names these types.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            able = [noun for noun, about in RECORD_TYPES_BY_NOUN.items() if error.option_name in about.options]
            if not able:
                raise
            message = f"{error.option_name} cannot be used with {self.name}"
            hint = f"available in: {', '.join(f'query {noun}' for noun in able)}"
            raise InvalidInput(message, hint=hint) from error


def with_record_query(noun: str) -> Callable[[F], F]:
    """Return a decorator that adds the options of a record type to a command.

    The command receives them as one argument, `query`.
    """

    def decorate(function: F) -> F:
        def wrapped(**arguments: object) -> object:
            filters = {name: value for name in _FILTER_NAMES if (value := arguments.pop(name, None)) not in (None, ())}
            query_arguments = {name: arguments.pop(name) for name in RecordQuery.__struct_fields__ if name in arguments}
            query_arguments["fields"] = _parameter_names(query_arguments.get("fields"))
            filters |= {"kind": RECORD_TYPES_BY_NOUN[noun].kinds} if RECORD_TYPES_BY_NOUN[noun].kinds else {}
            query = msgspec.convert({**query_arguments, "noun": noun, "filters": filters}, RecordQuery)
            return function(query=_check_option_combinations(query), **arguments)

        wrapped.__name__ = function.__name__
        wrapped.__doc__ = function.__doc__
        for option in reversed(RECORD_TYPES_BY_NOUN[noun].options):
            wrapped = FILTER_OPTIONS[option](wrapped)
        return wrapped  # type: ignore[return-value]

    return decorate


def _parameter_names(names: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(names).split(","))) if names else ()


def _check_option_combinations(record_query: RecordQuery) -> RecordQuery:
    """Return the query unchanged. Raises InvalidInput if an option would have no effect because of another option."""
    ordering = {"--group-by": record_query.group_by, "--sort": record_query.sort, "--fields": record_query.fields}
    paging = {"--limit": record_query.limit, "--offset": record_query.offset}
    if record_query.is_count:
        _refuse_combination("--count", {**ordering, **paging})
    if record_query.group_by:
        _refuse_combination("--group-by", {"--sort": record_query.sort, "--fields": record_query.fields})
    return record_query


def _refuse_combination(option: str, values: Mapping[str, object]) -> None:
    for name, value in values.items():
        if value:
            raise InvalidInput(f"{name} cannot be used with {option}")
