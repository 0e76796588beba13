"""The frames of a snapshot's index: built from its lines, or spliced from another index (SPEC.md "Snapshots").

A frame contains whole lines. Once it has at least 32 KiB, a frame ends after the first line whose crc32 is a multiple
of 256. At the latest, it ends after the line with which it reaches 128 KiB. So the frames depend only on the lines
(content-defined chunking). A changed line rarely moves the ends of later frames, so `splice_index` can copy those
frames from the old index.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import accumulate, pairwise

import msgspec

from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.entry import PATH_BYTES_MAX, Entry, decode_entries, decode_lines, encode_entry, line_path
from codebatch.store.objects.frames import FrameError, compress_frame, decompress_one

_FRAME_BYTES_MIN = 32 << 10
_FRAME_BYTES_MAX = 128 << 10
_FRAME_LINES_AVERAGE = 256
# In JSON, a byte of a path may take 6 characters (`\\u0000`).
_CONTENT_BYTES_MAX = _FRAME_BYTES_MAX + 6 * PATH_BYTES_MAX + 1024


class IndexFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A frame of files.index: its position, and what it contains.

    `path` is the path of its first entry. `files` and `size` are the number and the total size of its entries of kind
    `file`. The frame has `length` bytes in the file and directly follows the frame before. Uncompressed, it has
    `content` bytes with the digest `digest`.
    """

    path: bytes
    entries: int
    files: int
    size: int
    length: int
    content: int
    digest: Digest


class SnapshotIndex(msgspec.Struct, frozen=True):
    """The index of a snapshot: the bytes of its file, and its frames.

    `digest` is the digest of all lines, which identifies the snapshot.
    """

    data: bytes
    frames: tuple[IndexFrame, ...]
    digest: Digest


def make_snapshot_index(lines: Iterable[bytes]) -> SnapshotIndex:
    """Return an index of all lines, which must be in path order.

    If there are no lines, the index has one empty frame.
    """
    builder = _IndexBuilder()
    for line in lines:
        builder.add(line)
    return builder.finish()


def splice_index(index: SnapshotIndex, changes: Mapping[bytes, Entry | None]) -> SnapshotIndex:
    """Return the index with changed entries. `changes` maps a path to its new entry, or to None to remove the entry.

    The result has the same lines and frames as if `make_snapshot_index` had built it from all lines. With the same
    version of zstd, the bytes are equal too. Raises ValueError if `index` is damaged.
    """
    builder, hasher = _IndexBuilder(), sha256()
    paths = sorted(changes)
    starts = [frame.path for frame in index.frames[1:]]
    places = iter([bisect_left(paths, start) for start in starts] + [len(paths)])
    begin = offset = 0
    for frame in index.frames:
        compressed = index.data[offset : offset + frame.length]
        content = frame_content(compressed, frame)
        hasher.update(content)
        offset += frame.length
        end = next(places)
        if begin == end and builder.is_between_frames:
            builder.add_frame(frame, compressed, content)
        else:
            for line in _apply_changes(
                content.splitlines(keepends=True), {path: changes[path] for path in paths[begin:end]}
            ):
                builder.add(line)
        begin = end
    if offset != len(index.data) or hasher.hexdigest() != index.digest:
        raise FrameError("it does not match its frames")
    return builder.finish()


def frame_content(compressed: bytes, frame: IndexFrame) -> bytes:
    """Return the lines of a frame. Raises FrameError if they do not match its digest."""
    content = decompress_one(compressed, frame.content)
    if digest_bytes(content) != frame.digest:
        raise FrameError("a frame does not match its digest")
    return content


def frame_entries(content: bytes, frame: IndexFrame) -> list[Entry]:
    """Return the entries of a frame. Raises ValueError if they are invalid or do not match the frame."""
    entries = decode_entries(content)
    files = [entry.size for entry in entries if entry.kind == "file"]
    counts = (len(entries), len(files), sum(files))
    if counts != (frame.entries, frame.files, frame.size) or (entries and entries[0].path != frame.path):
        raise ValueError("a frame does not have the expected content")
    return entries


