"""Shard files: the checksummed records of one task for one shard (SPEC.md "Shard files").

The frames with the records come first. A trailer follows in a zstd skippable frame (RFC 8878, section 3.1.2), which
zstd readers skip. So `zstdcat` of all files of a task, in the order of their names, prints the task's whole output.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from codebatch.model.analysis.item_table import ROW_BYTES, item_lengths
from codebatch.model.digest import Digest
from codebatch.protocol.record_frames import iter_places

_MAGIC = 0x184D2A50
_END_MAGIC = b"cbshard\1"
_DIGEST_BYTES = 32

DAMAGE_HINT = "repair it with: codebatch diagnose --repair"
"""The hint of errors about damaged shard files."""

_pair_struct = struct.Struct("<II")
_crc_struct = struct.Struct("<I")
_tail_struct = struct.Struct(f"<I{len(_END_MAGIC)}s")

_HEAD_BYTES = 2 * _pair_struct.size
_END_BYTES = _DIGEST_BYTES + _tail_struct.size


class FrameSize(msgspec.Struct, frozen=True):
    """The length of a frame in the file, and the length of the records in this frame, both in bytes."""

    length: int
    bytes: int


class ShardTrailer(msgspec.Struct, frozen=True):
    """The trailer of a shard file: the item table, the sizes of the frames, and the crc32 of all frames.

    `digest` is the sha256 of these three values. If two trailers have the same digest, their files have equal frames.
    """

    table: bytes
    frames: tuple[FrameSize, ...]
    crc: int
    digest: Digest

    @property
    def items(self) -> int:
        """Number of items in the shard."""
        return len(self.table) // ROW_BYTES

    @property
    def length(self) -> int:
        """Length of all frames in the file in bytes, which is the offset of the trailer."""
        return sum(frame.length for frame in self.frames)

    @property
    def size(self) -> int:
        """Length of the trailer itself in bytes."""
        return _HEAD_BYTES + len(self.table) + len(self.frames) * _pair_struct.size + _crc_struct.size + _END_BYTES

    @property
    def bytes(self) -> int:
        """Length of the records in all frames in bytes."""
        return sum(frame.bytes for frame in self.frames)

    @property
    def offsets(self) -> list[int]:
        """Offsets of the frames in the file, in bytes, followed by the end of the last frame."""
        return list(accumulate((frame.length for frame in self.frames), initial=0))

    @property
    def starts(self) -> list[int]:
        """Offset of each frame's content in the uncompressed records of the file, followed by the records' size."""
        return list(accumulate((frame.bytes for frame in self.frames), initial=0))

    def covering_frames(self, start: int, end: int) -> FrameRange:
        """Return the frames that contain bytes [start, end) of the records."""
        offsets, starts = self.offsets, self.starts
        inside = [index for index in range(len(self.frames)) if starts[index] < end and starts[index + 1] > start]
        if not inside:
            return FrameRange(0, 0, 0, ())
        first, last = inside[0], inside[-1] + 1
        return FrameRange(offsets[first], offsets[last], starts[first], self.frames[first:last])

    def frames_with(self, items: Sequence[int]) -> list[tuple[FrameRange, list[tuple[int, int, int]]]]:
        """Return runs of adjacent frames that contain the items `items`, each run with its items. `items` must ascend.

        Each returned item is (number, start, end). `start` and `end` are the byte offsets of the item's records in the
        uncompressed records of the whole file. Raises ValueError if the frames contain fewer bytes than the item table
        requires.
        """
        ends = list(accumulate(item_lengths(self.table), initial=0))
        offsets, starts = self.offsets, self.starts
        runs: list[tuple[int, int, list[tuple[int, int, int]]]] = []
        for item in items:
            last = bisect_left(starts, ends[item + 1])
            if last == len(starts):
                raise ValueError("its trailer is inconsistent")
            first = bisect_right(starts, ends[item]) - 1
            inside: list[tuple[int, int, int]] = []
            if runs and first < runs[-1][1]:
                first, before, inside = runs.pop()
                last = max(before, last)
            inside.append((item, ends[item], ends[item + 1]))
            runs.append((first, last, inside))
        return [
            (FrameRange(offsets[first], offsets[last], starts[first], self.frames[first:last]), inside)
            for first, last, inside in runs
        ]


class FrameRange(msgspec.Struct, frozen=True):
    """The frames at bytes [offset, end) of a file.

    `first` is the offset of their content in the uncompressed records of the whole file.
    """

    offset: int
    end: int
    first: int
    frames: tuple[FrameSize, ...]


def make_trailer(frames: bytes, table: bytes, size: int) -> bytes:
    """Return the trailer of a shard file.

    `frames` must be valid, `table` is the item table, and `size` is the uncompressed size in bytes.
    """
    places = [FrameSize(place.end - place.start, place.bytes) for place in iter_places(frames, size)]
    body = b"".join(
        (
            _pair_struct.pack(len(table) // ROW_BYTES, len(places)),
            table,
            *(_pair_struct.pack(place.length, place.bytes) for place in places),
        )
    ) + _crc_struct.pack(zlib.crc32(frames))
    length = _pair_struct.size + len(body) + _END_BYTES
    frame = _pair_struct.pack(_MAGIC, length - _pair_struct.size)
    return b"".join((frame, body, hashlib.sha256(body).digest(), _tail_struct.pack(length, _END_MAGIC)))


def read_trailer(data: bytes, digest: Digest | None = None) -> ShardTrailer:
    """Parse a trailer. If `digest` is given, the trailer must have this digest. Raises ValueError."""
    if len(data) < _HEAD_BYTES + _crc_struct.size + _END_BYTES:
        raise ValueError("its trailer is truncated")
    body = data[_pair_struct.size : -_END_BYTES]
    checksum = data[-_END_BYTES : -_tail_struct.size]
    if (
        _pair_struct.unpack_from(data) != (_MAGIC, len(data) - _pair_struct.size)
        or _tail_struct.unpack_from(data, len(data) - _tail_struct.size) != (len(data), _END_MAGIC)
        or hashlib.sha256(body).digest() != checksum
    ):
        raise ValueError("its trailer is damaged")
    if digest is not None and checksum.hex() != digest:
        raise ValueError("it belongs to another shard")
    items, frames = _pair_struct.unpack_from(body)
    rows_end = _pair_struct.size + items * ROW_BYTES
    if len(body) != rows_end + frames * _pair_struct.size + _crc_struct.size:
        raise ValueError("its trailer is inconsistent")
    sizes = tuple(FrameSize(*pair) for pair in _pair_struct.iter_unpack(body[rows_end : -_crc_struct.size]))
    (crc,) = _crc_struct.unpack_from(body, len(body) - _crc_struct.size)
    return ShardTrailer(body[_pair_struct.size : rows_end], sizes, crc, Digest(checksum.hex()))


def split_shard_file(data: bytes, digest: Digest) -> tuple[bytes, ShardTrailer]:
    """Return the frames of a shard file, verified against its trailer, and the trailer.

    The trailer must have the given digest. Raises ValueError.
    """
    if len(data) < _tail_struct.size:
        raise ValueError("it is truncated")
    length, end = _tail_struct.unpack_from(data, len(data) - _tail_struct.size)
    if end != _END_MAGIC or not _tail_struct.size < length <= len(data):
        raise ValueError("it has no trailer")
    trailer = read_trailer(data[len(data) - length :], digest)
    frames = data[: len(data) - length]
    if len(frames) != trailer.length or zlib.crc32(frames) != trailer.crc:
        raise ValueError("its frames do not match its trailer")
    return frames, trailer
