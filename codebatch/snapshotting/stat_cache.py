"""The stat cache: what a source tree looked like to lstat(2) when its files were last read (SPEC.md "Caches").

`cache/stat-<16 hex>.bin`, one file per source and rules, may be deleted at any time: magic `cbstat` 0 and the
format, 1; crc32 of the rest (4 bytes, little-endian); then a msgpack array in the order of `StatCache`. Rows are
columns, grouped by directory. Anything unsound about the file means that there is no cache.

Why a row may be believed. A file that was changed after we read it has another ctime than the row, unless the clock of
the file system did not tick between the two. So every row carries times older than `stamp_ns`, the time that a file got
which was made in the cache directory before the first file of the tree was looked at: whatever happens after our look
is stamped later than that. Rows that are not older are racy and are read again. git compares with the time of its index
file instead, which is written after the look: a change between look and writing can slip through there.
The clocks of two file systems can differ, so a tree on another device than the store must be older by two seconds.
"""

from __future__ import annotations

import itertools
import operator
import os
import stat as stat_module
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from codebatch.errors import StoreError
from codebatch.model.digest import digest_bytes
from codebatch.model.nearest_directories import parent_of
from codebatch.snapshotting.directories import Directories
from codebatch.store import layout
from codebatch.system.files.files import Files

IGNORE_FILE = b".codebatchignore"
NO_KEY = bytes(32)

MODE_GIT = "git"
MODE_WALK = "walk"
"""How a directory was listed."""

FLAG_SUBMODULE = 1
FLAG_LFS_POINTER = 2

_MAGIC = b"cbstat\0\1"
_CRC_BYTES = 4
_OTHER_CLOCK_MARGIN_NS = 2_000_000_000


