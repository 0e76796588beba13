"""Packs: files with many objects, and the index that finds them (SPEC.md "Packs").

`<sha256 of the pack's bytes>.pack` is a sequence of zstd frames, one per object, each with its content size. A pack is
self-contained: its index only makes it faster to search.

`<the same name>.idx` has, little-endian and without padding:

    offset      bytes   content
    0           8       magic `cbidx` 0 0 and the format, 1
    8           8       count: objects in the pack
    16          8       pack_bytes: size of the pack
    24          32 * n  digests: sha256 of each object's uncompressed bytes, ascending, unique
    ..          8 * n   offset of each frame in the pack, in the order of the digests
    ..          8 * n   length of each frame
    ..          8 * n   size: uncompressed bytes of each object
    ..          32      sha256 of everything before

An index that is missing, fails its sha256 or has another pack size is rebuilt from the pack.

`<the same name>.bad` lists objects of the pack that a reader found damaged: their digests in hex, one per line. They
count as missing, so the next snapshot with this content stores it again.
"""

from __future__ import annotations

import hashlib
import operator
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property

import msgspec

from codebatch.model.digest import DIGEST_PATTERN
from codebatch.store.objects.frames import FrameError, PackFrame, RangeReader, content_digest, iter_frames

KEY_BYTES = 32

_MAGIC = b"cbidx\0\0\1"
_HEADER_BYTES = 24
_ROW_BYTES = KEY_BYTES + 3 * 8


class PackIndex(msgspec.Struct, frozen=True, dict=True):
    """The index of a pack as columns, in ascending order of the digests."""

    pack_bytes: int
    keys: bytes
    offsets: array[int]
    lengths: array[int]
    sizes: array[int]

    def __len__(self) -> int:
        return len(self.offsets)

    def key_at_row(self, row: int) -> bytes:
        """Return the digest of a row as 32 bytes."""
        return self.keys[row * KEY_BYTES : (row + 1) * KEY_BYTES]

    @cached_property
    def all_keys(self) -> list[bytes]:
        """All digests, ascending."""
        keys = self.keys
        return [keys[start : start + KEY_BYTES] for start in range(0, len(keys), KEY_BYTES)]

    def frame_at_row(self, row: int) -> PackFrame:
        """Return the frame of the object in a row."""
        return PackFrame(self.offsets[row], self.lengths[row], self.sizes[row])

    def find(self, key: bytes) -> int | None:
        """Return the row of a digest, or None if the pack does not contain it."""
        keys: list[bytes] | None = self.__dict__.get("all_keys")
        if keys is not None:  # With the decoded digests, a search is ten times as fast.
            row = bisect_left(keys, key)
            return row if row < len(keys) and keys[row] == key else None
        row = bisect_left(range(len(self)), key, key=self.key_at_row)
        return row if row < len(self) and self.key_at_row(row) == key else None


def build_index(pack_bytes: int, frames: Iterable[tuple[bytes, PackFrame]]) -> PackIndex:
    """Return the index of a pack from its frames and digests. If a digest occurs twice, the first frame is used."""
    first: dict[bytes, PackFrame] = {}
    for key, frame in frames:
        first.setdefault(key, frame)
    keys = sorted(first)
    rows = [first[key] for key in keys]
    return PackIndex(
        pack_bytes,
        b"".join(keys),
        array("Q", [row.offset for row in rows]),
        array("Q", [row.length for row in rows]),
        array("Q", [row.size for row in rows]),
    )


def encode_index(index: PackIndex) -> bytes:
    """Return the bytes of an .idx file."""
    columns = (index.offsets, index.lengths, index.sizes)
    body = b"".join(
        (
            _MAGIC,
            len(index).to_bytes(8, "little"),
            index.pack_bytes.to_bytes(8, "little"),
            index.keys,
            *(little_endian(column).tobytes() for column in columns),
        )
    )
    return body + hashlib.sha256(body).digest()


def decode_index(data: bytes) -> PackIndex:
    """Decode an .idx file. Raises ValueError if it is truncated or damaged."""
    if len(data) < _HEADER_BYTES + KEY_BYTES or data[:8] != _MAGIC:
        raise ValueError("not a pack index of format 1")
    count = int.from_bytes(data[8:16], "little")
    pack_bytes = int.from_bytes(data[16:24], "little")
    if len(data) != _HEADER_BYTES + count * _ROW_BYTES + KEY_BYTES:
        raise ValueError("the pack index has the wrong length")
    if hashlib.sha256(memoryview(data)[:-KEY_BYTES]).digest() != data[-KEY_BYTES:]:
        raise ValueError("the pack index does not match its sha256")
    columns = _HEADER_BYTES + count * KEY_BYTES
    offsets, lengths, sizes = (
        _read_column(data[columns + start * count * 8 : columns + (start + 1) * count * 8]) for start in range(3)
    )
    if count and max(map(operator.add, offsets, lengths)) > pack_bytes:
        raise ValueError("the pack index points past the end of the pack")
    return PackIndex(pack_bytes, data[_HEADER_BYTES:columns], offsets, lengths, sizes)


def index_from_pack(read_at: RangeReader, pack_bytes: int) -> PackIndex:
    """Build the index of a pack from the pack's bytes.

    Damaged frames are omitted. A truncated frame and all later frames are omitted too.
    """
    frames = []
    for frame in iter_frames(read_at, pack_bytes):
        try:
            frames.append((content_digest(read_at, frame), frame))
        except FrameError:
            continue
    return build_index(pack_bytes, frames)


def encode_damaged_keys(keys: Iterable[bytes]) -> bytes:
    """Return the bytes of a `.bad` file, which lists the damaged objects of a pack."""
    return "".join(f"{key.hex()}\n" for key in sorted(keys)).encode()


def decode_damaged_keys(data: bytes) -> set[bytes]:
    """Return the digests in a `.bad` file.

    Invalid lines are skipped, because a lost line only delays the discovery of damage.
    """
    lines = data.decode("ascii", "replace").splitlines()
    return {bytes.fromhex(line) for line in lines if DIGEST_PATTERN.match(line)}


def little_endian(column: array[int]) -> array[int]:
    """Convert numbers between little-endian and native byte order."""
    if sys.byteorder == "big":
        column = column[:]
        column.byteswap()
    return column


def _read_column(data: bytes) -> array[int]:
    column = array("Q")
    column.frombytes(data)
    return little_endian(column)
