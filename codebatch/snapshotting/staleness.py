"""Fast detection of changes of a tree since a snapshot, with the stat cache and lstat(2), without git.

Every path of the cache is compared with its lstat result. Every directory that was modified since the snapshot is
searched for new files. If a file was touched but has the same bytes, it has not changed. Paths that the rules exclude
are ignored. If the comparison reaches a limit, the result is unknown.

These changes are not detected:

- new files in a directory from which no file was selected before
- changes that are only in git's index
- changes of a .gitignore file that ignores itself, or that is above the tree
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

import msgspec

from codebatch.errors import SourceUnreadable, StoreCorrupt, UnknownId
from codebatch.model.entry import Entry, SnapshotId, display_path
from codebatch.model.nearest_directories import innermost_directory, parent_directory
from codebatch.snapshotting.changes import Changes
from codebatch.snapshotting.directories import DirectoryDescriptors
from codebatch.snapshotting.roots import store_below
from codebatch.snapshotting.selection import READ_FLAGS, SelectionRules, SourceRules
from codebatch.snapshotting.stat_cache import (
    FLAG_SUBMODULE,
    IGNORE_FILE,
    MODE_GIT,
    NO_KEY,
    FileStat,
    StatCache,
    StatRow,
    directory_changed_ns,
    read_stat_cache,
    stat_at,
)
from codebatch.snapshotting.walk import GitIgnore, is_git_directory, list_directory, work_tree_around
from codebatch.snapshotting.worktrees import LinkedWorktrees
from codebatch.store import layout
from codebatch.store.snapshots.snapshots import Snapshot, load_snapshot
from codebatch.system.files.files import StoreFiles

CHECKED_PATHS_MAX = 20_000
"""Maximum number of paths in the cache. A tree with more paths is not compared."""
CHECKED_DIRECTORIES_MAX = 1_000
LISTED_NAMES_MAX = 20_000
"""Maximum number of modified directories whose entries are listed.

Also the maximum number of new names in them that are compared with the rules.
"""
REREAD_BYTES_MAX = 4 << 20
REREAD_FILES_MAX = 256
CHANGES_FOUND_MAX = 10
"""Maximum number of changes to report. The search stops when it has found this number."""


class _LimitExceededError(Exception):
    """A limit was reached before the result was known."""


class _SourceKey(msgspec.Struct, frozen=True, array_like=True):
    """The source and the rules of a stat cache. Their encoding is the key of the cache."""

    base: bytes
    sources: tuple[bytes, tuple[bytes, ...], tuple[bytes, ...]]
    include: tuple[bytes, ...]
    exclude: tuple[bytes, ...]

    @property
    def patterns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The patterns of `include` and of `exclude`, as text."""
        return tuple(map(os.fsdecode, self.include)), tuple(map(os.fsdecode, self.exclude))

    @property
    def rules(self) -> SourceRules:
        """The rules that selected the files."""
        include, exclude = self.patterns
        return SourceRules(include=include, exclude=exclude)


def changes_since(
    files: StoreFiles, store_root: Path, stat_cache: str, snapshot_id: SnapshotId, ignored_paths: Collection[bytes] = ()
) -> Changes | None:
    """Return the differences between the snapshot and the present tree.

    Changes of `ignored_paths` (absolute) are omitted. Return None if there is no stat cache, or if the tree does not
    exist or cannot be read.
    """
    read = _read_cache_and_key(files, store_root, stat_cache)
    if read is None:
        return None
    cache, about = read
    since = None if cache.snapshot_id == snapshot_id else SnapshotId(cache.snapshot_id)
    base = os.path.realpath(about.base)
    changed: list[bytes] = []
    is_cut = sum(cache.counts) > CHECKED_PATHS_MAX
    try:
        with _TreeCheck(cache, about, store_root) as check:
            try:
                changes = (path for path in check.iter_changes() if os.path.join(base, path) not in ignored_paths)
                for path in () if is_cut else islice(changes, CHANGES_FOUND_MAX):
                    changed.append(path)  # noqa: PERF402  # keep the changes found before a limit was reached
            except _LimitExceededError:
                is_cut = True
            is_cut = is_cut or len(changed) == CHANGES_FOUND_MAX
            if since is not None and changed:
                then, later = (load_snapshot(files, store_root, each) for each in (snapshot_id, since))
                changed, since = check.changes_from(then, later, changed, is_cut=is_cut), None
    except _LimitExceededError:
        changed, since, is_cut = [], None, True
    except (OSError, SourceUnreadable, StoreCorrupt, UnknownId):
        return None
    include, exclude = about.patterns
    return Changes(tuple(changed), is_cut, since, include, exclude)