def check_frames(frames: Sequence[IndexFrame]) -> None:
    """Raise ValueError if the paths or sizes of frames cannot be those of an index.

    For example, the first paths of the frames must ascend.
    """
    paths = [frame.path for frame in frames]
    if not frames or any(path >= after for path, after in pairwise(paths)):
        raise ValueError("the frames of the index are out of order")
    if any(
        min(frame.entries - frame.files, frame.files, frame.size, frame.content, frame.length - 1) < 0
        or frame.content > _CONTENT_BYTES_MAX
        for frame in frames
    ):
        raise ValueError("a frame of the index has an impossible size")


def count_entries(frames: Sequence[IndexFrame]) -> tuple[int, int, int]:
    """Return the number of entries, the number of files, and the total size of the files."""
    return (
        sum(frame.entries for frame in frames),
        sum(frame.files for frame in frames),
        sum(frame.size for frame in frames),
    )


def frame_at(frames: Sequence[IndexFrame], path: bytes) -> int:
    """Return the number of the frame that contains a path.

    If no frame contains it, return the frame into which the path would be inserted.
    """
    return max(bisect_right(frames, path, key=lambda frame: frame.path) - 1, 0)


def frames_between(frames: Sequence[IndexFrame], start: int, end: int) -> tuple[int, int]:
    """Return the range [first, last) of the frames that contain the items [start, end). Requires start < end."""
    ends = list(accumulate(frame.files for frame in frames))
    return bisect_right(ends, start), bisect_left(ends, end) + 1


def _apply_changes(lines: list[bytes], changes: Mapping[bytes, Entry | None]) -> list[bytes]:
    for path, entry in changes.items():
        row = bisect_left(lines, path, key=line_path)
        exists = row < len(lines) and line_path(lines[row]) == path
        lines[row : row + exists] = [] if entry is None else [encode_entry(entry)]
    return lines


class _IndexBuilder:
    """A builder of an index, from single lines or from whole frames of another index."""

    def __init__(self) -> None:
        self._hasher = sha256()
        self._data: list[bytes] = []
        self._frames: list[IndexFrame] = []
        self._lines: list[bytes] = []
        self._size = 0

    @property
    def is_between_frames(self) -> bool:
        """True if the next line will be the first line of a frame."""
        return not self._lines

    def add(self, line: bytes) -> None:
        """Add the next line."""
        self._lines.append(line)
        self._size += len(line)
        if self._size >= _FRAME_BYTES_MIN and (
            zlib.crc32(line) % _FRAME_LINES_AVERAGE == 0 or self._size >= _FRAME_BYTES_MAX
        ):
            self._end_frame()

    def add_frame(self, frame: IndexFrame, compressed: bytes, content: bytes) -> None:
        """Add the next frame, copied unchanged from another index.

        The caller must ensure that the frame would end at the same line in this index.
        """
        self._hasher.update(content)
        self._data.append(compressed)
        self._frames.append(frame)

    def finish(self) -> SnapshotIndex:
        """Return the index. The last lines form a frame that may be shorter than the minimum."""
        if self._lines or not self._frames:
            self._end_frame()
        return SnapshotIndex(b"".join(self._data), tuple(self._frames), Digest(self._hasher.hexdigest()))

    def _end_frame(self) -> None:
        content = b"".join(self._lines)
        compressed = compress_frame(content)
        wires = decode_lines(content)
        sizes = [wire.size for wire in wires if wire.kind == "file"]
        frame = IndexFrame(
            path=line_path(self._lines[0]) if self._lines else b"",
            entries=len(wires),
            files=len(sizes),
            size=sum(sizes),
            length=len(compressed),
            content=len(content),
            digest=digest_bytes(content),
        )
        self.add_frame(frame, compressed, content)
        self._lines, self._size = [], 0