class FileStat(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The fields of lstat(2) that tell a changed file. All zero where there is nothing."""

    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


ABSENT = FileStat(0, 0, 0, 0, 0)


class Row(msgspec.Struct, frozen=True, gc=False):
    """One path that was listed. `key` is the sha256 of its object; NO_KEY where it is no entry or has no object."""

    stat: FileStat
    key: bytes
    flags: int


class StatCache(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The file's content. `listings` are (directory, mode, sha256 of the list); `rule_files` decide the rows.

    Those are .codebatchignore files, and the .gitignore files that no row tells of, for they are not taken.
    """

    source: bytes
    stamp_ns: int
    racy: int
    snapshot_id: str
    index_digest: str
    packs: list[tuple[str, int]]
    listings: list[tuple[bytes, str, bytes]]
    rule_files: list[tuple[bytes, FileStat]]
    skipped: list[tuple[bytes, str]]
    notes: list[str]
    directories: list[bytes]
    counts: list[int]
    names: bytes
    modes: bytes
    sizes: bytes
    mtimes: bytes
    ctimes: bytes
    inodes: bytes
    keys: bytes
    flags: bytes

    def iter_changed(self, base: bytes, touched: set[bytes] | None = None) -> Iterator[bytes]:
        """The paths whose rows are not as lstat finds them now. The inner loop of a snapshot of an unchanged tree.

        Into `touched` go the directories that have changed themselves when all this had been looked at, or later.

        Goes by whole paths, which costs less than entering each directory; as every directory on the way is looked at
        too, no link can stand in for one. A path too long for that counts as changed, and is looked at the other way.
        """
        names = iter(self.names.split(b"\0"))
        expected = self._iter_stats()
        lstat, fields_of, stamp_ns = os.lstat, _FIELDS_OF, self.stamp_ns
        gone: set[bytes] = set()
        top = os.path.join(base, b"")
        for directory, count in zip(self.directories, self.counts, strict=True):
            path = top + directory if directory else base
            try:
                there = None if gone and parent_of(directory) in gone else lstat(path)
            except OSError:
                there = None
            if there is None or not stat_module.S_ISDIR(there.st_mode):
                gone.add(directory)
                for name, row in zip(itertools.islice(names, count), expected):  # noqa: B905
                    if row[0]:
                        yield os.path.join(directory, name)
                continue
            if touched is not None and (there.st_mtime_ns >= stamp_ns or there.st_ctime_ns >= stamp_ns):
                touched.add(directory)
            prefix = path + b"/"
            # The names come first: a zip that ends on its first iterator has taken nothing from the second.
            for name, row in zip(itertools.islice(names, count), expected):  # noqa: B905
                try:
                    now = lstat(prefix + name)
                except OSError:
                    if row[0]:
                        yield os.path.join(directory, name)
                    continue
                if fields_of(now) != row:
                    yield os.path.join(directory, name)

    def iter_racy(self) -> Iterator[bytes]:
        """The paths whose rows may not be believed."""
        if self.racy:
            for path, row in zip(self.iter_paths(), self._iter_stats(), strict=True):
                if is_racy(FileStat(*row), self.stamp_ns):
                    yield path

    def rows(self) -> dict[bytes, Row]:
        """Every row that may be believed, by path."""
        return {
            path: Row(FileStat(*row), key, flags)
            for path, row, key, flags in self._iter_rows()
            if row[2] < self.stamp_ns and row[3] < self.stamp_ns
        }

    def all_rows(self) -> dict[bytes, Row]:
        """Every row, by path."""
        return {path: Row(FileStat(*row), key, flags) for path, row, key, flags in self._iter_rows()}

    def iter_paths(self) -> Iterator[bytes]:
        """The paths of the rows, in their order."""
        names = iter(self.names.split(b"\0"))
        for directory, count in zip(self.directories, self.counts, strict=True):
            prefix = directory + b"/" if directory else b""
            for name in itertools.islice(names, count):
                yield prefix + name

    def _iter_rows(self) -> Iterator[tuple[bytes, tuple[int, int, int, int, int], bytes, int]]:
        keys = (self.keys[at : at + 32] for at in range(0, len(self.keys), 32))
        return zip(self.iter_paths(), self._iter_stats(), keys, self.flags, strict=True)

    def _iter_stats(self) -> Iterator[tuple[int, int, int, int, int]]:
        return zip(
            _column("Q", self.modes),
            _column("q", self.sizes),
            _column("q", self.mtimes),
            _column("q", self.ctimes),
            _column("Q", self.inodes),
            strict=True,
        )


class Columns(msgspec.Struct, frozen=True):
    """Rows in the shape of the file."""

    directories: list[bytes]
    counts: list[int]
    names: bytes
    modes: bytes
    sizes: bytes
    mtimes: bytes
    ctimes: bytes
    inodes: bytes
    keys: bytes
    flags: bytes


def to_columns(rows: dict[bytes, Row]) -> Columns:
    """Group rows by directory: directories ascending, names ascending in each."""
    groups: dict[bytes, list[bytes]] = {}
    for path in sorted(rows):
        cut = path.rfind(b"/") + 1
        groups.setdefault(path[:cut], []).append(path)
    for prefix in list(groups):
        # Every directory on the way has its place, also one with nothing right in it.
        while prefix := prefix[: prefix.rfind(b"/", 0, -1) + 1]:
            if prefix in groups:
                break
            groups[prefix] = []
    prefixes = sorted(groups)
    paths = [path for prefix in prefixes for path in groups[prefix]]
    ordered = [rows[path] for path in paths]
    return Columns(
        [prefix[:-1] for prefix in prefixes],
        [len(groups[prefix]) for prefix in prefixes],
        b"\0".join([path[path.rfind(b"/") + 1 :] for path in paths]),
        _bytes("Q", (row.stat.mode for row in ordered)),
        _bytes("q", (row.stat.size for row in ordered)),
        _bytes("q", (row.stat.mtime_ns for row in ordered)),
        _bytes("q", (row.stat.ctime_ns for row in ordered)),
        _bytes("Q", (row.stat.inode for row in ordered)),
        b"".join(row.key for row in ordered),
        bytes(row.flags for row in ordered),
    )


def load_stat_cache(files: Files, path: Path, source: bytes) -> StatCache | None:
    """The cache at a path if it is sound and about this source, else None."""
    cache = read_stat_cache(files, path)
    return cache if cache is not None and cache.source == source else None


def read_stat_cache(files: Files, path: Path) -> StatCache | None:
    """The cache at a path if it is sound, else None."""
    try:
        data = files.read(path)
    except (FileNotFoundError, StoreError):
        return None
    head = len(_MAGIC) + _CRC_BYTES
    if data[: len(_MAGIC)] != _MAGIC or zlib.crc32(memoryview(data)[head:]).to_bytes(4, "little") != data[8:head]:
        return None
    try:
        cache = _decoder.decode(memoryview(data)[head:])
    except msgspec.DecodeError:
        return None
    return cache if _is_rectangular(cache) else None


def save_stat_cache(files: Files, path: Path, cache: StatCache) -> None:
    """Replace the cache in one step, without waiting for the disk: a torn one does not have its crc."""
    files.make_directory(path.parent)
    body = _encoder.encode(cache)
    files.write_volatile(path, _MAGIC + zlib.crc32(body).to_bytes(4, "little") + body)


def cache_path(store_root: Path, source: bytes) -> Path:
    """Where the cache of a source lies."""
    return store_root / layout.CACHE / layout.stat_cache_name(digest_bytes(source))


def stamp(files: Files, path: Path, base: bytes) -> int:
    """The time before which a row's times must lie to be believed: now, by the clock of the store's file system."""
    files.make_directory(path.parent)
    probe = path.with_suffix(".stamp")
    files.write_volatile(probe, b"")
    found = os.lstat(probe)
    return found.st_mtime_ns - (0 if os.stat(base).st_dev == found.st_dev else _OTHER_CLOCK_MARGIN_NS)


def stat_of(found: os.stat_result) -> FileStat:
    """The five fields of a row."""
    return FileStat(found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def stat_at(directories: Directories, path: bytes) -> FileStat:
    """What lstat(2) says of a path of a tree. ABSENT where nothing is, or where a parent is a file or a link now.

    Raises OSError.
    """
    directory, _, name = path.rpartition(b"/")
    try:
        return stat_of(os.stat(name, dir_fd=directories.enter(directory), follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT


def is_racy(found: FileStat, stamp_ns: int) -> bool:
    """Whether what is there is not older than a look's stamp."""
    return found.mode != 0 and max(found.mtime_ns, found.ctime_ns) >= stamp_ns


def directory_changed_ns(path: bytes) -> int | None:
    """When something was last put into a directory or taken out, or its permissions changed. None where it is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return max(found.st_mtime_ns, found.st_ctime_ns) if stat_module.S_ISDIR(found.st_mode) else None


def is_special(mode: int) -> bool:
    """Whether a mode is neither a file, a directory, a symbolic link nor nothing."""
    return mode != 0 and not (stat_module.S_ISREG(mode) or stat_module.S_ISDIR(mode) or stat_module.S_ISLNK(mode))


_FIELDS_OF = operator.attrgetter("st_mode", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(StatCache)


def _is_rectangular(cache: StatCache) -> bool:
    total = sum(cache.counts)
    eights = (cache.modes, cache.sizes, cache.mtimes, cache.ctimes, cache.inodes)
    return (
        len(cache.directories) == len(cache.counts)
        and all(len(column) == 8 * total for column in eights)
        and len(cache.keys) == 32 * total
        and len(cache.flags) == total
        and all(count >= 0 for count in cache.counts)
        and cache.names.count(b"\0") == max(total - 1, 0)
    )


def _bytes(code: str, values: Iterable[int]) -> bytes:
    column = array(code, values)
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def _column(code: str, data: bytes) -> array[int]:
    column = array(code)
    column.frombytes(data)
    if sys.byteorder == "big":
        column.byteswap()
    return column
