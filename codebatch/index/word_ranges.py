"""Ranges of contents that become new word segments, and pieces: the segments of a range in one file.

The contents of an index that no older segment has are divided into ranges. The division depends only on the contents.
So several processes can build the segments of different ranges, and the index is the same as if one process had built
them all. A piece is named by the contents of its range and has a checksum, so an index is never built from a wrong one.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import islice
from typing import NamedTuple

import msgspec

from codebatch.errors import ObjectMissing
from codebatch.index.generations import WordSegment
from codebatch.index.word_segments import CONTENTS_MAX, SegmentBuilder, decode_keys, group_size, keys_offset
from codebatch.index.words import (
    CONTENT_KEY_BYTES,
    INDEXED_BYTES_MAX,
    add_content_words,
    content_key,
)
from codebatch.model.entry import Entry
from codebatch.store.objects.object_store import ObjectStore
from codebatch.system.processes.garbage_collector import collector_paused

_RANGE_BYTES_MAX = 32 << 20
"""Maximum total size of the contents of a range, unless it has only one content."""

_crc_struct = struct.Struct("<I")


class NewSegment(NamedTuple):
    """A segment that was built: its numbers, the keys of its contents, and the bytes of its file."""

    about: WordSegment
    keys: Sequence[bytes]
    data: bytes


class _Piece(msgspec.Struct, frozen=True):
    segments: tuple[tuple[WordSegment, bytes], ...]


_piece_encoder = msgspec.msgpack.Encoder()
_piece_decoder = msgspec.msgpack.Decoder(_Piece)


def divide_contents(entries: Iterable[Entry]) -> list[list[Entry]]:
    """Divide entries into ranges, in their order. Contents that are too large for an index are left out."""
    ranges: list[list[Entry]] = []
    size = 0
    for entry in entries:
        if entry.size > INDEXED_BYTES_MAX:
            continue
        size += entry.size
        if not ranges or len(ranges[-1]) == CONTENTS_MAX or size > _RANGE_BYTES_MAX:
            ranges.append([])
            size = entry.size
        ranges[-1].append(entry)
    return ranges


def piece_name(entries: Iterable[Entry]) -> str:
    """Return the name of the piece with the segments of a range."""
    return sha256(b"".join(map(content_key, entries))).hexdigest()


def build_segments(objects: ObjectStore, entries: Sequence[Entry]) -> Iterator[NewSegment]:
    """Yield segments with the contents of a range. Missing contents are left out. Raises StoreError."""
    readable = _readable_contents(objects, entries)
    left = len(entries)
    while left > 0:
        builder = SegmentBuilder(group_size(left))
        with collector_paused():
            while not builder.is_full and (slot := _read_slot(readable, builder.group)):
                builder.add_slot(*slot)
            if not builder.keys:
                return
            about, data = builder.encode()
        yield NewSegment(about, builder.keys, data)
        left -= len(builder.keys)


def encode_piece(segments: Iterable[NewSegment]) -> bytes:
    """Return the bytes of a piece with given segments."""
    data = _piece_encoder.encode(_Piece(tuple((segment.about, segment.data) for segment in segments)))
    return data + _crc_struct.pack(zlib.crc32(data))


def decode_piece(data: bytes) -> list[NewSegment]:
    """Return the segments of a piece. Raises ValueError if the piece is damaged."""
    end = len(data) - _crc_struct.size
    if end < 0 or _crc_struct.unpack_from(data, end) != (zlib.crc32(memoryview(data)[:end]),):
        raise ValueError("it is damaged")
    return [
        NewSegment(about, decode_keys(about, _key_bytes(about, segment)), segment)
        for about, segment in _piece_decoder.decode(data[:end]).segments
    ]


def _key_bytes(about: WordSegment, data: bytes) -> bytes:
    start = keys_offset(about)
    return data[start : start + about.contents * CONTENT_KEY_BYTES]


def _read_slot(readable: Iterator[tuple[Entry, bytes]], group: int) -> tuple[list[bytes], set[bytes]] | None:
    """Return the keys and the words of the next contents, or None if there are none."""
    keys: list[bytes] = []
    words: set[bytes] = set()
    for entry, data in islice(readable, group):
        keys.append(content_key(entry))
        add_content_words(words, data, entry.path)
    return (keys, words) if keys else None


def _readable_contents(objects: ObjectStore, entries: Iterable[Entry]) -> Iterator[tuple[Entry, bytes]]:
    for entry in entries:
        try:
            data = objects.read(entry.object, entry.size)
        except ObjectMissing:
            continue
        yield entry, data
