"""In what order records are wanted, which of them, and what of each; and how many have which value of a field. Pure."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.record import SEVERITIES
from codebatch.model.task import Json
from codebatch.model.text.suggestions import did_you_mean
from codebatch.query.fields import JsonRecord, Languages, fields_of, value_of
from codebatch.query.filters.arguments import refuse_below_one

_SortKey = tuple[bool, int, Json]


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What of an answer is wanted.

    `sort` is a field, with a `-` before it the greatest first; ties, and all where it is empty, stay in the order of
    the answer, and records without the field are last. Then `offset` are left out, and at most `limit` taken. `fields`
    are wanted of each record, all where none is named.
    """

    sort: str = ""
    offset: int = 0
    limit: int | None = None
    fields: tuple[str, ...] = ()

    @property
    def sort_field(self) -> str:
        """The field to sort by."""
        return self.sort.removeprefix("-")

    @property
    def needed(self) -> frozenset[str]:
        """The fields that must be known."""
        return frozenset((*self.fields, *([self.sort_field] if self.sort else [])))

    def check(self, kinds: Collection[str]) -> Shape:
        """The same shape. Raises InvalidInput for a field that no kind has, and numbers that are none of rows."""
        refuse_below_one(limit=self.limit)
        if self.offset < 0:
            raise InvalidInput(f"`offset` must be at least 0, not {self.offset}")
        refuse_unknown_fields((*self.fields, *([self.sort_field] if self.sort else [])), kinds)
        return self

    def arrange(self, records: Iterable[JsonRecord], languages: Languages) -> Iterator[JsonRecord]:
        """The records that are wanted, in the order that is wanted. Sorted with a limit, no more are kept than that."""
        offset = min(self.offset, sys.maxsize)
        end = None if self.limit is None else min(offset + self.limit, sys.maxsize)
        if self.sort:
            is_down = self.sort.startswith("-")
            key = _key(self.sort_field, languages, is_down)
            if end is None:
                records = sorted(records, key=key, reverse=is_down)
            else:
                import heapq

                records = (heapq.nlargest if is_down else heapq.nsmallest)(end, records, key=key)
        return islice(records, offset, end)


AS_FOUND = Shape()
"""All, as they come."""


class Groups(msgspec.Struct, frozen=True):
    """The number of records for each value of a field, most frequent first, and the number without a value."""

    counts: tuple[tuple[str, int], ...]
    absent: int

    @property
    def total(self) -> int:
        """The number of all records."""
        return self.absent + sum(count for _, count in self.counts)


def group(counted: Counter[str], absent: int) -> Groups:
    """Counts in their order: most first, equal ones by name."""
    return Groups(tuple(sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))), absent)


def group_records(records: Iterable[tuple[JsonRecord, int]], field: str, languages: Languages) -> Groups:
    """Count records by a field; with each comes how many there are of it."""
    counted: Counter[str] = Counter()
    absent = 0
    for record, number in records:
        value = value_of(record, field, languages)
        if value is None:
            absent += number
        else:
            counted[cell(value)] += number
    return group(counted, absent)


def cell(value: Json) -> str:
    """A value as text: nothing where there is none, rows with commas between."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list():
            return ", ".join(map(cell, value))
        case _:
            return str(value)


def refuse_unknown_fields(asked: Collection[str], kinds: Collection[str]) -> None:
    """Raise InvalidInput for a field that records of none of the kinds have."""
    known = fields_of(kinds) if asked else ()  # To know them takes 5 ms.
    for field in asked:
        if field not in known:
            raise InvalidInput(f"unknown field {field!r}", hint=did_you_mean(field, known))


def _key(field: str, languages: Languages, is_down: bool) -> Callable[[JsonRecord], _SortKey]:
    """What to compare records by. Severities go by their weight, the gravest first; what is absent goes last."""

    def key(record: JsonRecord) -> _SortKey:
        value = value_of(record, field, languages)
        if value is None:
            return not is_down, 0, 0
        if field == "severity" and value in SEVERITIES:
            return is_down, 0, SEVERITIES.index(value)
        if isinstance(value, int | float):
            return is_down, 0, value
        return is_down, 1, cell(value)

    return key
