"""Selection of the paths of a snapshot from the listed paths.

The rules come from `--include`, `--exclude` and `.codebatchignore` files. Other stores are excluded. See SPEC.md
"Snapshots".
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import msgspec

from codebatch.errors import UnreadablePath
from codebatch.model.entry import display_path
from codebatch.model.gitignore import (
    PatternList,
    PatternMistake,
    describe_pattern,
    find_deciding_pattern,
    find_mistake,
    parse_arguments,
    parse_ignore_file,
    pattern_mistake,
)
from codebatch.model.nearest_directories import DirectoryMap, parent_directory, unknown_ancestors
from codebatch.snapshotting.directories import DirectoryDescriptors
from codebatch.snapshotting.stat_cache import ABSENT_FILE, IGNORE_FILE, FileStat, file_stat
from codebatch.store.layout import PART_FILE_SUFFIX, REPORT_FILE
from codebatch.system.files.regular_files import read_regular

IGNORE_FILE_BYTES_MAX = 4 << 20
_REPORT_NAME = REPORT_FILE.encode()
_PART_ENDING = PART_FILE_SUFFIX.encode()
_RESULT_ENDINGS = (_REPORT_NAME, _PART_ENDING)

READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class SourceRules(msgspec.Struct, frozen=True, kw_only=True):
    """The selection rules of the user, as gitignore(5) patterns for paths relative to the base of the tree.

    If `include` is not empty, only matching paths and paths below matching directories are selected. A path that
    matches both is excluded. If `rehash` is set, every file is read and the stat cache is ignored.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    rehash: bool = False


class ExclusionReason(msgspec.Struct, frozen=True):
    """The reason why a path is excluded: a rule as text, and the path that the rule matched.

    The matched path is the excluded path itself or one of its parents.
    """

    rule: str
    path: bytes


class SelectionRules:
    """The rules of one snapshot. The rules in a `.codebatchignore` file are added when the file is found.

    `notes` has a note for each ignore file that contains a pattern which can match no path.
    """

    def __init__(self, rules: SourceRules, directories: DirectoryDescriptors | None, store: bytes | None) -> None:
        """Parse the patterns. `store` is the path of the store below the base, or None if it is elsewhere.

        If `directories` is None, no tree is read, and the caller passes the content of ignore files to
        `apply_ignore_file`.
        """
        self._include = parse_arguments(rules.include, "--include")
        self._includes_all = not rules.include  # If no pattern can match, such as `[`, no path is selected.
        self._exclude = parse_arguments(rules.exclude, "--exclude")
        self._directories = directories
        self._stores = set() if store is None else {store}
        self._files: DirectoryMap[PatternList] = DirectoryMap()
        self.rule_files: dict[bytes, FileStat] = {}
        self.notes: list[str] = []
        self._exclusions: dict[bytes, ExclusionReason | None] = {b"": None}
        self._included = {b"": False}

    def add_store(self, directory: bytes) -> None:
        """Exclude the directory of another store."""
        self._stores.add(directory)
        self._exclusions = {b"": None}

    def add_ignore_file(self, directory: bytes) -> None:
        """Read the .codebatchignore of a directory and add its rules.

        If it is not a regular file, do nothing. Raises SourceUnreadable.
        """
        path = directory + b"/" + IGNORE_FILE if directory else IGNORE_FILE
        if path in self.rule_files:
            return
        assert self._directories is not None, "without a tree, callers pass the content of ignore files"
        data, status = read_ignore_file(self._directories, directory, IGNORE_FILE)
        self.rule_files[path] = status
        if data is not None:
            self.apply_ignore_file(path, data)
            self._note_mistake(path, data)

    def apply_ignore_file(self, path: bytes, data: bytes) -> None:
        """Add the rules of an ignore file with the path `path` and the content `data`."""
        directory = parent_directory(path)
        base = directory + b"/" if directory else b""
        self._files.put(directory, parse_ignore_file(data, display_path(path), base))
        # If the verdict of this directory is cached, verdicts of paths below it may be cached too, computed without
        # this file. So clear the cache.
        if directory in self._exclusions:
            self._exclusions = {b"": None}

    def _note_mistake(self, path: bytes, data: bytes) -> None:
        for number, line in enumerate(data.decode("utf-8-sig", "surrogateescape").split("\n"), 1):
            if not line.strip() or line.startswith("#"):
                continue
            if (mistake := pattern_mistake(line.rstrip())) is not None:
                place = f"{display_path(path)}:{number}"
                message = f"{mistake.pattern!r} can match no path: {mistake.reason}"
                self.notes.append(f"{place}: {message}; {mistake.hint}")
                return

    def is_selected(self, path: bytes) -> bool:
        """Return whether a file is selected.

        Called for each file of a tree, so trees without rules have a fast path.
        """
        if self._includes_all and not (self._exclude.patterns or self._files or self._stores):
            return not is_result_file(path)
        return self.exclusion_reason(path) is None

    def exclusion_reason(self, path: bytes) -> ExclusionReason | None:
        """Return the reason why a file is excluded, or None if it is selected."""
        return self.exclusion_reason_with_parents(path) or self._missing_inclusion(path)

    def exclusion_reason_with_parents(self, path: bytes, *, is_directory: bool = False) -> ExclusionReason | None:
        """Return the reason why a path and everything below it is excluded, or None. `--include` has no effect here."""
        parent = parent_directory(path)
        if parent not in self._exclusions:
            self._decide_parents(parent)
        return self._exclusions[parent] or self._direct_exclusion(path, is_directory=is_directory)

    def _decide_parents(self, directory: bytes) -> None:
        """Compute the verdicts of a directory and of its parents, from the top.

        A loop and not a recursion, because trees can be deep.
        """
        for part in unknown_ancestors(directory, self._exclusions):
            self._exclusions[part] = self._exclusions[parent_directory(part)] or self._direct_exclusion(
                part, is_directory=True
            )

    def _direct_exclusion(self, path: bytes, *, is_directory: bool) -> ExclusionReason | None:
        if path in self._stores:
            return ExclusionReason("it is a codebatch store", path)
        if not is_directory and is_result_file(path):
            return ExclusionReason("it is a codebatch report or part", path)
        excluded = self._exclude.deciding_pattern(path, is_directory=is_directory)
        if excluded is not None and not excluded.negated:
            return ExclusionReason(describe_pattern(self._exclude, excluded), path)
        if not self._files:
            return None
        decided = find_deciding_pattern(self._files.values_above(path), path, is_directory=is_directory)
        if decided is not None and not decided[1].negated:
            return ExclusionReason(describe_pattern(*decided), path)
        return None

    def _missing_inclusion(self, path: bytes) -> ExclusionReason | None:
        if self._includes_all:
            return None
        parent = parent_directory(path)
        for part in unknown_ancestors(parent, self._included):
            self._included[part] = self._included[parent_directory(part)] or self._is_included_by_pattern(
                part, is_directory=True
            )
        if self._included[parent] or self._is_included_by_pattern(path, is_directory=False):
            return None
        return ExclusionReason("no --include pattern matches", path)

    def _is_included_by_pattern(self, path: bytes, *, is_directory: bool) -> bool:
        pattern = self._include.deciding_pattern(path, is_directory=is_directory)
        return pattern is not None and not pattern.negated


