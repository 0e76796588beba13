"""The rows of a stat cache in which some become others, and none comes or goes: what a few changed files cost."""

from __future__ import annotations

import struct
from bisect import bisect_left
from itertools import accumulate

import msgspec

from codebatch.snapshotting.stat_cache import Columns, FileStat, Row, StatCache

_WORDS = ("<Q", "<q", "<q", "<q", "<Q")
_KEY_BYTES = 32


class RowEdits:
    """Rows by path."""

    def __init__(self, cache: StatCache) -> None:
        self._cache = cache
        self._names = cache.names.split(b"\0")
        starts = accumulate(cache.counts, initial=0)
        self._places = {
            directory: (start, start + count)
            for directory, start, count in zip(cache.directories, starts, cache.counts)  # noqa: B905 - one start more
        }
        self._words = [bytearray(each) for each in (cache.modes, cache.sizes, cache.mtimes, cache.ctimes, cache.inodes)]
        self._keys = bytearray(cache.keys)
        self._flags = bytearray(cache.flags)

    def get(self, path: bytes) -> Row | None:
        """The row of a path, None where there is none."""
        at = self._find(path)
        if at is None:
            return None
        words = (struct.unpack_from(word, column, 8 * at)[0] for word, column in zip(_WORDS, self._words, strict=True))
        return Row(FileStat(*words), bytes(self._keys[_KEY_BYTES * at : _KEY_BYTES * (at + 1)]), self._flags[at])

    def put(self, path: bytes, row: Row) -> None:
        """Another row for a path that has one."""
        at = self._find(path)
        assert at is not None
        for word, column, value in zip(_WORDS, self._words, msgspec.structs.astuple(row.stat), strict=True):
            struct.pack_into(word, column, 8 * at, value)
        self._keys[_KEY_BYTES * at : _KEY_BYTES * (at + 1)] = row.key
        self._flags[at] = row.flags

    def columns(self) -> Columns:
        """The rows as they are now, in the shape of the file."""
        cache = self._cache
        modes, sizes, mtimes, ctimes, inodes = map(bytes, self._words)
        return Columns(
            directories=cache.directories,
            counts=cache.counts,
            names=cache.names,
            modes=modes,
            sizes=sizes,
            mtimes=mtimes,
            ctimes=ctimes,
            inodes=inodes,
            keys=bytes(self._keys),
            flags=bytes(self._flags),
        )

    def _find(self, path: bytes) -> int | None:
        directory, _, name = path.rpartition(b"/")
        start, end = self._places.get(directory, (0, 0))
        at = bisect_left(self._names, name, start, end)
        return at if at < end and self._names[at] == name else None
