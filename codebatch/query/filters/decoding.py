"""How record lines are decoded: whole, or tallied by what is needed of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.errors import StoreCorrupt
from codebatch.model.entry import path_from_fields
from codebatch.model.task import Json
from codebatch.query.fields import JsonRecord

T = TypeVar("T")

_Value = str | int | float | bool | tuple[str, ...] | None
"""What members of records are. Rows are such that they can be counted."""

Tally = Callable[[bytes], Iterable[tuple[JsonRecord, int]]]
"""Of some record lines those that differ in some members, with these alone, and how many there are of each.

Raises StoreCorrupt.
"""

_decoder = msgspec.json.Decoder(JsonRecord)


class RecordOfFile(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What every record says of its file: what is decoded of some kind alone has more."""

    path: str | UnsetType = UNSET
    path_b64: str | UnsetType = UNSET

    @property
    def path_bytes(self) -> bytes:
        """Raises StoreCorrupt."""
        try:
            return path_from_fields(self.path, self.path_b64)
        except ValueError as error:
            raise StoreCorrupt(f"a record has no path: {error}") from error


def decode_records(lines: bytes) -> list[JsonRecord]:
    """The records of some record lines. Raises StoreCorrupt."""
    return decode_lines(_decoder, lines)


def tally_of(members: Iterable[str]) -> Tally:
    """What tallies records by some members of their lines. Only these are decoded, and counted before anyone asks."""
    names = tuple(members)
    fields = [(f"at_{place}", _Value, None) for place in range(len(names))]
    renamed = {field: name for (field, *_), name in zip(fields, names, strict=True)}
    decoder = msgspec.json.Decoder(msgspec.defstruct("Some", fields, rename=renamed, frozen=True, gc=False))

    def tally(lines: bytes) -> Iterator[tuple[JsonRecord, int]]:
        for some, number in Counter(decode_lines(decoder, lines)).items():
            values = zip(names, msgspec.structs.astuple(some), strict=True)
            yield {name: _as_read(value) for name, value in values if value is not None}, number

    return tally


def _as_read(value: _Value) -> Json:
    return list(value) if isinstance(value, tuple) else value


def decode_lines(decoder: msgspec.json.Decoder[T], lines: bytes) -> list[T]:
    """What some record lines are to a decoder. Raises StoreCorrupt."""
    try:
        return decoder.decode_lines(lines)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise StoreCorrupt(f"a record cannot be read: {error}") from error


def line_at(block: bytes, at: int) -> bytes:
    """The line of a block in which a place is."""
    end = block.find(b"\n", at)
    return block[block.rfind(b"\n", 0, at) + 1 : end if end >= 0 else len(block)]
