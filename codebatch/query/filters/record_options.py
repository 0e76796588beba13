"""Filters and order of records as keyword arguments, named as in `codebatch query`. No I/O.

A filter takes one value or several. If there are several, a record must match one of them. None means no restriction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypedDict, TypeVar

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.analysis.language_groups import with_variants
from codebatch.model.record import RECORD_KINDS, Severity, SymbolType
from codebatch.query.filters.arguments import refuse_unknown
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.filters.paths import PathPatterns
from codebatch.query.filters.shaping import AnswerShape

T = TypeVar("T")

OneOrMany = str | Collection[str] | None

KINDS_FOR_PEOPLE = tuple(kind for kind in RECORD_KINDS if kind not in ("fingerprints", "names"))
"""The kinds of records that are meant for people."""

_FILTER_FIELDS = {
    "kind": "kinds",
    "severity": "severities",
    "code": "codes",
    "tool": "tools",
    "name": "names",
    "symbol_type": "symbol_types",
    "metric": "metrics",
    "lang": "languages",
    "fields": "fields",
}
"""Keyword arguments that accept several values, with their names in RecordFilter and Shape."""

_NO_FIELDS: Mapping[str, OneOrMany] = {}


class CommonFilters(TypedDict, total=False):
    """Filters of every kind of records: the language and path of the file, a condition, and the task.

    `path` is one or more of: a part of the path, case ignored; a pattern as in gitignore(5), if it contains one of
    `* ? [`; a file or directory of the project, if it begins with `/`. `where` is a Python expression of fields
    (SPEC.md "Answers").
    """

    lang: OneOrMany
    path: PathPatterns
    where: str
    task: str | None


class RecordOptions(CommonFilters, total=False):
    """Filters, and the order and range of the returned records.

    `sort` is a field; a `-` before it selects descending order. After sorting, the first `offset` records are skipped,
    and at most `limit` are returned. `fields` are the returned fields; by default, all.
    """

    sort: str
    offset: int
    limit: int | None
    fields: OneOrMany


class OutputFilters(CommonFilters, total=False):
    """Filters of records of any kind. `code` and `name` match exactly, or by prefix if they end with `*`."""

    kind: OneOrMany
    severity: Severity | Sequence[Severity] | None
    code: OneOrMany
    tool: OneOrMany
    name: OneOrMany
    symbol_type: SymbolType | Sequence[SymbolType] | None
    metric: OneOrMany


class OutputRecordOptions(OutputFilters, RecordOptions, total=False):
    """Filters of records of any kind, and the order and range of the returned records."""


def make_filter(
    chosen_options: CommonFilters,
    options_type: type = OutputFilters,
    further_fields: Mapping[str, OneOrMany] = _NO_FIELDS,
) -> RecordFilter:
    """Return the filter that keyword arguments describe.

    `options_type` is the type of the accepted options. `further_fields` are additional filters of the caller. Raises
    InvalidInput for an unknown option, and for filters that no record can pass.
    """
    refuse_unknown("filter", chosen_options, options_type.__annotations__)
    task = chosen_options.get("task")
    if not isinstance(task, str | None):
        raise InvalidInput(f"`task` must be one name, not {type(task).__name__}")
    record_filter = _convert_fields({**_to_fields(chosen_options), **_to_fields(further_fields)}, RecordFilter).check()
    record_filter.refuse_impossible()
    return record_filter


def make_shape(chosen_options: CommonFilters) -> AnswerShape:
    """Return the order and range of records that keyword arguments describe. Raises InvalidInput for wrong types."""
    return _convert_fields(_to_fields(chosen_options), AnswerShape)


def _to_fields(filters: Mapping[str, object]) -> dict[str, object]:
    """Return the options that are set, renamed to the attributes of RecordFilter and Shape."""
    converted: dict[str, object] = {}
    for name, value in filters.items():
        if isinstance(value, Iterable) and (name in _FILTER_FIELDS or (name == "path" and not isinstance(value, str))):
            value = as_tuple(name, value)
        if name == "lang" and isinstance(value, tuple):
            value = with_variants(value)
        for text in value if isinstance(value, tuple) else (value,):
            _refuse_invalid_text(name, text)
        if value is not None:
            converted[_FILTER_FIELDS.get(name, name)] = value
    return converted


def _refuse_invalid_text(name: str, text: object) -> None:
    """Raise InvalidInput for a text with a lone surrogate, because no record contains one.

    In a path or condition, a surrogate from `os.fsdecode` is accepted. It represents a byte that is not UTF-8.
    """
    if isinstance(text, str):
        try:
            text.encode("utf-8", "surrogateescape" if name in ("path", "where") else "strict")
        except UnicodeEncodeError:
            raise InvalidInput(f"`{name}` is not valid text: {text!r}") from None


def as_tuple(name: str, value: Iterable[str]) -> tuple[str, ...]:
    """Return the value of the argument `name` as a tuple: a single text or several texts.

    Raises InvalidInput if there is no text.
    """
    values = (value,) if isinstance(value, str) else tuple(value)
    if not values:
        raise InvalidInput(f"`{name}` is empty", hint="to select all, omit the argument")
    return values


def _convert_fields(fields: Mapping[str, object], type_: type[T]) -> T:
    try:
        return msgspec.convert(fields, type_)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"a filter has a value of the wrong type: {error}") from error
