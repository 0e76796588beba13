"""The stat cache: lstat(2) results of a source tree when its files were last read (SPEC.md "Caches").

`cache/stat-<16 hex>.bin` is a file for one source with its rules. It may be deleted at any time. Its format is: the
magic `cbstat`, 0 and the format version 1; the crc32 of the rest (4 bytes, little-endian); a msgpack array in the order
of `StatCache`. Rows are stored as columns, grouped by directory. A damaged file is treated as missing.

When is a row valid? If a file changes after it was read, its new ctime differs from the one in its row. Exception: if
the clock of the file system did not tick in between, both are equal. So only rows with times before `stamp_ns` are
valid. All other rows are *racy*, and their files are read again. `stamp_ns` is the time of a file that was created in
the cache directory before the first lstat of the tree. Every later change has a time at or after this stamp.

git uses the time of its index file as the stamp. git writes this file after its lstat calls, so it can miss a change in
between. If the tree is on another device than the store, the clocks of the two devices can differ, so the stamp is set
two seconds earlier.
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
from codebatch.model.nearest_directories import parent_directory
from codebatch.snapshotting.directories import DirectoryDescriptors
from codebatch.store import layout
from codebatch.system.files.files import StoreFiles

IGNORE_FILE = b".codebatchignore"
NO_KEY = bytes(32)

MODE_GIT = "git"
MODE_WALK = "walk"
"""The source tree was listed by walking its directories. `MODE_GIT`: it was listed by git."""

FLAG_SUBMODULE = 1
FLAG_LFS_POINTER = 2

_MAGIC = b"cbstat\0\1"
_CRC_BYTES = 4
_OTHER_CLOCK_MARGIN_NS = 2_000_000_000


class FileStat(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The fields of an lstat(2) result that show whether a file has changed.

    All are zero if the path does not exist.
    """

    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


ABSENT_FILE = FileStat(0, 0, 0, 0, 0)


class StatRow(msgspec.Struct, frozen=True, gc=False):
    """The row of one listed path. `key` is the SHA-256 of its object, or NO_KEY if the path has no object."""

    stat: FileStat
    key: bytes
    flags: int