class WholeTreeRules(SelectionRules):
    """Rules that select everything: also files of codebatch, and those that `.codebatchignore` files exclude."""

    def __init__(self) -> None:
        super().__init__(SourceRules(), None, None)

    def add_store(self, directory: bytes) -> None:
        """Do nothing."""

    def add_ignore_file(self, directory: bytes) -> None:
        """Do nothing."""

    def is_selected(self, path: bytes) -> bool:
        return True

    def exclusion_reason_with_parents(self, path: bytes, *, is_directory: bool = False) -> None:
        return None


def find_pattern_mistake(patterns: Sequence[str], root: Path) -> PatternMistake | None:
    """Return the first pattern that can match no path of the tree at `root`, or None. `root` is absolute."""
    # `/app/*.py` is taken for an absolute path, unless the tree at /app has a directory app.
    is_ambiguous = os.path.lexists(f"{root}{root}")
    return find_mistake(patterns, "" if is_ambiguous else str(root), os.path.expanduser("~").rstrip("/"))


def is_result_file(path: bytes) -> bool:
    """Return whether a file has the default name of an HTML report, or the name of a part file."""
    return path.endswith(_RESULT_ENDINGS) and (path.endswith(_PART_ENDING) or path.rpartition(b"/")[2] == _REPORT_NAME)


def path_and_parents(path: bytes) -> list[bytes]:
    """Return the parents of a path from the outermost one, then the path itself. The base directory is not included."""
    parts = path.split(b"/") if path else []
    return [b"/".join(parts[: end + 1]) for end in range(len(parts))]


def read_ignore_file(directories: DirectoryDescriptors, directory: bytes, name: bytes) -> tuple[bytes | None, FileStat]:
    """Return the content and the stat of an ignore file. If it is not a regular file, the content is None.

    A symbolic link is not a regular file, so it has no effect, as in git. Raises UnreadablePath.
    """
    path = directory + b"/" + name if directory else name
    try:
        parent = directories.open_directory(directory)
        status = file_stat(os.stat(name, dir_fd=parent, follow_symlinks=False))
        if not stat.S_ISREG(status.mode):
            return None, status
        data = read_regular(name, bytes_max=IGNORE_FILE_BYTES_MAX, dir_fd=parent, is_link_followed=False)
    except (FileNotFoundError, NotADirectoryError):
        return None, ABSENT_FILE
    except OSError as error:
        raise UnreadablePath(display_path(path), error.strerror) from error
    return data, status
