"""Duplicate blocks and their locations, as decoded from records."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.model.entry import PathMembers, path_fields, path_from_fields
from codebatch.query.filters.decoding import decode_lines
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.sources.records import BatchRecords


class DuplicateLocation(PathMembers, frozen=True, kw_only=True):
    """A location of a duplicate block. `end_line` is the line after the last line.

    If only a part of the block occurs here, `lines` is the number of code lines of that part. `end_line` is unset if
    the location is part of a longer block and the file cannot be read.
    """

    line: int
    end_line: int | UnsetType = UNSET
    lines: int | UnsetType = UNSET

    @property
    def end(self) -> int:
        """The number after the last line of the block. If it is unknown, the number after the first line."""
        return self.end_line if isinstance(self.end_line, int) else self.line + 1


class DuplicateBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A block of `lines` code lines that occurs `copies` times, completely or partly.

    `locations` lists first the locations of the whole block, sorted by path and line, then partial locations, the
    longest first. `number` is the rank of the block among the requested blocks, counted from 1.
    """

    number: int
    group: str
    lines: int
    copies: int
    locations: tuple[DuplicateLocation, ...]

    @property
    def complete_locations(self) -> list[DuplicateLocation]:
        """The locations of the whole block. Locations whose end is unknown are left out."""
        return [place for place in self.locations if place.end_line is not UNSET and place.lines is UNSET]


class DuplicateRecord(msgspec.Struct, gc=False):
    """The fields of a `duplicate` record that queries need: a block and two of its locations.

    Records of other types are decoded with an empty `group`.
    """

    line: int = 0
    end_line: int = 0
    lines: int = 0
    copies: int = 0
    group: str = ""
    other_line: int = 0
    path: str | UnsetType = UNSET
    path_b64: str | UnsetType = UNSET
    other_path: str | UnsetType = UNSET
    other_path_b64: str | UnsetType = UNSET

    @property
    def path_bytes(self) -> bytes:
        return path_from_fields(self.path, self.path_b64)

    @property
    def other_path_bytes(self) -> bytes:
        return path_from_fields(self.other_path, self.other_path_b64)


_decoder = msgspec.json.Decoder(DuplicateRecord)


def iter_duplicates(records: BatchRecords) -> Iterator[list[DuplicateRecord]]:
    """Yield the `duplicate` records of a batch in lists, sorted by path and line."""
    for piece in records.pieces("duplicates", RecordFilter(kinds=("duplicate",)), ()):
        for block in records.read(piece):
            duplicates = [record for record in decode_lines(_decoder, block) if record.group]
            records.reading.matched += len(duplicates)
            yield duplicates


def make_place(path: bytes, line: int, end_line: int | None) -> DuplicateLocation:
    """Return a location. Its end is unset if `end_line` is None."""
    text, encoded = path_fields(path)
    return DuplicateLocation(path=text, path_b64=encoded, line=line, end_line=UNSET if end_line is None else end_line)