class StatCache(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The content of a stat cache file. `listings` are (directory, mode, SHA-256 of the list).

    `rule_files` are the files whose content determines which paths have rows: .codebatchignore files, and .gitignore
    files that have no row because they are not selected.
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
        """Yield the paths whose rows differ from their lstat results.

        Most of the time of a snapshot of an unchanged tree is spent in this loop.

        Directories that were modified at or after the stamp are added to `touched`.

        The loop calls lstat with whole paths, which is faster than opening each directory. It also calls lstat for
        every directory, to find links that have replaced a directory. A path that is too long for lstat is yielded as
        changed, and the caller reads it through `DirectoryDescriptors`.
        """
        names = iter(self.names.split(b"\0"))
        expected = self._iter_stats()
        lstat, fields_of, stamp_ns = os.lstat, _stat_fields, self.stamp_ns
        missing: set[bytes] = set()
        top = os.path.join(base, b"")
        for directory, count in zip(self.directories, self.counts, strict=True):
            path = top + directory if directory else base
            try:
                directory_stat = None if missing and parent_directory(directory) in missing else lstat(path)
            except OSError:
                directory_stat = None
            if directory_stat is None or not stat_module.S_ISDIR(directory_stat.st_mode):
                missing.add(directory)
                for name, row in zip(itertools.islice(names, count), expected):  # noqa: B905
                    if row[0]:
                        yield os.path.join(directory, name)
                continue
            if touched is not None and (
                directory_stat.st_mtime_ns >= stamp_ns or directory_stat.st_ctime_ns >= stamp_ns
            ):
                touched.add(directory)
            prefix = path + b"/"
            # `names` is the first argument of zip. So when its slice ends, zip has not consumed an element of
            # `expected`.
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
        """Yield the paths of racy rows, whose files may have changed without a new ctime."""
        if self.racy:
            for path, row in zip(self.iter_paths(), self._iter_stats(), strict=True):
                if is_racy(FileStat(*row), self.stamp_ns):
                    yield path

    def safe_rows(self) -> dict[bytes, StatRow]:
        """Return every row that is not racy, by path."""
        return {
            path: StatRow(FileStat(*row), key, flags)
            for path, row, key, flags in self._iter_rows()
            if row[2] < self.stamp_ns and row[3] < self.stamp_ns
        }

    def all_rows(self) -> dict[bytes, StatRow]:
        """Return every row, by path."""
        return {path: StatRow(FileStat(*row), key, flags) for path, row, key, flags in self._iter_rows()}

    def iter_paths(self) -> Iterator[bytes]:
        """Yield the paths of the rows, in row order."""
        names = iter(self.names.split(b"\0"))
        for directory, count in zip(self.directories, self.counts, strict=True):
            prefix = directory + b"/" if directory else b""
            for name in itertools.islice(names, count):
                yield prefix + name

    def _iter_rows(self) -> Iterator[tuple[bytes, tuple[int, int, int, int, int], bytes, int]]:
        keys = (self.keys[offset : offset + 32] for offset in range(0, len(self.keys), 32))
        return zip(self.iter_paths(), self._iter_stats(), keys, self.flags, strict=True)

    def _iter_stats(self) -> Iterator[tuple[int, int, int, int, int]]:
        return zip(
            _decode_column("Q", self.modes),
            _decode_column("q", self.sizes),
            _decode_column("q", self.mtimes),
            _decode_column("q", self.ctimes),
            _decode_column("Q", self.inodes),
            strict=True,
        )


class StatColumns(msgspec.Struct, frozen=True):
    """The rows as columns, as in the file."""

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


def to_columns(rows: dict[bytes, StatRow]) -> StatColumns:
    """Return rows as columns, grouped by directory. Directories are sorted, and so are the names in each directory."""
    groups: dict[bytes, list[bytes]] = {}
    for path in sorted(rows):
        cut = path.rfind(b"/") + 1
        groups.setdefault(path[:cut], []).append(path)
    for prefix in list(groups):
        # Intermediate directories are listed even if they contain no file directly.
        while prefix := prefix[: prefix.rfind(b"/", 0, -1) + 1]:
            if prefix in groups:
                break
            groups[prefix] = []
    prefixes = sorted(groups)
    paths = [path for prefix in prefixes for path in groups[prefix]]
    ordered = [rows[path] for path in paths]
    return StatColumns(
        [prefix[:-1] for prefix in prefixes],
        [len(groups[prefix]) for prefix in prefixes],
        b"\0".join([path[path.rfind(b"/") + 1 :] for path in paths]),
        _column_bytes("Q", (row.stat.mode for row in ordered)),
        _column_bytes("q", (row.stat.size for row in ordered)),
        _column_bytes("q", (row.stat.mtime_ns for row in ordered)),
        _column_bytes("q", (row.stat.ctime_ns for row in ordered)),
        _column_bytes("Q", (row.stat.inode for row in ordered)),
        b"".join(row.key for row in ordered),
        bytes(row.flags for row in ordered),
    )


def load_stat_cache(files: StoreFiles, path: Path, source: bytes) -> StatCache | None:
    """Return the stat cache at a path.

    None if it is missing or damaged, or was written for another key than `source`.
    """
    cache = read_stat_cache(files, path)
    return cache if cache is not None and cache.source == source else None


def read_stat_cache(files: StoreFiles, path: Path) -> StatCache | None:
    """Return the stat cache at a path, or None if it is missing or damaged."""
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
    return cache if _has_equal_columns(cache) else None


def save_stat_cache(files: StoreFiles, path: Path, cache: StatCache) -> None:
    """Replace the stat cache atomically, without fsync.

    If a power loss leaves an incomplete file, its CRC does not match.
    """
    files.make_directory(path.parent)
    body = _encoder.encode(cache)
    files.write_volatile(path, _MAGIC + zlib.crc32(body).to_bytes(4, "little") + body)


def cache_path(store_root: Path, source: bytes) -> Path:
    """Return the path of the stat cache for a source. `source` is the encoded key of the cache."""
    return store_root / layout.CACHE / layout.stat_cache_name(digest_bytes(source))


def make_stamp(files: StoreFiles, path: Path, base: bytes) -> int:
    """Return the stamp of a new cache: the current time in ns, by the clock of the store's file system.

    Only rows with earlier times are valid. If `base` is on another device, two seconds are subtracted. All sources
    share one file. If it is that of another process, it exists before this process reads the tree too.
    """
    files.make_directory(path.parent)
    probe = path.with_name(layout.STAT_STAMP)
    files.write_volatile(probe, b"")
    status = os.lstat(probe)
    return status.st_mtime_ns - (0 if os.stat(base).st_dev == status.st_dev else _OTHER_CLOCK_MARGIN_NS)


def file_stat(status: os.stat_result) -> FileStat:
    """Return the fields of an lstat(2) result that are stored in a row."""
    return FileStat(status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def stat_at(directories: DirectoryDescriptors, path: bytes) -> FileStat:
    """Return the lstat(2) result of a path in a tree.

    Return ABSENT if the path does not exist, or if a parent is a file or a link. Raises OSError.
    """
    directory, _, name = path.rpartition(b"/")
    try:
        return file_stat(os.stat(name, dir_fd=directories.open_directory(directory), follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT_FILE


def is_racy(status: FileStat, stamp_ns: int) -> bool:
    """Return whether an existing path was modified at or after the stamp, so that its row cannot be trusted."""
    return status.mode != 0 and max(status.mtime_ns, status.ctime_ns) >= stamp_ns


def directory_changed_ns(path: bytes) -> int | None:
    """Return the time of the last change of a directory's entries or permissions, or None if it is not a directory."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return max(status.st_mtime_ns, status.st_ctime_ns) if stat_module.S_ISDIR(status.st_mode) else None


def is_special(mode: int) -> bool:
    """Return whether a file mode (st_mode) is that of a FIFO, socket or device."""
    return mode != 0 and not (stat_module.S_ISREG(mode) or stat_module.S_ISDIR(mode) or stat_module.S_ISLNK(mode))


_stat_fields = operator.attrgetter("st_mode", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(StatCache)


def _has_equal_columns(cache: StatCache) -> bool:
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


def _column_bytes(code: str, values: Iterable[int]) -> bytes:
    column = array(code, values)
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def _decode_column(code: str, data: bytes) -> array[int]:
    column = array(code)
    column.frombytes(data)
    if sys.byteorder == "big":
        column.byteswap()
    return column