def read_source_rules(files: StoreFiles, store_root: Path, stat_cache: str) -> SourceRules | None:
    """Return the rules that selected the files of a snapshot, or None if there is no stat cache."""
    read = _read_cache_and_key(files, store_root, stat_cache)
    return None if read is None else read[1].rules


def find_stat_cache(files: StoreFiles, store_root: Path, snapshot_id: SnapshotId, base: str) -> str:
    """Return the name of the latest stat cache that was written for a snapshot of the tree at `base`, or ""."""
    newest = (0, "")
    for name in files.listing(store_root / layout.CACHE):
        read = _read_cache_and_key(files, store_root, name)
        if read is not None and read[0].snapshot_id == snapshot_id and display_path(read[1].base) == base:
            newest = max(newest, (read[0].stamp_ns, name))
    return newest[1]


def _read_cache_and_key(files: StoreFiles, store_root: Path, name: str) -> tuple[StatCache, _SourceKey] | None:
    """Return a stat cache and its decoded key, or None if the cache does not exist or is damaged."""
    cache = read_stat_cache(files, store_root / layout.CACHE / name) if layout.STAT_CACHE_PATTERN.match(name) else None
    try:
        return None if cache is None else (cache, msgspec.msgpack.decode(cache.source, type=_SourceKey))
    except msgspec.DecodeError:
        return None


