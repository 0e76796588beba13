"""The frames of a snapshot's index: made of its lines, or spliced out of those of another one (SPEC.md "Snapshots").

A frame holds whole lines. It ends behind the first line with which it has 32 KiB and whose crc32 is a multiple of 256,
or with which it has 128 KiB. So the lines alone say where frames end, whichever way an index is made, and a change of
one line rarely moves the ends behind it: those frames are the other index's, byte for byte.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import accumulate, pairwise

import msgspec

from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.entry import PATH_BYTES_MAX, Entry, decode_entries, decode_lines, encode_entry, path_of_line
from codebatch.store.objects.frames import FrameError, compress, decompress_one

_BYTES_MIN = 32 << 10
_BYTES_MAX = 128 << 10
_LINES_AVERAGE = 256
# A byte of a path may be written as `\\u0000`.
_CONTENT_BYTES_MAX = _BYTES_MAX + 6 * PATH_BYTES_MAX + 1024


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
    """An index: the file's bytes, its frames, and the digest of all lines, which is the snapshot's."""

    data: bytes
    frames: tuple[IndexFrame, ...]
    digest: Digest


def make_index(lines: Iterable[bytes]) -> SnapshotIndex:
    """An index of all its lines, in path order. Without any it is an empty frame."""
    maker = _Maker()
    for line in lines:
        maker.add(line)
    return maker.finish()


def splice_index(index: SnapshotIndex, changes: Mapping[bytes, Entry | None]) -> SnapshotIndex:
    """The index in which the entries at some paths are other ones, or None where there are none any more.

    It is what `make_index` makes of all lines, byte for byte where zstd is the same. Raises ValueError where the index
    that it is made of is unsound.
    """
    maker, whole = _Maker(), sha256()
    paths = sorted(changes)
    starts = [frame.path for frame in index.frames[1:]]
    places = iter([bisect_left(paths, start) for start in starts] + [len(paths)])
    begin = offset = 0
    for frame in index.frames:
        compressed = index.data[offset : offset + frame.length]
        content = frame_content(compressed, frame)
        whole.update(content)
        offset += frame.length
        end = next(places)
        if begin == end and maker.is_between_frames:
            maker.keep(frame, compressed, content)
        else:
            for line in _changed(content.splitlines(keepends=True), {path: changes[path] for path in paths[begin:end]}):
                maker.add(line)
        begin = end
    if offset != len(index.data) or whole.hexdigest() != index.digest:
        raise FrameError("it does not match its frames")
    return maker.finish()


def frame_content(compressed: bytes, frame: IndexFrame) -> bytes:
    """The lines of a frame. Raises FrameError where they are not those that it had."""
    content = decompress_one(compressed, frame.content)
    if digest_bytes(content) != frame.digest:
        raise FrameError("a frame does not match its digest")
    return content


def frame_entries(content: bytes, frame: IndexFrame) -> list[Entry]:
    """The entries of a frame. Raises ValueError where they are unsound, or not as the frame says."""
    entries = decode_entries(content)
    files = [entry.size for entry in entries if entry.kind == "file"]
    counted = (len(entries), len(files), sum(files))
    if counted != (frame.entries, frame.files, frame.size) or (entries and entries[0].path != frame.path):
        raise ValueError("a frame does not have the expected content")
    return entries


def check_frames(frames: Sequence[IndexFrame]) -> None:
    """Refuse frames that cannot be those of an index. Raises ValueError."""
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
    """How many entries there are, how many of kind `file`, and how many bytes these have."""
    return (
        sum(frame.entries for frame in frames),
        sum(frame.files for frame in frames),
        sum(frame.size for frame in frames),
    )


def frame_at(frames: Sequence[IndexFrame], path: bytes) -> int:
    """The number of the frame in which a path would be."""
    return max(bisect_right(frames, path, key=lambda frame: frame.path) - 1, 0)


def frames_between(frames: Sequence[IndexFrame], start: int, end: int) -> tuple[int, int]:
    """The frames [first, last) in which the items [start, end) are; `start` is below `end`."""
    ends = list(accumulate(frame.files for frame in frames))
    return bisect_right(ends, start), bisect_left(ends, end) + 1


def _changed(lines: list[bytes], changes: Mapping[bytes, Entry | None]) -> list[bytes]:
    for path, entry in changes.items():
        place = bisect_left(lines, path, key=path_of_line)
        is_there = place < len(lines) and path_of_line(lines[place]) == path
        lines[place : place + is_there] = [] if entry is None else [encode_entry(entry)]
    return lines


class _Maker:
    """An index being made, line by line or whole frames at a time."""

    def __init__(self) -> None:
        self._whole = sha256()
        self._data: list[bytes] = []
        self._frames: list[IndexFrame] = []
        self._lines: list[bytes] = []
        self._size = 0

    @property
    def is_between_frames(self) -> bool:
        """Whether the next line begins a frame."""
        return not self._lines

    def add(self, line: bytes) -> None:
        """The next line."""
        self._lines.append(line)
        self._size += len(line)
        if self._size >= _BYTES_MIN and (zlib.crc32(line) % _LINES_AVERAGE == 0 or self._size >= _BYTES_MAX):
            self._end_frame()

    def keep(self, frame: IndexFrame, compressed: bytes, content: bytes) -> None:
        """The next frame, as it is in another index: where it ended there, it would end here."""
        self._whole.update(content)
        self._data.append(compressed)
        self._frames.append(frame)

    def finish(self) -> SnapshotIndex:
        """The index, with the last lines in a frame that is as short as it is."""
        if self._lines or not self._frames:
            self._end_frame()
        return SnapshotIndex(b"".join(self._data), tuple(self._frames), Digest(self._whole.hexdigest()))

    def _end_frame(self) -> None:
        content = b"".join(self._lines)
        compressed = compress(content)
        wires = decode_lines(content)
        sizes = [wire.size for wire in wires if wire.kind == "file"]
        frame = IndexFrame(
            path=path_of_line(self._lines[0]) if self._lines else b"",
            entries=len(wires),
            files=len(sizes),
            size=sum(sizes),
            length=len(compressed),
            content=len(content),
            digest=digest_bytes(content),
        )
        self.keep(frame, compressed, content)
        self._lines, self._size = [], 0
