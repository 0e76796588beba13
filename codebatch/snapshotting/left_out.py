"""Search for words in the files of a tree that its snapshot does not contain, such as ignored files.

Never searched are `.git`, stores and reports of codebatch, linked work trees of the same repository, and `__pycache__`,
which has only compiled forms of files that are elsewhere. Symbolic links are not followed.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import msgspec

from codebatch.errors import CodebatchError
from codebatch.model.entry import PATH_BYTES_MAX
from codebatch.model.nearest_directories import parent_directory
from codebatch.model.text.words import WordFinder
from codebatch.snapshotting.directories import DirectoryDescriptors
from codebatch.snapshotting.listing import CACHE_TAG_NAME, is_store
from codebatch.snapshotting.roots import SourceRoots, store_below
from codebatch.snapshotting.selection import READ_FLAGS, SelectionRules, SourceRules, is_result_file, path_and_parents
from codebatch.snapshotting.walk import GitIgnore, is_git_directory, work_tree_around
from codebatch.snapshotting.worktrees import LinkedWorktrees

SEARCHED_FILES_MAX = 20_000
SEARCHED_BYTES_MAX = 256 << 20
"""Maximum number and total size of the files that are searched. Further files are only counted."""
COUNTED_FILES_MAX = 200_000
"""Maximum number of files that are counted. After this number, the search ends."""
_CHUNK_BYTES = 1 << 20
_COMPILED_PYTHON = b"__pycache__"


class LeftOutFile(msgspec.Struct, frozen=True):
    """A file that the snapshot does not contain, and in which a word occurs.

    `rule` is the rule that excludes the file. It is empty if no known rule does, for example if the file is new.
    """

    path: bytes
    rule: str


class LeftOutFiles(msgspec.Struct, frozen=True):
    """The files of a tree that its snapshot does not contain.

    - `matches`: the searched files in which a word occurs, by path.
    - `searched`: the number of searched files.
    - `unsearched`: the number of files that were not searched, because they are unreadable or a limit was reached.
    - `is_cut`: the number of files exceeds a limit, so there may be more of them.
    """

    matches: tuple[LeftOutFile, ...] = ()
    searched: int = 0
    unsearched: int = 0
    is_cut: bool = False


def search_left_out_files(
    sources: SourceRoots,
    store_root: Path,
    known: Collection[bytes],
    finder: WordFinder,
    rules: SourceRules,
    is_wanted: Callable[[bytes], bool],
) -> LeftOutFiles:
    """Search the files below the source roots that are not among the `known` paths. `is_wanted` restricts the paths.

    Paths are relative to the base of the roots. Raises OSError if the base cannot be opened.
    """
    with DirectoryDescriptors(sources.base) as directories:
        search = _LeftOutSearch(sources.base, store_root, directories, known, finder, is_wanted)
        matches = sorted(search.iter_matches(sources.directories))
        explain = _ExclusionRules(sources.base, store_root, directories, rules)
        found = tuple(LeftOutFile(path, explain.rule_for(path)) for path in matches)
        return LeftOutFiles(found, search.searched, search.unsearched, search.is_cut)


class _LeftOutSearch:
    """One search. Files near the root are searched first, because deeper ones are more often installed packages."""

    def __init__(
        self,
        base: bytes,
        store_root: Path,
        directories: DirectoryDescriptors,
        known: Collection[bytes],
        finder: WordFinder,
        is_wanted: Callable[[bytes], bool],
    ) -> None:
        self.searched = self.unsearched = 0
        self.is_cut = False
        self._directories = directories
        self._known = known
        self._finder = finder
        self._is_wanted = is_wanted
        self._store = store_below(base, store_root)
        self._worktrees = LinkedWorktrees(base)
        self._bytes_left = SEARCHED_BYTES_MAX

    def iter_matches(self, tops: Collection[bytes]) -> Iterator[bytes]:
        """Yield the files below some directories in which a word occurs."""
        pending = deque(tops)
        while pending:
            directory = pending.popleft()
            below, files = self._list_names(directory, is_top=directory in tops)
            pending += below
            for path in files:
                if path not in self._known and self._is_wanted(path) and self._contains_word(path):
                    yield path
            if self.searched + self.unsearched >= COUNTED_FILES_MAX:
                self.is_cut = bool(pending)
                return

    def _list_names(self, directory: bytes, *, is_top: bool) -> tuple[list[bytes], list[bytes]]:
        """Return the subdirectories and the regular files of a directory that may be searched, sorted."""
        prefix = directory + b"/" if directory else b""
        subdirectories, files = [], []
        try:
            for item in self._directories.scan_directory(directory):
                path = prefix + os.fsencode(item.name)
                if item.is_file(follow_symlinks=False):
                    files.append(path)
                elif item.is_dir(follow_symlinks=False):
                    subdirectories.append(path)
        except OSError:
            self.unsearched += 1
            return [], []
        if not is_top and self._is_never_searched(directory, prefix, {*files}, {*subdirectories}):
            return [], []
        too_long = [path for path in files + subdirectories if len(path) > PATH_BYTES_MAX]
        self.unsearched += len(too_long)
        return (
            sorted(
                path
                for path in subdirectories
                if not is_git_directory(name := os.path.basename(path))
                and name != _COMPILED_PYTHON
                and path != self._store
                and path not in too_long
            ),
            sorted(
                path
                for path in files
                if not (is_git_directory(os.path.basename(path)) or is_result_file(path) or path in too_long)
            ),
        )

    def _is_never_searched(
        self, directory: bytes, prefix: bytes, files: Collection[bytes], subdirectories: Collection[bytes]
    ) -> bool:
        if prefix + CACHE_TAG_NAME in files and is_store(self._directories, directory):
            return True
        git = prefix + b".git"
        return (git in files or git in subdirectories) and self._worktrees.has(directory)

    def _contains_word(self, path: bytes) -> bool:
        """Return whether a word occurs in a file. If it is not searched, count it as unsearched and return False."""
        if self.searched >= SEARCHED_FILES_MAX:
            self.unsearched += 1
            return False
        try:
            parent = self._directories.open_directory(parent_directory(path))
            fd = os.open(os.path.basename(path), READ_FLAGS, dir_fd=parent)
        except OSError:
            self.unsearched += 1
            return False
        with open(fd, "rb", buffering=0) as file:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) or status.st_size > self._bytes_left:
                self.unsearched += 1
                return False
            try:
                is_match = self._finder.is_in_any(self._iter_chunks(file.read, status.st_size))
            except OSError:
                self.unsearched += 1
                return False
        self.searched += 1
        return is_match

    def _iter_chunks(self, read: Callable[[int], bytes | None], size: int) -> Iterator[bytes]:
        """Yield the content of a file in chunks, but not more bytes than its size when it was opened."""
        while size > 0 and (chunk := read(min(size, _CHUNK_BYTES))):
            size -= len(chunk)
            self._bytes_left -= len(chunk)
            yield chunk


class _ExclusionRules:
    """The rules of a tree that exclude files: ignore files and patterns of the user."""

    def __init__(self, base: bytes, store_root: Path, directories: DirectoryDescriptors, rules: SourceRules) -> None:
        self._base = base
        self._selection = SelectionRules(rules, directories, store_below(base, store_root))
        self._top = work_tree_around(base) or base

    def rule_for(self, path: bytes) -> str:
        """Return the first rule that excludes a path, or an empty string if none does."""
        try:
            for directory in (b"", *path_and_parents(parent_directory(path))):
                self._selection.add_ignore_file(directory)
            verdict = self._selection.exclusion_reason(path)
            if verdict is not None:
                return verdict.rule
            with GitIgnore(self._top, self._base) as ignore:
                return ignore.rule_for(os.path.join(self._base, path), is_directory=False) or ""
        except (CodebatchError, OSError):
            return ""
