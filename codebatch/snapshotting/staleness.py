"""Whether a tree is still as it was frozen, told cheaply: by the stat cache and lstat(2), without git.

Looked at is every path of the cache, and every directory that has changed since for what was added to it. A file that
was touched and holds the same bytes is no change; nor is what the rules leave out. What costs too much is not looked
at: then it is not known. Not noticed are a file in a directory in which nothing was taken before, what only git's
index says, and a changed .gitignore that ignores itself or lies above the tree. The command line has another process
look while it makes its answer (`look_ahead` in batch_query.py): most of the time are 10,000 system calls.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from codebatch.errors import SourceUnreadable, StoreCorrupt, UnknownId
from codebatch.model.entry import Entry, SnapshotId, display_path
from codebatch.model.nearest_directories import innermost, parent_of
from codebatch.snapshotting.changes import Changes
from codebatch.snapshotting.directories import Directories
from codebatch.snapshotting.stat_cache import (
    FLAG_SUBMODULE,
    IGNORE_FILE,
    MODE_GIT,
    NO_KEY,
    FileStat,
    Row,
    StatCache,
    directory_changed_ns,
    read_stat_cache,
    stat_at,
)
from codebatch.store import layout
from codebatch.system.files.files import Files

if TYPE_CHECKING:
    from codebatch.snapshotting.selection import SelectionRules, SourceRules
    from codebatch.snapshotting.walk import GitIgnore
    from codebatch.snapshotting.worktrees import LinkedWorktrees
    from codebatch.store.snapshots.snapshots import Snapshot

PATHS_MAX = 20_000
"""A tree of more paths is not looked at. One of 6,890 in 3,247 directories takes 47 ms of CPU."""
DIRECTORIES_MAX = 1_000
ADDED_MAX = 20_000
"""So many directories that have changed are listed, and so many names that are new to them are looked at."""
REREAD_BYTES_MAX = 4 << 20
REREAD_FILES_MAX = 256
CHANGES_MAX = 10
"""No more changes are looked for."""


class _TooMuch(Exception):
    """A bound was met before the answer was found."""


class _SourceKey(msgspec.Struct, frozen=True, array_like=True):
    """What a stat cache is about."""

    base: bytes
    sources: tuple[bytes, tuple[bytes, ...], tuple[bytes, ...]]
    include: tuple[bytes, ...]
    exclude: tuple[bytes, ...]

    @property
    def patterns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """`include` and `exclude`."""
        return tuple(map(os.fsdecode, self.include)), tuple(map(os.fsdecode, self.exclude))

    @property
    def rules(self) -> SourceRules:
        """What chose the files."""
        from codebatch.snapshotting.selection import SourceRules  # 5 ms, with the patterns, that few questions need.

        include, exclude = self.patterns
        return SourceRules(include=include, exclude=exclude)


def changes_since(
    files: Files, store_root: Path, stat_cache: str, snapshot_id: SnapshotId, but: Collection[bytes] = ()
) -> Changes | None:
    """How the tree that a snapshot was taken of has changed, `but` for some files, which are absolute paths.

    None where there is no stat cache to tell, or the tree is not there or cannot be read.
    """
    read = _read(files, store_root, stat_cache)
    if read is None:
        return None
    cache, about = read
    since = None if cache.snapshot_id == snapshot_id else SnapshotId(cache.snapshot_id)
    base = os.path.realpath(about.base)
    found: list[bytes] = []
    is_cut = sum(cache.counts) > PATHS_MAX
    try:
        with _TreeCheck(cache, about, store_root) as look:
            try:
                changes = (path for path in look.iter_changes() if os.path.join(base, path) not in but)
                for path in () if is_cut else islice(changes, CHANGES_MAX):
                    found.append(path)  # noqa: PERF402  # what was found before a bound was met counts
            except _TooMuch:
                is_cut = True
            is_cut = is_cut or len(found) == CHANGES_MAX
            if since is not None and found:
                from codebatch.store.snapshots.snapshots import load_snapshot  # 3 ms that hardly anybody pays

                then, later = (load_snapshot(files, store_root, each) for each in (snapshot_id, since))
                found, since = look.changes_from(then, later, found, is_cut=is_cut), None
    except _TooMuch:
        found, since, is_cut = [], None, True
    except (OSError, SourceUnreadable, StoreCorrupt, UnknownId):
        return None
    include, exclude = about.patterns
    return Changes(tuple(found), is_cut, since, include, exclude)


def rules_of(files: Files, store_root: Path, stat_cache: str) -> SourceRules | None:
    """What chose the files of a snapshot. None where there is no stat cache to tell."""
    read = _read(files, store_root, stat_cache)
    return None if read is None else read[1].rules


def stat_cache_of(files: Files, store_root: Path, snapshot_id: SnapshotId, base: str) -> str:
    """The name of the latest stat cache that was written when a snapshot was taken of `base`; empty without any."""
    found = (0, "")
    for name in files.listing(store_root / layout.CACHE):
        read = _read(files, store_root, name)
        if read is not None and read[0].snapshot_id == snapshot_id and display_path(read[1].base) == base:
            found = max(found, (read[0].stamp_ns, name))
    return found[1]


def _read(files: Files, store_root: Path, name: str) -> tuple[StatCache, _SourceKey] | None:
    """A stat cache by its name, and what it is about. None where there is none that is sound."""
    cache = read_stat_cache(files, store_root / layout.CACHE / name) if layout.STAT_CACHE_PATTERN.match(name) else None
    try:
        return None if cache is None else (cache, msgspec.msgpack.decode(cache.source, type=_SourceKey))
    except msgspec.DecodeError:
        return None


class _TreeCheck:
    """One look at a tree. A context manager."""

    def __init__(self, cache: StatCache, about: _SourceKey, store_root: Path) -> None:
        """Raises OSError where the tree is not there."""
        self._cache = cache
        self._about = about
        self._store_root = store_root
        _, self._listed, _ = about.sources
        self._base = about.base
        self._opened = contextlib.ExitStack()
        self._directories = self._opened.enter_context(Directories(about.base))
        self._touched: set[bytes] = set()
        self._bytes_left = REREAD_BYTES_MAX
        self._files_left = REREAD_FILES_MAX
        self._directories_left = DIRECTORIES_MAX
        self._names_left = ADDED_MAX

    def __enter__(self) -> _TreeCheck:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @cached_property
    def _rules(self) -> SelectionRules:
        from codebatch.snapshotting.roots import store_below
        from codebatch.snapshotting.selection import SelectionRules

        return SelectionRules(self._about.rules, self._directories, store_below(self._base, self._store_root))

    @cached_property
    def _ignored(self) -> dict[bytes, GitIgnore]:
        """What is ignored in each directory that was listed, and is there."""
        from codebatch.snapshotting.walk import GitIgnore

        found: dict[bytes, GitIgnore] = {}
        for directory, mode, _ in self._cache.listings:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # What was in it is told by its rows.
                found[directory] = self._opened.enter_context(GitIgnore(self._top(directory, mode), self._base))
        return found

    @cached_property
    def _worktrees(self) -> LinkedWorktrees:
        from codebatch.snapshotting.worktrees import LinkedWorktrees

        return LinkedWorktrees(self._base)

    def iter_changes(self) -> Iterator[bytes]:
        """The paths that differ, those that were there before first. Raises OSError, SourceUnreadable or _TooMuch."""
        rows: dict[bytes, Row] | None = None
        touched: dict[bytes, FileStat] = {}
        told: set[bytes] = set()
        for path in self._cache.iter_changed(self._base, self._touched):
            rows = rows or self._cache.all_rows()
            if self._differs(path, rows[path]):
                told.add(path)
                yield path
            else:
                touched[path] = rows[path].stat
        is_listed_alike = True
        heeded: list[bytes] = []
        for path, found in self._cache.rule_files:
            # What was heeded is what the row holds where both were looked at alike.
            is_alike = touched.get(path) == found or stat_at(self._directories, path) == found
            if os.path.basename(path) != IGNORE_FILE:
                is_listed_alike = is_listed_alike and is_alike
            elif not is_alike:
                if path not in told:
                    yield path
            elif found.mode:
                heeded.append(os.path.dirname(path))
        yield from self._added(heeded)
        if not is_listed_alike:  # Only a new list would tell.
            raise _TooMuch

    def changes_from(self, then: Snapshot, later: Snapshot, differing: Sequence[bytes], *, is_cut: bool) -> list[bytes]:
        """The first paths that are not as in `then`, where `differing` are those that are not as in `later`.

        Raises OSError or StoreCorrupt, or _TooMuch where that is not known.
        """
        changes = [path for path in differing if not self._is_as(path, then.entry(path))]
        if changes or is_cut:
            return changes
        before, after = then.entries_unlike(later)
        apart = (path for path in sorted({*before, *after} - {*differing}) if before.get(path) != after.get(path))
        return list(islice(apart, CHANGES_MAX))

    def _is_as(self, path: bytes, entry: Entry | None) -> bool:
        """Whether a path is as in a snapshot. Raises _TooMuch for a rule file that has no entry to tell."""
        now = stat_at(self._directories, path)
        if entry is None:
            if os.path.basename(path) == IGNORE_FILE:
                raise _TooMuch
            return not (stat.S_ISREG(now.mode) or stat.S_ISLNK(now.mode))
        if entry.kind == "submodule":
            return stat.S_ISDIR(now.mode)
        if stat.S_IFMT(now.mode) != (stat.S_IFREG if entry.kind == "file" else stat.S_IFLNK) or now.size != entry.size:
            return False
        if entry.kind == "file" and bool(now.mode & stat.S_IXUSR) != entry.executable:
            return False
        return hashlib.sha256(self._content(path, now)).hexdigest() == entry.object

    def _differs(self, path: bytes, row: Row) -> bool:
        """Whether a path whose stat is another one is another thing now."""
        now = stat_at(self._directories, path)
        if row.flags & FLAG_SUBMODULE or row.key == NO_KEY:
            return stat.S_IFMT(now.mode) != stat.S_IFMT(row.stat.mode)
        is_alike = (
            stat.S_IFMT(now.mode) == stat.S_IFMT(row.stat.mode)
            and bool(now.mode & stat.S_IXUSR) == bool(row.stat.mode & stat.S_IXUSR)
            and now.size == row.stat.size
        )
        return not is_alike or hashlib.sha256(self._content(path, now)).digest() != row.key

    def _content(self, path: bytes, now: FileStat) -> bytes:
        self._bytes_left -= now.size
        self._files_left -= 1
        if min(self._bytes_left, self._files_left) < 0:
            raise _TooMuch
        directory, _, name = path.rpartition(b"/")
        parent = self._directories.enter(directory)
        if stat.S_ISLNK(now.mode):
            return os.readlink(name, dir_fd=parent)
        from codebatch.snapshotting.selection import READ_FLAGS

        with open(os.open(name, READ_FLAGS, dir_fd=parent), "rb") as file:
            return file.read(now.size + 1)

    def _added(self, heeded: Sequence[bytes]) -> Iterator[bytes]:
        """What is new in directories that changed when the tree had been looked at, or later.

        `heeded` are the directories whose .codebatchignore has a say.
        """
        known = set(self._cache.directories)
        without_files = {directory for directory, _, _ in self._cache.listings} - known
        known |= without_files
        changed = {path for path in self._touched | without_files if self._is_listed(path) and self._has_changed(path)}
        if not changed:
            return
        from codebatch.snapshotting.walk import is_git, list_directory

        for directory in heeded:
            self._rules.add_ignore_file(directory)
        names = {path for path in self._cache.iter_paths() if parent_of(path) in changed}
        left = sorted(changed, reverse=True)
        while left:
            directory = left.pop()
            self._directories_left -= 1
            if self._directories_left < 0:
                raise _TooMuch
            listing = innermost(self._ignored, directory)
            if listing is None:
                continue
            ignored = self._ignored[listing]
            for name, kind in list_directory(self._directories, directory) or ():
                path = directory + b"/" + name if directory else name
                if path in names or path in known or is_git(name):
                    continue
                self._names_left -= 1
                if self._names_left < 0:
                    raise _TooMuch
                if ignored.rule_for(os.path.join(self._base, path), is_directory=kind == "directory") is not None:
                    continue
                if kind == "file" and self._rules.leaves_out(path) is None:
                    yield path
                elif (
                    kind == "directory"
                    and self._rules.leaves_out_below(path, is_directory=True) is None
                    and not self._worktrees.has(path)
                ):
                    left.append(path)

    def _has_changed(self, directory: bytes) -> bool:
        changed_ns = directory_changed_ns(os.path.join(self._base, directory) if directory else self._base)
        return changed_ns is not None and changed_ns >= self._cache.stamp_ns  # Of one that is gone all has been told.

    def _is_listed(self, directory: bytes) -> bool:
        """Whether a directory was listed, and is not only where a named file lies."""
        return any(not top or directory == top or directory.startswith(top + b"/") for top in self._listed)

    def _top(self, directory: bytes, mode: str) -> bytes:
        """Where .gitignore files begin to be heeded for a listing."""
        from codebatch.snapshotting.walk import work_tree_around

        listed = os.path.join(self._base, directory) if directory else self._base
        return (work_tree_around(listed) if mode == MODE_GIT else None) or listed
