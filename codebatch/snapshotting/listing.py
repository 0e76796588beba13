"""Listing a source tree: which paths there are, by git's word or by a walk, and what lstat(2) says of each.

A list names what may be there; lstat decides. git lists files that were deleted, and gives a submodule or a repository
inside the tree as one name: such a directory is listed in its own right. Modes of a listing: `git`, `walk`, and `named`
for a file that the user named, which no ignore file can hide.
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
from codebatch.model.nearest_directories import parent_of
from codebatch.snapshotting.directories import Directories
from codebatch.snapshotting.roots import SourceRoots
from codebatch.snapshotting.selection import SelectionRules
from codebatch.snapshotting.stat_cache import IGNORE_FILE, MODE_GIT, MODE_WALK, FileStat, is_special, stat_at
from codebatch.snapshotting.walk import (
    GITIGNORE,
    GitIgnore,
    Walked,
    ignore_files_above,
    ignored_by,
    iter_walk,
    special_files,
    too_long,
    unreadable,
    walk,
    work_tree_around,
)
from codebatch.snapshotting.worktrees import LinkedWorktrees
from codebatch.store import layout
from codebatch.system.files.regular_files import read_regular

# How long git may be silent before its list is made without it, and then again for each so many files that it tracks.
_GIT_SECONDS = 3.0
_GIT_SECONDS_MIN = 0.1
# For what git reads from its index alone. Nothing can stand in for that, so silence is an error and not another list.
_INDEX_SECONDS = 10.0
_GIT_FILES_A_SECOND = 10_000

_CACHE_TAG = b"CACHEDIR.TAG"
_STORE_FILE_BYTES_MAX = 4096


class GitListingAnswer(msgspec.Struct, frozen=True):
    """One directory's list: paths below the base; those that are repositories of their own; those that are special.

    `why_walk` is empty where git said it all.
    """

    mode: str
    why_walk: str
    digest: bytes
    paths: list[bytes]
    repositories: list[bytes]
    special: list[bytes]


class ListedTree(msgspec.Struct):
    """What is there now. `stats` has every listed path that the rules take, also those that are ABSENT or special."""

    stats: dict[bytes, FileStat] = msgspec.field(default_factory=dict)
    submodules: set[bytes] = msgspec.field(default_factory=set)
    special: set[bytes] = msgspec.field(default_factory=set)
    listings: list[tuple[bytes, str, bytes]] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)


class _AskIndex(Protocol):
    def __call__(self, git: str, directory: bytes, seconds: float, *, is_top: bool) -> set[bytes]: ...


class TreeLister:
    """Lists the trees of one snapshot. A context manager: on leaving, no git that it started is alive.

    It has many methods, because git, the directory walk and the rules all apply to one list.
    """

    def __init__(self, sources: SourceRoots, directories: Directories, rules: SelectionRules) -> None:
        self._sources = sources
        self._directories = directories
        self._rules = rules
        self._git = find_git()
        self._running: dict[bytes, GitList] = {}
        self._raw: dict[bytes, bytes] = {}
        self._failed: dict[bytes, str] = {}
        self._unheard: dict[bytes, str] = {}
        self._patience = _GIT_SECONDS
        self._answers: dict[bytes, GitListingAnswer] = {}
        self._worktrees = LinkedWorktrees(sources.base)

    def __enter__(self) -> TreeLister:
        return self

    def __exit__(self, *_: object) -> None:
        for running in self._running.values():
            running.close()
        self._running = {}

    def start(self, directory: bytes) -> None:
        """Let git begin on a directory while we do something else."""
        if self._git is not None and directory not in self._running and directory not in self._raw:
            with contextlib.suppress(GitError):
                self._running[directory] = GitList(self._git, self._absolute(directory), is_top=self._is_top(directory))

    def digest(self, directory: bytes, mode: str) -> bytes | None:
        """sha256 of a directory's list now, None where it would not be made in this mode. Cheaper than `list_all`."""
        if mode == MODE_GIT and directory not in self._answers:
            try:
                if self._git is None or self._is_outcast(directory):
                    return None
                return hashlib.sha256(self._git_raw(directory)).digest()
            except GitError:
                return None
        answer = self._answer(directory)
        return answer.digest if answer.mode == mode else None

    def lists_a_cache_tag(self, directory: bytes, mode: str) -> bool:
        """Whether a list of which there is a digest may name the CACHEDIR.TAG of a store."""
        if mode == MODE_GIT and directory not in self._answers:
            return _CACHE_TAG in self._git_raw(directory)
        return any(path.endswith(_CACHE_TAG) for path in self._answer(directory).paths)

    def lists_a_file(self) -> bool:
        """Whether `list_all` finds a regular file. In most trees the first directory tells. Raises SourceUnreadable."""
        self._rules.add_ignore_file(b"")
        for directory in self._sources.directories:
            walked = Walked([], [], [])
            for _ in iter_walk(self._directories, directory, self._rules, walked):
                tree = ListedTree()
                for path in walked.paths:
                    if self._rules.leaves_out(path) is None:
                        self._add(tree, path)
                if any(stat.S_ISREG(found.mode) for found in tree.stats.values()):
                    return True
                walked.paths.clear()
        # What a walk does not find, git may know of: files that are tracked and ignored, repositories inside.
        return any(stat.S_ISREG(found.mode) for found in self.list_all().stats.values())

    def list_all(self) -> ListedTree:
        """List everything that was named. Raises SourceUnreadable."""
        tree = ListedTree()
        self._rules.add_ignore_file(b"")
        for path in self._sources.files:
            self._add(tree, path)
        left = list(self._sources.directories)
        done = set()
        while left:
            directory = left.pop()
            if directory in done:
                continue
            done.add(directory)
            answer = self._answer(directory)
            tree.listings.append((directory, answer.mode, answer.digest))
            tree.notes.extend(_notes(directory, answer))
            self._learn_rules(answer.paths)
            found = self._add_listed(tree, answer)
            self._note_gitignores(tree, answer)
            nested = [
                path for path in answer.repositories if self._rules.leaves_out_below(path, is_directory=True) is None
            ]
            left.extend(nested)
            if found:
                left.extend(self._sort_out_directories(tree, directory, found))
        tree.listings.sort()
        tree.notes = list(dict.fromkeys((*tree.notes, *self._worktrees.notes)))
        return tree

    def _add_listed(self, tree: ListedTree, answer: GitListingAnswer) -> list[bytes]:
        """lstat what a list names; returns those that are directories."""
        takes = self._rules.takes
        for path in answer.special:
            if takes(path):
                self._add(tree, path)
        return [
            path
            for path in by_directory(answer.paths)
            if path not in tree.stats and takes(path) and self._add(tree, path)
        ]

    def _note_gitignores(self, tree: ListedTree, answer: GitListingAnswer) -> None:
        """Remember what the .gitignore files look like that are not taken: no row tells when one changes."""
        for path in answer.paths:
            if path.endswith(GITIGNORE) and path not in tree.stats and os.path.basename(path) == GITIGNORE:
                with contextlib.suppress(OSError):
                    self._rules.rule_files[path] = stat_at(self._directories, path)

    def _add(self, tree: ListedTree, path: bytes) -> bool:
        """lstat one path into the tree; whether it is a directory."""
        if len(path) > PATH_BYTES_MAX:
            raise too_long(path)
        try:
            found = stat_at(self._directories, path)
        except OSError as error:
            raise unreadable(path, error.strerror) from error
        tree.stats[path] = found
        if is_special(found.mode):
            tree.special.add(path)
        return stat.S_ISDIR(found.mode)

    def _sort_out_directories(self, tree: ListedTree, listing: bytes, found: list[bytes]) -> list[bytes]:
        """What git named as one thing and is a directory: returns those to list in their own right.

        A submodule that was checked out has a `.git`. One that was not is an entry, unless somebody put files there.
        Anything else is a file of the index that has become a directory: git listed what is in it already.
        """
        nested = [path for path in found if self._is_top(path)]
        rest = [path for path in found if path not in nested]
        if rest and self._git is not None:
            prefix = listing + b"/" if listing else b""
            links = {prefix + path for path in self._gitlinks(listing)}
            for path in rest:
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

    def _index_names(self, ask: _AskIndex, listing: bytes) -> set[bytes]:
        """What git answers from its index. Raises GitError, and SourceUnreadable where it does not answer."""
        assert self._git is not None
        try:
            return ask(self._git, self._absolute(listing), _INDEX_SECONDS, is_top=self._is_top(listing))
        except GitBlockedError:
            raise  # It never answers, however long anybody waits: the tree is walked.
        except GitSilent as error:
            raise SourceUnreadable(
                f"git did not report which files it tracks in {display_path(listing) or 'the project'}",
                hint=(
                    "check whether the git configuration includes a FIFO or device; if there is no .git directory, "
                    "files are listed by a directory walk"
                ),
            ) from error

    def _answer(self, directory: bytes) -> GitListingAnswer:
        if directory not in self._answers:
            self._answers[directory] = self._ask_git(directory)
        return self._answers[directory]

    def _ask_git(self, directory: bytes) -> GitListingAnswer:
        """A directory's list from git, or from a walk where git cannot or should not say."""
        if self._git is None:
            return self._walk(directory, "git is not installed")
        if not self._is_top(directory) and directory not in self._sources.directories:
            return self._walk(directory, "the submodule is not checked out")
        try:
            if self._is_outcast(directory):
                return self._walk(directory, "it is ignored by the enclosing repository")
            raw = self._git_raw(directory)
        except GitError as error:
            return self._walk(directory, str(error))
        prefix = directory + b"/" if directory else b""
        names = sorted(raw.split(b"\0"))
        repositories = [prefix + name[:-1] for name in names if name.endswith(b"/")]
        paths = [prefix + name for name in names if name and not name.endswith(b"/")]
        special = self._special(directory, paths)
        why = self._unheard.get(directory, "")
        return GitListingAnswer(MODE_GIT, why, hashlib.sha256(raw).digest(), paths, repositories, special)

    def _special(self, listing: bytes, paths: list[bytes]) -> list[bytes]:
        """Special files beside what git lists, to be said: git passes over them in silence."""
        around = {parent_of(path) for path in paths} | {listing}
        found = [path for directory in sorted(around) for path in special_files(self._directories, directory)]
        top = work_tree_around(self._absolute(listing)) if found else None
        if top is None:
            return found
        with GitIgnore(top, self._sources.base) as ignore:
            return [path for path in found if ignore.rule_for(self._absolute(path), is_directory=False) is None]

    def _git_raw(self, directory: bytes) -> bytes:
        """git's answer for a directory. Raises GitError, and SourceUnreadable for what git could not read."""
        if directory in self._failed:
            raise GitError(self._failed[directory])
        if directory not in self._raw:
            try:
                self._raw[directory] = self._worktrees.without(directory, self._hear_git(directory))
            except GitError as error:
                # Not the error: it leads to the frames of all who called, which then go with the collector alone.
                self._failed[directory] = str(error)
                raise
        return self._raw[directory]

    def _hear_git(self, directory: bytes) -> bytes:
        self.start(directory)
        if directory not in self._running:
            raise GitError("git cannot be started")
        running = self._running.pop(directory)
        try:
            listing = running.wait(self._patience)
        except GitSilent:
            # What git does not answer for one repository it may not answer for the next.
            self._patience = max(self._patience / 2, _GIT_SECONDS_MIN)
            names = self._index_names(tracked, directory)
            try:
                listing = running.wait(len(names) / _GIT_FILES_A_SECOND)
            except GitSilent as silent:
                return self._list_unheard(directory, names, silent)
        finally:
            running.close()
        for name, reason in listing.unreadable:
            path = self._below_base(directory, name)
            if self._rules.leaves_out_below(path, is_directory=True) is None:
                raise unreadable(path, reason)
        return listing.raw

    def _list_unheard(self, directory: bytes, names: set[bytes], silent: GitSilent) -> bytes:
        """What git would say, in its form: what it tracks, and by a walk what it does not."""
        stars = "" if isinstance(silent, GitBlockedError) else "; does a .gitignore have patterns with many stars?"
        self._unheard[directory] = f"{silent}{stars}"
        above = ignore_files_above(self._sources.base, directory)
        walked = walk(self._directories, directory, self._rules, above)
        cut = len(directory) + 1 if directory else 0
        names.update(path[cut:] for path in walked.paths)
        names.update(path[cut:] + b"/" for path in walked.repositories)
        return b"".join(name + b"\0" for name in sorted(names))

    def _walk(self, directory: bytes, why: str) -> GitListingAnswer:
        walked = walk(self._directories, directory, self._rules)
        paths = sorted(walked.paths)
        whole = hashlib.sha256(b"\0".join(paths + sorted(walked.special))).digest()
        nested = [path for path in sorted(walked.repositories) if not self._worktrees.has(path)]
        return GitListingAnswer(MODE_WALK, why, whole, paths, nested, sorted(walked.special))

    def _learn_rules(self, paths: Iterable[bytes]) -> None:
        """Heed the .codebatchignore files and the stores that a list names."""
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
        """Whether a directory has a store's document and is ours: its tag says so, or in 1.x the document."""
        parent = self._directories.enter(directory)
        try:
            about = [
                read_regular(name, bytes_max=_STORE_FILE_BYTES_MAX, dir_fd=parent, is_link_followed=False)
                for name in (layout.STORE_FILE.encode(), _CACHE_TAG)
            ]
        except OSError:
            return False
        return any(b"codebatch" in said for said in about)

    def _is_outcast(self, directory: bytes) -> bool:
        """Whether a repository around a named directory ignores it: then git would list next to nothing."""
        if self._is_top(directory):
            return False
        return ignored_by(self._absolute(directory), self._sources.base, is_directory=True) is not None

    def _is_top(self, directory: bytes) -> bool:
        """Whether a directory has a `.git` of its own: a repository, a submodule, a work tree."""
        try:
            os.stat(b".git", dir_fd=self._directories.enter(directory), follow_symlinks=False)
        except OSError:
            return False
        return True

    def _absolute(self, directory: bytes) -> bytes:
        return os.path.join(self._sources.base, directory) if directory else self._sources.base

    def _below_base(self, directory: bytes, name: bytes) -> bytes:
        return os.path.normpath(os.path.join(directory, name)) if name not in (b"", b".") else directory


def by_directory(paths: Iterable[bytes]) -> list[bytes]:
    """Paths ordered so that those of one directory stand together: each directory is entered once."""
    return sorted(paths, key=lambda path: (path[: path.rfind(b"/") + 1], path))


def _notes(directory: bytes, answer: GitListingAnswer) -> Iterator[str]:
    """Yield why git did not list the files of a directory, if it did not."""
    if answer.why_walk:
        where = display_path(directory) or "the project"
        how = "a directory walk" if answer.mode == MODE_WALK else "git's index and a directory walk"
        yield f"files of {where} are listed by {how}: {answer.why_walk}"
