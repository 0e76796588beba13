"""Sorting of records, selection of records and fields, and counting by the value of a field. No I/O."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.record import SEVERITIES
from codebatch.model.task import JsonValue
from codebatch.model.text.suggestions import did_you_mean_text
from codebatch.query.fields import FileLanguages, JsonRecord, field_value, record_fields
from codebatch.query.filters.arguments import refuse_numbers_below_one

_SortKey = tuple[bool, int, JsonValue]


class AnswerShape(msgspec.Struct, frozen=True, kw_only=True):
    """The requested order, range and fields of an answer.

    `sort` is a field; a `-` before it selects descending order. The sort is stable, and records without the field come
    last. If `sort` is empty, the order of the answer is kept. After sorting, the first `offset` records are skipped,
    and at most `limit` are returned. `fields` are the returned fields, or all fields if it is empty.
    """

    sort: str = ""
    offset: int = 0
    limit: int | None = None
    fields: tuple[str, ...] = ()

    @property
    def sort_field(self) -> str:
        """The name of the field to sort by."""
        return self.sort.removeprefix("-")

    @property
    def needed_fields(self) -> frozenset[str]:
        """The fields whose values are needed to sort records and to select fields."""
        return frozenset((*self.fields, *([self.sort_field] if self.sort else [])))

    def check(self, kinds: Collection[str]) -> AnswerShape:
        """Return this shape if it is valid. Raises InvalidInput for an unknown field or a number out of range."""
        refuse_numbers_below_one(limit=self.limit)
        if self.offset < 0:
            raise InvalidInput(f"`offset` must be at least 0, not {self.offset}")
        refuse_unknown_fields((*self.fields, *([self.sort_field] if self.sort else [])), kinds)
        return self

    def arrange_records(self, records: Iterable[JsonRecord], languages: FileLanguages) -> Iterator[JsonRecord]:
        """Yield the selected records in the requested order.

        With a limit, only the records that will be returned or skipped are held in memory.
        """
        offset = min(self.offset, sys.maxsize)
        end = None if self.limit is None else min(offset + self.limit, sys.maxsize)
        if self.sort:
            is_descending = self.sort.startswith("-")
            key = _make_sort_key(self.sort_field, languages, is_descending)
            if end is None:
                records = sorted(records, key=key, reverse=is_descending)
            else:
                import heapq

                records = (heapq.nlargest if is_descending else heapq.nsmallest)(end, records, key=key)
        return islice(records, offset, end)


DEFAULT_SHAPE = AnswerShape()
"""The shape that returns all records and fields in their given order."""


class Groups(msgspec.Struct, frozen=True):
    """The number of records by the value of a field.

    `counts` has each value with its number of records, most frequent first. `absent` is the number of records without a
    value.
    """

    counts: tuple[tuple[str, int], ...]
    absent: int

    @property
    def total(self) -> int:
        """The number of all records."""
        return self.absent + sum(count for _, count in self.counts)


def group_counts(counted: Counter[str], absent: int) -> Groups:
    """Return counts as Groups, sorted by descending count, then by value."""
    return Groups(tuple(sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))), absent)


def group_records(records: Iterable[tuple[JsonRecord, int]], field: str, languages: FileLanguages) -> Groups:
    """Count records by the value of a field. Each record comes with its number of occurrences."""
    counted: Counter[str] = Counter()
    absent = 0
    for record, number in records:
        value = field_value(record, field, languages)
        if value is None:
            absent += number
        else:
            counted[cell_text(value)] += number
    return group_counts(counted, absent)


def cell_text(value: JsonValue) -> str:
    """Return a value as text. None is empty, and elements of a list are separated by commas."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list():
            return ", ".join(map(cell_text, value))
        case _:
            return str(value)


def refuse_unknown_fields(fields: Collection[str], kinds: Collection[str]) -> None:
    """Raise InvalidInput for a field that no record of the given kinds has."""
    # Collecting the fields is slow, so it is skipped if there is nothing to check.
    known = record_fields(kinds) if fields else ()
    for field in fields:
        if field not in known:
            raise InvalidInput(f"unknown field {field!r}", hint=did_you_mean_text(field, known))


def _make_sort_key(field: str, languages: FileLanguages, is_descending: bool) -> Callable[[JsonRecord], _SortKey]:
    """Return a function for the sort key of a record. The most severe severity sorts first.

    Records without the field come last.
    """

    def key(record: JsonRecord) -> _SortKey:
        value = field_value(record, field, languages)
        if value is None:
            return not is_descending, 0, 0
        if field == "severity" and value in SEVERITIES:
            return is_descending, 0, SEVERITIES.index(value)
        if isinstance(value, int | float):
            return is_descending, 0, value
        return is_descending, 1, cell_text(value)

    return key
