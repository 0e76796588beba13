"""Listing of a source tree: its paths, from git or from a directory walk, and the lstat(2) result of each.

A listed path is only a candidate, because git also lists deleted files. The type of the path is taken from lstat. git
lists a submodule or a nested repository as one name, so this directory gets a listing of its own. A listing has a mode:
`git`, `walk_tree` (directory walk), or `named` for a file that the user named. Ignore files do not exclude a named
file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from typing import Protocol

import msgspec

from codebatch.errors import SourceUnreadable
from codebatch.git.repository import (
    FileListProcess,
    GitBlockedError,
    GitError,
    GitTimedOut,
    find_git,
    submodule_paths,
    tracked_paths,
)
from codebatch.model.entry import PATH_BYTES_MAX, display_path
from codebatch.model.gitignore import PatternList
from codebatch.model.nearest_directories import parent_directory
from codebatch.snapshotting.directories import DirectoryDescriptors
from codebatch.snapshotting.roots import SourceRoots
from codebatch.snapshotting.selection import SelectionRules
from codebatch.snapshotting.stat_cache import IGNORE_FILE, MODE_GIT, MODE_WALK, FileStat, is_special, stat_at
from codebatch.snapshotting.walk import (
    GITIGNORE_NAME,
    GitIgnore,
    WalkResult,
    ignore_files_above,
    ignored_by,
    iter_walk,
    path_too_long_error,
    special_files,
    unreadable_error,
    walk_tree,
    work_tree_around,
)
from codebatch.snapshotting.worktrees import LinkedWorktrees
from codebatch.store import layout
from codebatch.system.files.regular_files import read_regular

# Timeout for a complete list from git. If it passes, git gets more time, in proportion to the number of tracked files.
_GIT_SECONDS = 3.0
_GIT_SECONDS_MIN = 0.1
# Timeout for queries of git's index. Nothing can replace the index, so a timeout is an error.
_INDEX_SECONDS = 10.0
_GIT_FILES_PER_SECOND = 10_000

CACHE_TAG_NAME = b"CACHEDIR.TAG"
_STORE_FILE_BYTES_MAX = 4096


class DirectoryListing(msgspec.Struct, frozen=True):
    """The list of one directory: its paths (relative to the base), nested repositories, and special files.

    `why_walk` is the reason for a directory walk. It is empty if git listed all files.
    """

    mode: str
    why_walk: str
    digest: bytes
    paths: list[bytes]
    repositories: list[bytes]
    special: list[bytes]


class ListedTree(msgspec.Struct):
    """The current state of the tree. `stats` has the lstat result of each selected path, even of an absent one."""

    stats: dict[bytes, FileStat] = msgspec.field(default_factory=dict)
    submodules: set[bytes] = msgspec.field(default_factory=set)
    special: set[bytes] = msgspec.field(default_factory=set)
    worktrees: set[bytes] = msgspec.field(default_factory=set)  # Excluded: linked work trees of the same repository.
    listings: list[tuple[bytes, str, bytes]] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)


class _IndexQuery(Protocol):
    def __call__(self, git: str, directory: bytes, seconds: float, *, is_top: bool) -> set[bytes]: ...


class TreeLister:
    """The lister of the trees of one snapshot. On exit of the context, no git process that it started is alive.

    It has many methods, because git, the directory walk and the rules all contribute to one list.
    """

    def __init__(
        self,
        sources: SourceRoots,
        directories: DirectoryDescriptors,
        rules: SelectionRules,
        *,
        uses_git: bool = True,
        ignored_above: tuple[PatternList, ...] = (),
    ) -> None:
        """If `uses_git` is false, all directories are walked. `ignored_above` are more ignore files for walks."""
        self._ignored_above = ignored_above
        self._sources = sources
        self._directories = directories
        self._rules = rules
        self._git = find_git() if uses_git else None
        self._running_git: dict[bytes, FileListProcess] = {}
        self._raw_git_lists: dict[bytes, bytes] = {}
        self._failed: dict[bytes, str] = {}
        self._walk_reasons: dict[bytes, str] = {}
        self._timeout_s = _GIT_SECONDS
        self._listings: dict[bytes, DirectoryListing] = {}
        self._worktrees = LinkedWorktrees(sources.base)

    def __enter__(self) -> TreeLister:
        return self

    def __exit__(self, *_: object) -> None:
        for running in self._running_git.values():
            running.close()
        self._running_git = {}

    def start_git(self, directory: bytes) -> None:
        """Start git for a directory in the background."""
        if self._git is not None and directory not in self._running_git and directory not in self._raw_git_lists:
            with contextlib.suppress(GitError):
                self._running_git[directory] = FileListProcess(
                    self._git, self._absolute_path(directory), is_top=self._is_top(directory)
                )

    def digest(self, directory: bytes, mode: str) -> bytes | None:
        """Return the SHA-256 of a directory's list. None if the directory would now be listed in another mode."""
        if mode == MODE_GIT and directory not in self._listings:
            try:
                if self._git is None or self._is_ignored_by_parent(directory):
                    return None
                return hashlib.sha256(self._git_raw(directory)).digest()
            except GitError:
                return None
        answer = self._directory_listing(directory)
        return answer.digest if answer.mode == mode else None

    def lists_a_cache_tag(self, directory: bytes, mode: str) -> bool:
        """Return whether a list may contain the CACHEDIR.TAG of a store. Call `digest` for this list before."""
        if mode == MODE_GIT and directory not in self._listings:
            return CACHE_TAG_NAME in self._git_raw(directory)
        return any(path.endswith(CACHE_TAG_NAME) for path in self._directory_listing(directory).paths)

    def lists_a_file(self) -> bool:
        """Return whether `list_all` would find any regular file. Stops at the first one. Raises SourceUnreadable."""
        self._rules.add_ignore_file(b"")
        for directory in self._sources.directories:
            walked = WalkResult([], [], [])
            for _ in iter_walk(self._directories, directory, self._rules, walked):
                tree = ListedTree()
                for path in walked.paths:
                    if self._rules.exclusion_reason(path) is None:
                        self._add_path(tree, path)
                if any(stat.S_ISREG(status.mode) for status in tree.stats.values()):
                    return True
                walked.paths.clear()
        # git can list files that a walk does not find: tracked ignored files and nested repositories.
        return any(stat.S_ISREG(found.mode) for found in self.list_all().stats.values())

    def list_all(self) -> ListedTree:
        """List all source roots. Raises SourceUnreadable."""
        tree = ListedTree(worktrees=self._worktrees.excluded)
        self._rules.add_ignore_file(b"")
        for path in self._sources.files:
            self._add_path(tree, path)
        pending = list(self._sources.directories)
        done = set()
        while pending:
            directory = pending.pop()
            if directory in done:
                continue
            done.add(directory)
            answer = self._directory_listing(directory)
            tree.listings.append((directory, answer.mode, answer.digest))
            tree.notes.extend(_listing_notes(directory, answer))
            self._learn_rules(answer.paths)
            directories = self._add_listed(tree, answer)
            self._note_gitignores(tree, answer)
            nested = [
                path
                for path in answer.repositories
                if self._rules.exclusion_reason_with_parents(path, is_directory=True) is None
            ]
            pending.extend(nested)
            if directories:
                pending.extend(self._nested_listings(tree, directory, directories))
        tree.listings.sort()
        tree.notes = list(dict.fromkeys((*tree.notes, *self._worktrees.exclusion_notes)))
        return tree

    def _add_listed(self, tree: ListedTree, answer: DirectoryListing) -> list[bytes]:
        """Add the lstat result of each listed path that the rules select. Return those paths that are directories."""
        takes = self._rules.is_selected
        for path in answer.special:
            if takes(path):
                self._add_path(tree, path)
        return [
            path
            for path in sort_by_directory(answer.paths)
            if path not in tree.stats and takes(path) and self._add_path(tree, path)
        ]

    def _note_gitignores(self, tree: ListedTree, answer: DirectoryListing) -> None:
        """Record the state of .gitignore files that the rules do not select, because these have no row."""
        for path in answer.paths:
            if path.endswith(GITIGNORE_NAME) and path not in tree.stats and os.path.basename(path) == GITIGNORE_NAME:
                with contextlib.suppress(OSError):
                    self._rules.rule_files[path] = stat_at(self._directories, path)

    def _add_path(self, tree: ListedTree, path: bytes) -> bool:
        """Add the lstat result of one path to the tree. Return whether it is a directory."""
        if len(path) > PATH_BYTES_MAX:
            raise path_too_long_error(path)
        try:
            status = stat_at(self._directories, path)
        except OSError as error:
            raise unreadable_error(path, error.strerror) from error
        tree.stats[path] = status
        if is_special(status.mode):
            tree.special.add(path)
        return stat.S_ISDIR(status.mode)

    def _nested_listings(self, tree: ListedTree, listing: bytes, directories: list[bytes]) -> list[bytes]:
        """Return the directories in `directories` that need a listing of their own.

        A checked-out submodule contains `.git`, so it needs one. A submodule that is not checked out is an entry of the
        snapshot, unless it contains files. Any other directory has replaced a file of the index, and git has already
        listed its content.
        """
        nested = [path for path in directories if self._is_top(path)]
        unlisted = [path for path in directories if path not in nested]
        if unlisted and self._git is not None:
            prefix = listing + b"/" if listing else b""
            links = {prefix + path for path in self._submodules_in(listing)}
            for path in unlisted:
                if path in links:
                    nested.append(path)
                    tree.submodules.add(path)
        for path in nested:
            if path not in tree.submodules:
                del tree.stats[path]
        return nested

    def _submodules_in(self, listing: bytes) -> set[bytes]:
        try:
            return self._index_names(submodule_paths, listing)
        except GitError:
            return set()

    def _index_names(self, query: _IndexQuery, listing: bytes) -> set[bytes]:
        """Return the names that `query` reads from git's index. Raises GitError or SourceUnreadable."""
        assert self._git is not None
        try:
            return query(self._git, self._absolute_path(listing), _INDEX_SECONDS, is_top=self._is_top(listing))
        except GitBlockedError:
            raise  # git waits for a FIFO and will never answer, so the caller walks the tree.
        except GitTimedOut as error:
            raise SourceUnreadable(
                f"git did not report which files it tracks in {display_path(listing) or 'the project'}",
                hint=(
                    "check whether the git configuration includes a FIFO or device; "
                    "in a project without a .git directory, codebatch lists files without git"
                ),
            ) from error

    def _directory_listing(self, directory: bytes) -> DirectoryListing:
        if directory not in self._listings:
            self._listings[directory] = self._list_with_git(directory)
        return self._listings[directory]

    def _list_with_git(self, directory: bytes) -> DirectoryListing:
        """Return the list of a directory from git, or from a walk if git cannot list it."""
        if self._git is None:
            return self._list_by_walking(directory, "git is not installed")
        if not self._is_top(directory) and directory not in self._sources.directories:
            return self._list_by_walking(directory, "the submodule is not checked out")
        try:
            if self._is_ignored_by_parent(directory):
                return self._list_by_walking(directory, "it is ignored by the enclosing repository")
            raw = self._git_raw(directory)
        except GitError as error:
            return self._list_by_walking(directory, str(error))
        prefix = directory + b"/" if directory else b""
        names = sorted(raw.split(b"\0"))
        repositories = [prefix + name[:-1] for name in names if name.endswith(b"/")]
        paths = [prefix + name for name in names if name and not name.endswith(b"/")]
        special = self._unignored_special_files(directory, paths)
        why = self._walk_reasons.get(directory, "")
        return DirectoryListing(MODE_GIT, why, hashlib.sha256(raw).digest(), paths, repositories, special)

    def _unignored_special_files(self, listing: bytes, paths: list[bytes]) -> list[bytes]:
        """Return the special files in the listed directories that are not ignored. git never lists special files."""
        directories = {parent_directory(path) for path in paths} | {listing}
        special = [path for directory in sorted(directories) for path in special_files(self._directories, directory)]
        top = work_tree_around(self._absolute_path(listing)) if special else None
        if top is None:
            return special
        with GitIgnore(top, self._sources.base) as ignore:
            return [path for path in special if ignore.rule_for(self._absolute_path(path), is_directory=False) is None]

    def _git_raw(self, directory: bytes) -> bytes:
        """Return git's list of a directory, unparsed and cached. Raises GitError or SourceUnreadable."""
        if directory in self._failed:
            raise GitError(self._failed[directory])
        if directory not in self._raw_git_lists:
            try:
                self._raw_git_lists[directory] = self._worktrees.exclude_from_listing(
                    directory, self._read_git_list(directory)
                )
            except GitError as error:
                # Only the text is kept: the traceback of the exception would form a reference cycle.
                self._failed[directory] = str(error)
                raise
        return self._raw_git_lists[directory]

    def _read_git_list(self, directory: bytes) -> bytes:
        self.start_git(directory)
        if directory not in self._running_git:
            raise GitError("git cannot be started")
        running = self._running_git.pop(directory)
        try:
            listing = running.wait(self._timeout_s)
        except GitTimedOut:
            # After a timeout in one repository, a timeout in the next one is likely.
            self._timeout_s = max(self._timeout_s / 2, _GIT_SECONDS_MIN)
            names = self._index_names(tracked_paths, directory)
            try:
                listing = running.wait(len(names) / _GIT_FILES_PER_SECOND)
            except GitTimedOut as silent:
                return self._list_without_git(directory, names, silent)
        finally:
            running.close()
        for name, reason in listing.unreadable:
            path = self._below_base(directory, name)
            if self._rules.exclusion_reason_with_parents(path, is_directory=True) is None:
                raise unreadable_error(path, reason)
        return listing.raw

    def _list_without_git(self, directory: bytes, names: set[bytes], silent: GitTimedOut) -> bytes:
        """Return a list in git's format, made from the names in git's index and a directory walk."""
        stars = "" if isinstance(silent, GitBlockedError) else "; does a .gitignore have patterns with many stars?"
        self._walk_reasons[directory] = f"{silent}{stars}"
        above = ignore_files_above(self._sources.base, directory)
        walked = walk_tree(self._directories, directory, self._rules, above)
        cut = len(directory) + 1 if directory else 0
        names.update(path[cut:] for path in walked.paths)
        names.update(path[cut:] + b"/" for path in walked.repositories)
        return b"".join(name + b"\0" for name in sorted(names))

    def _list_by_walking(self, directory: bytes, why: str) -> DirectoryListing:
        walked = walk_tree(self._directories, directory, self._rules, self._ignored_above)
        paths = sorted(walked.paths)
        listing_digest = hashlib.sha256(b"\0".join(paths + sorted(walked.special))).digest()
        nested = [path for path in sorted(walked.repositories) if not self._worktrees.has(path)]
        return DirectoryListing(MODE_WALK, why, listing_digest, paths, nested, sorted(walked.special))

    def _learn_rules(self, paths: Iterable[bytes]) -> None:
        """Add the rules of the .codebatchignore files among `paths`, and exclude the stores among them."""
        for path in paths:
            if path.endswith(IGNORE_FILE) and os.path.basename(path) == IGNORE_FILE:
                self._rules.add_ignore_file(os.path.dirname(path))
            elif path.endswith(CACHE_TAG_NAME) and os.path.basename(path) == CACHE_TAG_NAME:
                directory = os.path.dirname(path)
                if directory and is_store(self._directories, directory):
                    self._rules.add_store(directory)

    def _is_ignored_by_parent(self, directory: bytes) -> bool:
        """Return whether an enclosing repository ignores a named directory. git would list hardly any file in it."""
        if self._is_top(directory):
            return False
        return ignored_by(self._absolute_path(directory), self._sources.base, is_directory=True) is not None

    def _is_top(self, directory: bytes) -> bool:
        """Return whether a directory has its own `.git`: a repository, a submodule or a work tree."""
        try:
            os.stat(b".git", dir_fd=self._directories.open_directory(directory), follow_symlinks=False)
        except OSError:
            return False
        return True

    def _absolute_path(self, directory: bytes) -> bytes:
        return os.path.join(self._sources.base, directory) if directory else self._sources.base

    def _below_base(self, directory: bytes, name: bytes) -> bytes:
        return os.path.normpath(os.path.join(directory, name)) if name not in (b"", b".") else directory


def is_store(directories: DirectoryDescriptors, directory: bytes) -> bool:
    """Return whether a directory is a store: whether its store.json and CACHEDIR.TAG contain `codebatch`."""
    try:
        parent = directories.open_directory(directory)
        documents = [
            read_regular(name, bytes_max=_STORE_FILE_BYTES_MAX, dir_fd=parent, is_link_followed=False)
            for name in (layout.STORE_FILE.encode(), CACHE_TAG_NAME)
        ]
    except OSError:
        return False
    return any(b"codebatch" in content for content in documents)


def sort_by_directory(paths: Iterable[bytes]) -> list[bytes]:
    """Sort paths so that all paths of a directory are adjacent, and each directory is entered only once."""
    return sorted(paths, key=lambda path: (path[: path.rfind(b"/") + 1], path))


def _listing_notes(directory: bytes, answer: DirectoryListing) -> Iterator[str]:
    """Yield a note with the reason if the files of a directory were not listed by git."""
    if answer.why_walk:
        where = display_path(directory) or "the project"
        how = "a directory walk" if answer.mode == MODE_WALK else "git's index and a directory walk"
        yield f"files of {where} are listed by {how}: {answer.why_walk}"