class _TreeCheck:
    """One comparison of a source tree with a stat cache. A context manager."""

    def __init__(self, cache: StatCache, about: _SourceKey, store_root: Path) -> None:
        """Open the tree. Raises OSError if it does not exist."""
        self._cache = cache
        self._source_key = about
        self._store_root = store_root
        _, self._listed, _ = about.sources
        self._base = about.base
        self._opened = contextlib.ExitStack()
        self._directories = self._opened.enter_context(DirectoryDescriptors(about.base))
        self._touched: set[bytes] = set()
        self._bytes_left = REREAD_BYTES_MAX
        self._files_left = REREAD_FILES_MAX
        self._directories_left = CHECKED_DIRECTORIES_MAX
        self._names_left = LISTED_NAMES_MAX

    def __enter__(self) -> _TreeCheck:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @cached_property
    def _selection_rules(self) -> SelectionRules:
        return SelectionRules(self._source_key.rules, self._directories, store_below(self._base, self._store_root))

    @cached_property
    def _gitignores(self) -> dict[bytes, GitIgnore]:
        """The ignore rules of each listed directory that exists."""
        ignores: dict[bytes, GitIgnore] = {}
        for directory, mode, _ in self._cache.listings:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # Its rows report the removal.
                ignores[directory] = self._opened.enter_context(
                    GitIgnore(self._gitignore_top(directory, mode), self._base)
                )
        return ignores

    @cached_property
    def _worktrees(self) -> LinkedWorktrees:
        return LinkedWorktrees(self._base)

    def iter_changes(self) -> Iterator[bytes]:
        """Yield the paths whose state differs. Paths that the snapshot has come first, then new paths.

        Raises OSError, SourceUnreadable or _LimitExceededError.
        """
        rows: dict[bytes, StatRow] | None = None
        touched: dict[bytes, FileStat] = {}
        reported: set[bytes] = set()
        for path in self._cache.iter_changed(self._base, self._touched):
            rows = rows or self._cache.all_rows()
            if self._has_changed_file(path, rows[path]):
                reported.add(path)
                yield path
            else:
                touched[path] = rows[path].stat
        is_listed_alike = True
        applied: list[bytes] = []
        for path, status in self._cache.rule_files:
            # If the stat of the rule file equals its row, its content is still the one that was applied.
            is_alike = touched.get(path) == status or stat_at(self._directories, path) == status
            if os.path.basename(path) != IGNORE_FILE:
                is_listed_alike = is_listed_alike and is_alike
            elif not is_alike:
                if path not in reported:
                    yield path
            elif status.mode:
                applied.append(os.path.dirname(path))
        yield from self._iter_added(applied)
        if not is_listed_alike:  # Only a new list of the tree would show which files changed.
            raise _LimitExceededError

    def changes_from(self, then: Snapshot, later: Snapshot, differing: Sequence[bytes], *, is_cut: bool) -> list[bytes]:
        """Return the first paths in which the present tree differs from the snapshot `then`.

        `differing` are the paths in which the tree differs from the newer snapshot `later`. Raises OSError or
        StoreCorrupt, or _LimitExceededError if the result is unknown.
        """
        changes = [path for path in differing if not self._equals_entry(path, then.entry(path))]
        if changes or is_cut:
            return changes
        before, after = then.differing_entries(later)
        differing_paths = (
            path for path in sorted({*before, *after} - {*differing}) if before.get(path) != after.get(path)
        )
        return list(islice(differing_paths, CHANGES_FOUND_MAX))

    def _equals_entry(self, path: bytes, entry: Entry | None) -> bool:
        """Return whether a path equals its entry in a snapshot.

        If `entry` is None, the path must not be a file or link.

        Raises _LimitExceededError for a .codebatchignore without an entry.
        """
        now = stat_at(self._directories, path)
        if entry is None:
            if os.path.basename(path) == IGNORE_FILE:
                raise _LimitExceededError
            return not (stat.S_ISREG(now.mode) or stat.S_ISLNK(now.mode))
        if entry.kind == "submodule":
            return stat.S_ISDIR(now.mode)
        if stat.S_IFMT(now.mode) != (stat.S_IFREG if entry.kind == "file" else stat.S_IFLNK) or now.size != entry.size:
            return False
        if entry.kind == "file" and bool(now.mode & stat.S_IXUSR) != entry.executable:
            return False
        return hashlib.sha256(self._read_content(path, now)).hexdigest() == entry.object

    def _has_changed_file(self, path: bytes, row: StatRow) -> bool:
        """Return whether content, kind or executable bit of a path differ from its row in the stat cache.

        Call this only if the stat of the path differs from the row.
        """
        now = stat_at(self._directories, path)
        if row.flags & FLAG_SUBMODULE or row.key == NO_KEY:
            return stat.S_IFMT(now.mode) != stat.S_IFMT(row.stat.mode)
        is_alike = (
            stat.S_IFMT(now.mode) == stat.S_IFMT(row.stat.mode)
            and bool(now.mode & stat.S_IXUSR) == bool(row.stat.mode & stat.S_IXUSR)
            and now.size == row.stat.size
        )
        return not is_alike or hashlib.sha256(self._read_content(path, now)).digest() != row.key

    def _read_content(self, path: bytes, now: FileStat) -> bytes:
        self._bytes_left -= now.size
        self._files_left -= 1
        if min(self._bytes_left, self._files_left) < 0:
            raise _LimitExceededError
        directory, _, name = path.rpartition(b"/")
        parent = self._directories.open_directory(directory)
        if stat.S_ISLNK(now.mode):
            return os.readlink(name, dir_fd=parent)

        with open(os.open(name, READ_FLAGS, dir_fd=parent), "rb") as file:
            return file.read(now.size + 1)

    def _iter_added(self, applied: Sequence[bytes]) -> Iterator[bytes]:
        """Yield new paths in directories that were modified at or after the stamp of the cache.

        `applied` are the directories whose .codebatchignore was in effect when the snapshot was taken.
        """
        known = set(self._cache.directories)
        without_files = {directory for directory, _, _ in self._cache.listings} - known
        known |= without_files
        changed = {path for path in self._touched | without_files if self._is_listed(path) and self._has_changed(path)}
        if not changed:
            return

        for directory in applied:
            self._selection_rules.add_ignore_file(directory)
        names = {path for path in self._cache.iter_paths() if parent_directory(path) in changed}
        pending = sorted(changed, reverse=True)
        while pending:
            directory = pending.pop()
            self._directories_left -= 1
            if self._directories_left < 0:
                raise _LimitExceededError
            listing = innermost_directory(self._gitignores, directory)
            if listing is None:
                continue
            ignored = self._gitignores[listing]
            for name, kind in list_directory(self._directories, directory) or ():
                path = directory + b"/" + name if directory else name
                if path in names or path in known or is_git_directory(name):
                    continue
                self._names_left -= 1
                if self._names_left < 0:
                    raise _LimitExceededError
                if ignored.rule_for(os.path.join(self._base, path), is_directory=kind == "directory") is not None:
                    continue
                if kind == "file" and self._selection_rules.exclusion_reason(path) is None:
                    yield path
                elif (
                    kind == "directory"
                    and self._selection_rules.exclusion_reason_with_parents(path, is_directory=True) is None
                    and not self._worktrees.has(path)
                ):
                    pending.append(path)

    def _has_changed(self, directory: bytes) -> bool:
        changed_ns = directory_changed_ns(os.path.join(self._base, directory) if directory else self._base)
        # If the directory was removed, the rows of its files report this.
        return changed_ns is not None and changed_ns >= self._cache.stamp_ns

    def _is_listed(self, directory: bytes) -> bool:
        """Return whether a directory was listed. False if the user named a file in it instead."""
        return any(not top or directory == top or directory.startswith(top + b"/") for top in self._listed)

    def _gitignore_top(self, directory: bytes, mode: str) -> bytes:
        """Return the top directory whose .gitignore files apply to a listing."""
        listed = os.path.join(self._base, directory) if directory else self._base
        return (work_tree_around(listed) if mode == MODE_GIT else None) or listed
