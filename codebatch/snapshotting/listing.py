"""Listing of a source tree: its paths, from git or from a directory walk, and the lstat(2) result of each.

A listed path is only a candidate, because git also lists deleted files. The type of the path is taken from lstat. git
lists a submodule or a nested repository as one name, so this directory gets a listing of its own. A listing has a mode:
`git`, `walk` (directory walk), or `named` for a file that the user named. Ignore files do not exclude a named file.
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
from codebatch.git.repository import GitBlockedError, GitError, GitList, GitSilent, find_git, gitlinks, tracked
from codebatch.model.entry import PATH_BYTES_MAX, display_path
from codebatch.model.nearest_directories import parent_directory
from codebatch.snapshotting.directories import Directories
from codebatch.snapshotting.roots import SourceRoots
from codebatch.snapshotting.selection import SelectionRules
from codebatch.snapshotting.stat_cache import IGNORE_FILE, MODE_GIT, MODE_WALK, FileStat, is_special, stat_at
from codebatch.snapshotting.walk import (
    GITIGNORE,
    GitIgnore,
    WalkResult,
    ignore_files_above,
    ignored_by,
    iter_walk,
    path_too_long,
    special_files,
    unreadable,
    walk,
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
_GIT_FILES_A_SECOND = 10_000

_CACHE_TAG = b"CACHEDIR.TAG"
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
    listings: list[tuple[bytes, str, bytes]] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)


class _IndexQuery(Protocol):
    def __call__(self, git: str, directory: bytes, seconds: float, *, is_top: bool) -> set[bytes]: ...


class TreeLister:
    """The lister of the trees of one snapshot. On exit of the context, no git process that it started is alive.

    It has many methods, because git, the directory walk and the rules all contribute to one list.
    """

    def __init__(self, sources: SourceRoots, directories: Directories, rules: SelectionRules) -> None:
        self._sources = sources
        self._directories = directories
        self._rules = rules
        self._git = find_git()
        self._running: dict[bytes, GitList] = {}
        self._raw: dict[bytes, bytes] = {}
        self._failed: dict[bytes, str] = {}
        self._walk_reasons: dict[bytes, str] = {}
        self._timeout_s = _GIT_SECONDS
        self._answers: dict[bytes, DirectoryListing] = {}
        self._worktrees = LinkedWorktrees(sources.base)

    def __enter__(self) -> TreeLister:
        return self

    def __exit__(self, *_: object) -> None:
        for running in self._running.values():
            running.close()
        self._running = {}

    def start(self, directory: bytes) -> None:
        """Start git for a directory in the background."""
        if self._git is not None and directory not in self._running and directory not in self._raw:
            with contextlib.suppress(GitError):
                self._running[directory] = GitList(self._git, self._absolute(directory), is_top=self._is_top(directory))

    def digest(self, directory: bytes, mode: str) -> bytes | None:
        """Return the SHA-256 of a directory's list. None if the directory would now be listed in another mode."""
        if mode == MODE_GIT and directory not in self._answers:
            try:
                if self._git is None or self._is_ignored_by_parent(directory):
                    return None
                return hashlib.sha256(self._git_raw(directory)).digest()
            except GitError:
                return None
        answer = self._answer(directory)
        return answer.digest if answer.mode == mode else None

    def lists_a_cache_tag(self, directory: bytes, mode: str) -> bool:
        """Return whether a list may contain the CACHEDIR.TAG of a store. Call `digest` for this list before."""
        if mode == MODE_GIT and directory not in self._answers:
            return _CACHE_TAG in self._git_raw(directory)
        return any(path.endswith(_CACHE_TAG) for path in self._answer(directory).paths)

    def lists_a_file(self) -> bool:
        """Return whether `list_all` would find any regular file. Stops at the first one. Raises SourceUnreadable."""
        self._rules.add_ignore_file(b"")
        for directory in self._sources.directories:
            walked = WalkResult([], [], [])
            for _ in iter_walk(self._directories, directory, self._rules, walked):
                tree = ListedTree()
                for path in walked.paths:
                    if self._rules.leaves_out(path) is None:
                        self._add(tree, path)
                if any(stat.S_ISREG(status.mode) for status in tree.stats.values()):
                    return True
                walked.paths.clear()
        # git can list files that a walk does not find: tracked ignored files and nested repositories.
        return any(stat.S_ISREG(found.mode) for found in self.list_all().stats.values())

    def list_all(self) -> ListedTree:
        """List all source roots. Raises SourceUnreadable."""
        tree = ListedTree()
        self._rules.add_ignore_file(b"")
        for path in self._sources.files:
            self._add(tree, path)
        pending = list(self._sources.directories)
        done = set()
        while pending:
            directory = pending.pop()
            if directory in done:
                continue
            done.add(directory)
            answer = self._answer(directory)
            tree.listings.append((directory, answer.mode, answer.digest))
            tree.notes.extend(_notes(directory, answer))
            self._learn_rules(answer.paths)
            directories = self._add_listed(tree, answer)
            self._note_gitignores(tree, answer)
            nested = [
                path for path in answer.repositories if self._rules.leaves_out_below(path, is_directory=True) is None
            ]
            pending.extend(nested)
            if directories:
                pending.extend(self._nested_listings(tree, directory, directories))
        tree.listings.sort()
        tree.notes = list(dict.fromkeys((*tree.notes, *self._worktrees.notes)))
        return tree

    def _add_listed(self, tree: ListedTree, answer: DirectoryListing) -> list[bytes]:
        """Add the lstat result of each listed path that the rules select. Return those paths that are directories."""
        takes = self._rules.selects
        for path in answer.special:
            if takes(path):
                self._add(tree, path)
        return [
            path
            for path in sort_by_directory(answer.paths)
            if path not in tree.stats and takes(path) and self._add(tree, path)
        ]

    def _note_gitignores(self, tree: ListedTree, answer: DirectoryListing) -> None:
        """Record the state of .gitignore files that the rules do not select, because these have no row."""
        for path in answer.paths:
            if path.endswith(GITIGNORE) and path not in tree.stats and os.path.basename(path) == GITIGNORE:
                with contextlib.suppress(OSError):
                    self._rules.rule_files[path] = stat_at(self._directories, path)

    def _add(self, tree: ListedTree, path: bytes) -> bool:
        """Add the lstat result of one path to the tree. Return whether it is a directory."""
        if len(path) > PATH_BYTES_MAX:
            raise path_too_long(path)
        try:
            status = stat_at(self._directories, path)
        except OSError as error:
            raise unreadable(path, error.strerror) from error
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
            links = {prefix + path for path in self._gitlinks(listing)}
            for path in unlisted:
                if path in links:
                    nested.append(path)
                    tree.submodules.add(path)
        for path in nested:
            if path not in tree.submodules:
                del tree.stats[path]
        return nested

    def _gitlinks(self, listing: bytes) -> set[bytes]:
        try:
            return self._index_names(gitlinks, listing)
        except GitError:
            return set()

    def _index_names(self, query: _IndexQuery, listing: bytes) -> set[bytes]:
        """Return the names that `query` reads from git's index. Raises GitError or SourceUnreadable."""
        assert self._git is not None
        try:
            return query(self._git, self._absolute(listing), _INDEX_SECONDS, is_top=self._is_top(listing))
        except GitBlockedError:
            raise  # git waits for a FIFO and will never answer, so the caller walks the tree.
        except GitSilent as error:
            raise SourceUnreadable(
                f"git did not report which files it tracks in {display_path(listing) or 'the project'}",
                hint=(
                    "check whether the git configuration includes a FIFO or device; "
                    "in a project without a .git directory, codebatch lists files without git"
                ),
            ) from error

    def _answer(self, directory: bytes) -> DirectoryListing:
        if directory not in self._answers:
            self._answers[directory] = self._list_with_git(directory)
        return self._answers[directory]

    def _list_with_git(self, directory: bytes) -> DirectoryListing:
        """Return the list of a directory from git, or from a walk if git cannot list it."""
        if self._git is None:
            return self._walk(directory, "git is not installed")
        if not self._is_top(directory) and directory not in self._sources.directories:
            return self._walk(directory, "the submodule is not checked out")
        try:
            if self._is_ignored_by_parent(directory):
                return self._walk(directory, "it is ignored by the enclosing repository")
            raw = self._git_raw(directory)
        except GitError as error:
            return self._walk(directory, str(error))
        prefix = directory + b"/" if directory else b""
        names = sorted(raw.split(b"\0"))
        repositories = [prefix + name[:-1] for name in names if name.endswith(b"/")]
        paths = [prefix + name for name in names if name and not name.endswith(b"/")]
        special = self._special(directory, paths)
        why = self._walk_reasons.get(directory, "")
        return DirectoryListing(MODE_GIT, why, hashlib.sha256(raw).digest(), paths, repositories, special)

    def _special(self, listing: bytes, paths: list[bytes]) -> list[bytes]:
        """Return the special files in the listed directories that are not ignored. git never lists special files."""
        directories = {parent_directory(path) for path in paths} | {listing}
        special = [path for directory in sorted(directories) for path in special_files(self._directories, directory)]
        top = work_tree_around(self._absolute(listing)) if special else None
        if top is None:
            return special
        with GitIgnore(top, self._sources.base) as ignore:
            return [path for path in special if ignore.rule_for(self._absolute(path), is_directory=False) is None]

    def _git_raw(self, directory: bytes) -> bytes:
        """Return git's list of a directory, unparsed and cached. Raises GitError or SourceUnreadable."""
        if directory in self._failed:
            raise GitError(self._failed[directory])
        if directory not in self._raw:
            try:
                self._raw[directory] = self._worktrees.exclude_from_listing(directory, self._read_git_list(directory))
            except GitError as error:
                # Keep only the text: the exception would keep its traceback's frames alive in a reference cycle.
                self._failed[directory] = str(error)
                raise
        return self._raw[directory]

    def _read_git_list(self, directory: bytes) -> bytes:
        self.start(directory)
        if directory not in self._running:
            raise GitError("git cannot be started")
        running = self._running.pop(directory)
        try:
            listing = running.wait(self._timeout_s)
        except GitSilent:
            # After a timeout in one repository, a timeout in the next one is likely.
            self._timeout_s = max(self._timeout_s / 2, _GIT_SECONDS_MIN)
            names = self._index_names(tracked, directory)
            try:
                listing = running.wait(len(names) / _GIT_FILES_A_SECOND)
            except GitSilent as silent:
                return self._list_without_git(directory, names, silent)
        finally:
            running.close()
        for name, reason in listing.unreadable:
            path = self._below_base(directory, name)
            if self._rules.leaves_out_below(path, is_directory=True) is None:
                raise unreadable(path, reason)
        return listing.raw

    def _list_without_git(self, directory: bytes, names: set[bytes], silent: GitSilent) -> bytes:
        """Return a list in git's format, made from the names in git's index and a directory walk."""
        stars = "" if isinstance(silent, GitBlockedError) else "; does a .gitignore have patterns with many stars?"
        self._walk_reasons[directory] = f"{silent}{stars}"
        above = ignore_files_above(self._sources.base, directory)
        walked = walk(self._directories, directory, self._rules, above)
        cut = len(directory) + 1 if directory else 0
        names.update(path[cut:] for path in walked.paths)
        names.update(path[cut:] + b"/" for path in walked.repositories)
        return b"".join(name + b"\0" for name in sorted(names))

    def _walk(self, directory: bytes, why: str) -> DirectoryListing:
        walked = walk(self._directories, directory, self._rules)
        paths = sorted(walked.paths)
        listing_digest = hashlib.sha256(b"\0".join(paths + sorted(walked.special))).digest()
        nested = [path for path in sorted(walked.repositories) if not self._worktrees.has(path)]
        return DirectoryListing(MODE_WALK, why, listing_digest, paths, nested, sorted(walked.special))

    def _learn_rules(self, paths: Iterable[bytes]) -> None:
        """Add the rules of the .codebatchignore files among `paths`, and exclude the stores among them."""
        stores = set()
        for path in paths:
            if path.endswith(IGNORE_FILE) and os.path.basename(path) == IGNORE_FILE:
                self._rules.add_ignore_file(os.path.dirname(path))
            elif path.endswith(_CACHE_TAG) and os.path.basename(path) == _CACHE_TAG:
                stores.add(os.path.dirname(path))
        for directory in stores:
            if directory and self._is_store(directory):
                self._rules.add_store(directory)

    def _is_store(self, directory: bytes) -> bool:
        """Return whether a directory is a store: whether its store.json or CACHEDIR.TAG contains `codebatch`."""
        parent = self._directories.enter(directory)
        try:
            documents = [
                read_regular(name, bytes_max=_STORE_FILE_BYTES_MAX, dir_fd=parent, is_link_followed=False)
                for name in (layout.STORE_FILE.encode(), _CACHE_TAG)
            ]
        except OSError:
            return False
        return any(b"codebatch" in content for content in documents)

    def _is_ignored_by_parent(self, directory: bytes) -> bool:
        """Return whether an enclosing repository ignores a named directory. git would list hardly any file in it."""
        if self._is_top(directory):
            return False
        return ignored_by(self._absolute(directory), self._sources.base, is_directory=True) is not None

    def _is_top(self, directory: bytes) -> bool:
        """Return whether a directory has its own `.git`: a repository, a submodule or a work tree."""
        try:
            os.stat(b".git", dir_fd=self._directories.enter(directory), follow_symlinks=False)
        except OSError:
            return False
        return True

    def _absolute(self, directory: bytes) -> bytes:
        return os.path.join(self._sources.base, directory) if directory else self._sources.base

    def _below_base(self, directory: bytes, name: bytes) -> bytes:
        return os.path.normpath(os.path.join(directory, name)) if name not in (b"", b".") else directory


def sort_by_directory(paths: Iterable[bytes]) -> list[bytes]:
    """Sort paths so that all paths of a directory are adjacent, and each directory is entered only once."""
    return sorted(paths, key=lambda path: (path[: path.rfind(b"/") + 1], path))


def _notes(directory: bytes, answer: DirectoryListing) -> Iterator[str]:
    """Yield a note with the reason if the files of a directory were not listed by git."""
    if answer.why_walk:
        where = display_path(directory) or "the project"
        how = "a directory walk" if answer.mode == MODE_WALK else "git's index and a directory walk"
        yield f"files of {where} are listed by {how}: {answer.why_walk}"
