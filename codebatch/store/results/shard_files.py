"""Shard files: what one task says of one shard, in a file that proves itself (SPEC.md "Shard files").

The frames of the records come first, then a trailer inside a zstd skippable frame (RFC 8878, section 3.1.2): whoever
reads zstd passes over it, so that `zstdcat` of the files of a task, in the order of their names, is its whole output.
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
_END = b"cbshard\1"
_DIGEST_BYTES = 32

DAMAGE_HINT = "repair it with: codebatch diagnose --repair"
"""Of a shard file."""

_pair = struct.Struct("<II")
_crc = struct.Struct("<I")
_tail = struct.Struct(f"<I{len(_END)}s")

_HEAD_BYTES = 2 * _pair.size
_PROOF_BYTES = _DIGEST_BYTES + _tail.size


class FrameSize(msgspec.Struct, frozen=True):
    """A frame: its length in the file, and how many bytes of records it holds."""

    length: int
    bytes: int


class Trailer(msgspec.Struct, frozen=True):
    """What a shard file says of its frames: the item table, where each frame ends, the crc32 of all of them.

    `digest` is of all that. Files of one digest hold the same frames.
    """

    table: bytes
    frames: tuple[FrameSize, ...]
    crc: int
    digest: Digest

    @property
    def items(self) -> int:
        """How many items it is of."""
        return len(self.table) // ROW_BYTES

    @property
    def length(self) -> int:
        """Bytes of all frames in the file: where the trailer begins."""
        return sum(frame.length for frame in self.frames)

    @property
    def size(self) -> int:
        """Bytes of the trailer itself."""
        return _HEAD_BYTES + len(self.table) + len(self.frames) * _pair.size + _crc.size + _PROOF_BYTES

    @property
    def bytes(self) -> int:
        """Bytes of records in all frames."""
        return sum(frame.bytes for frame in self.frames)

    @property
    def offsets(self) -> list[int]:
        """Where each frame begins in the file, and where the last one ends."""
        return list(accumulate((frame.length for frame in self.frames), initial=0))

    @property
    def starts(self) -> list[int]:
        """Where each frame begins in the records, and where the last one ends."""
        return list(accumulate((frame.bytes for frame in self.frames), initial=0))

    def frames_of(self, start: int, end: int) -> FrameRange:
        """The frames that hold bytes [start, end) of the records."""
        offsets, starts = self.offsets, self.starts
        inside = [index for index in range(len(self.frames)) if starts[index] < end and starts[index + 1] > start]
        if not inside:
            return FrameRange(0, 0, 0, ())
        first, last = inside[0], inside[-1] + 1
        return FrameRange(offsets[first], offsets[last], starts[first], self.frames[first:last])

    def frames_with(self, items: Sequence[int]) -> list[tuple[FrameRange, list[tuple[int, int, int]]]]:
        """The frames that hold the records of some items, which ascend: each run of frames with the items in it.

        Of each item: which, and where its records begin and end, in bytes from the first frame's. Raises ValueError
        where the frames hold less than the rows say.
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
    """Frames at [offset, end) of a file, of which the first holds the records from byte `first` on."""

    offset: int
    end: int
    first: int
    frames: tuple[FrameSize, ...]


def make_trailer(frames: bytes, table: bytes, size: int) -> bytes:
    """The trailer of some sound frames of `size` bytes of records, whose item table is `table`."""
    places = [FrameSize(place.end - place.start, place.bytes) for place in iter_places(frames, size)]
    said = b"".join(
        (
            _pair.pack(len(table) // ROW_BYTES, len(places)),
            table,
            *(_pair.pack(place.length, place.bytes) for place in places),
        )
    ) + _crc.pack(zlib.crc32(frames))
    length = _pair.size + len(said) + _PROOF_BYTES
    frame = _pair.pack(_MAGIC, length - _pair.size)
    return b"".join((frame, said, hashlib.sha256(said).digest(), _tail.pack(length, _END)))


def read_trailer(data: bytes, digest: Digest | None = None) -> Trailer:
    """The trailer that is all of `data`, and that of `digest` where it is known. Raises ValueError."""
    if len(data) < _HEAD_BYTES + _crc.size + _PROOF_BYTES:
        raise ValueError("its trailer is truncated")
    said = data[_pair.size : -_PROOF_BYTES]
    proof = data[-_PROOF_BYTES : -_tail.size]
    if (
        _pair.unpack_from(data) != (_MAGIC, len(data) - _pair.size)
        or _tail.unpack_from(data, len(data) - _tail.size) != (len(data), _END)
        or hashlib.sha256(said).digest() != proof
    ):
        raise ValueError("its trailer is damaged")
    if digest is not None and proof.hex() != digest:
        raise ValueError("it belongs to another shard")
    items, frames = _pair.unpack_from(said)
    rows_end = _pair.size + items * ROW_BYTES
    if len(said) != rows_end + frames * _pair.size + _crc.size:
        raise ValueError("its trailer is inconsistent")
    sizes = tuple(FrameSize(*pair) for pair in _pair.iter_unpack(said[rows_end : -_crc.size]))
    (crc,) = _crc.unpack_from(said, len(said) - _crc.size)
    return Trailer(said[_pair.size : rows_end], sizes, crc, Digest(proof.hex()))


def split_shard_file(data: bytes, digest: Digest) -> tuple[bytes, Trailer]:
    """The frames of a whole shard file, held against its trailer, and the trailer, that of `digest`.

    Raises ValueError.
    """
    if len(data) < _tail.size:
        raise ValueError("it is truncated")
    length, end = _tail.unpack_from(data, len(data) - _tail.size)
    if end != _END or not _tail.size < length <= len(data):
        raise ValueError("it has no trailer")
    trailer = read_trailer(data[len(data) - length :], digest)
    frames = data[: len(data) - length]
    if len(frames) != trailer.length or zlib.crc32(frames) != trailer.crc:
        raise ValueError("its frames do not match its trailer")
    return frames, trailer
