"""Edits of the stat cache in place: rows of existing paths are replaced.

Paths are neither added nor removed, so the time depends only on the number of changed files.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from itertools import accumulate

import msgspec

from codebatch.snapshotting.stat_cache import FileStat, StatCache, StatColumns, StatRow

_STAT_FORMATS = ("<Q", "<q", "<q", "<q", "<Q")
_KEY_BYTES = 32


class RowEdits:
    """Editable rows of a stat cache, by path."""

    def __init__(self, cache: StatCache) -> None:
        self._cache = cache
        self._names = cache.names.split(b"\0")
        starts = accumulate(cache.counts, initial=0)
        self._ranges = {
            directory: (start, start + count)
            for directory, start, count in zip(cache.directories, starts, cache.counts)  # noqa: B905 - one start more
        }
        self._stat_words = [
            bytearray(column) for column in (cache.modes, cache.sizes, cache.mtimes, cache.ctimes, cache.inodes)
        ]
        self._keys = bytearray(cache.keys)
        self._flags = bytearray(cache.flags)

    def get(self, path: bytes) -> StatRow | None:
        """Return the row of a path, or None."""
        index = self._find_index(path)
        if index is None:
            return None
        words = (
            struct.unpack_from(word, column, 8 * index)[0]
            for word, column in zip(_STAT_FORMATS, self._stat_words, strict=True)
        )
        return StatRow(
            FileStat(*words), bytes(self._keys[_KEY_BYTES * index : _KEY_BYTES * (index + 1)]), self._flags[index]
        )

    def put(self, path: bytes, row: StatRow) -> None:
        """Replace the row of a path. The path must already have a row."""
        index = self._find_index(path)
        assert index is not None
        for word, column, value in zip(_STAT_FORMATS, self._stat_words, msgspec.structs.astuple(row.stat), strict=True):
            struct.pack_into(word, column, 8 * index, value)
        self._keys[_KEY_BYTES * index : _KEY_BYTES * (index + 1)] = row.key
        self._flags[index] = row.flags

    def columns(self) -> StatColumns:
        """Return the current rows as columns, in the format of the stat cache file."""
        cache = self._cache
        modes, sizes, mtimes, ctimes, inodes = map(bytes, self._stat_words)
        return StatColumns(
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

    def _find_index(self, path: bytes) -> int | None:
        directory, _, name = path.rpartition(b"/")
        start, end = self._ranges.get(directory, (0, 0))
        index = bisect_left(self._names, name, start, end)
        return index if index < end and self._names[index] == name else None
