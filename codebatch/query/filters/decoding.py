"""Decoding of record lines: all members, or only some. With only some, lines with equal values are counted together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.errors import StoreCorrupt
from codebatch.model.entry import path_from_fields
from codebatch.model.task import JsonValue
from codebatch.query.fields import JsonRecord

T = TypeVar("T")

_FieldValue = str | int | float | bool | tuple[str | int, ...] | None
"""The types of values in records. Lists are decoded as tuples, which are hashable."""

RecordCounter = Callable[[bytes], Iterable[tuple[JsonRecord, int]]]
"""A function that decodes some members of record lines. It returns each distinct combination with its number of lines.

The returned records have only these members. Raises StoreCorrupt.
"""

_decoder = msgspec.json.Decoder(JsonRecord)


class RecordPath(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The members of every record that identify its file. Types for decoding extend this type."""

    path: str | UnsetType = UNSET
    path_b64: str | UnsetType = UNSET

    @property
    def path_bytes(self) -> bytes:
        """The path of the file. Raises StoreCorrupt if the record has none."""
        try:
            return path_from_fields(self.path, self.path_b64)
        except ValueError as error:
            raise StoreCorrupt(f"a record has no path: {error}") from error


def decode_records(lines: bytes) -> list[JsonRecord]:
    """Decode record lines completely. Raises StoreCorrupt."""
    return decode_lines(_decoder, lines)


def make_record_counter(members: Iterable[str]) -> RecordCounter:
    """Return a function that counts record lines with equal values of some members. No other members are decoded."""
    names = tuple(members)
    fields = [(f"at_{place}", _FieldValue, None) for place in range(len(names))]
    renamed = {field: name for (field, *_), name in zip(fields, names, strict=True)}
    decoder = msgspec.json.Decoder(msgspec.defstruct("Some", fields, rename=renamed, frozen=True, gc=False))

    def tally(lines: bytes) -> Iterator[tuple[JsonRecord, int]]:
        for partial_record, number in Counter(decode_lines(decoder, lines)).items():
            values = zip(names, msgspec.structs.astuple(partial_record), strict=True)
            yield {name: _list_as_json(value) for name, value in values if value is not None}, number

    return tally


def _list_as_json(value: _FieldValue) -> JsonValue:
    return list(value) if isinstance(value, tuple) else value


def decode_lines(decoder: msgspec.json.Decoder[T], lines: bytes) -> list[T]:
    """Decode record lines with a msgspec decoder. Return one value for each line. Raises StoreCorrupt."""
    try:
        return decoder.decode_lines(lines)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise StoreCorrupt(f"a record cannot be read: {error}") from error
