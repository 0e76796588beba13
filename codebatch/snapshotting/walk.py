"""Listing of a tree without git: a directory walk that applies .gitignore files like git."""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec

from codebatch.errors import SourceUnreadable, UnreadablePath
from codebatch.model.entry import PATH_BYTES_MAX, display_path
from codebatch.model.gitignore import (
    DISPLAYED_BYTES_MAX,
    PatternList,
    describe_pattern,
    find_deciding_pattern,
    parse_ignore_file,
)
from codebatch.model.nearest_directories import DirectoryMap, parent_directory, unknown_ancestors
from codebatch.snapshotting.directories import DirectoryDescriptors
from codebatch.snapshotting.selection import SelectionRules, read_ignore_file
from codebatch.snapshotting.stat_cache import IGNORE_FILE

GITIGNORE_NAME = b".gitignore"


class WalkResult(msgspec.Struct, frozen=True):
    """The result of a walk: paths of files and links, directories with their own `.git`, and special files."""

    paths: list[bytes]
    repositories: list[bytes]
    special: list[bytes]


def walk_tree(
    directories: DirectoryDescriptors, top: bytes, rules: SelectionRules, above: tuple[PatternList, ...] = ()
) -> WalkResult:
    """List the paths below `top`, which is a path below the base. Excluded directories are not entered.

    `above` are the ignore files above `top` that apply, nearest first. As in git, an ignored directory is never
    entered, so a `!` pattern cannot include a path in it. Raises SourceUnreadable.
    """
    walked = WalkResult([], [], [])
    for _ in iter_walk(directories, top, rules, walked, above):
        pass
    return walked


def iter_walk(
    directories: DirectoryDescriptors,
    top: bytes,
    rules: SelectionRules,
    walked: WalkResult,
    above: tuple[PatternList, ...] = (),
) -> Iterator[None]:
    """Do the work of `walk_tree` in steps: after each directory, add its paths to `walked` and yield."""
    ignore_files: DirectoryMap[PatternList] = DirectoryMap()
    pending = [top]
    while pending:
        directory = pending.pop()
        pending.extend(_visit_directory(directories, directory, top, rules, ignore_files, above, walked))
        yield


def _visit_directory(
    directories: DirectoryDescriptors,
    directory: bytes,
    top: bytes,
    rules: SelectionRules,
    ignore_files: DirectoryMap[PatternList],
    above: tuple[PatternList, ...],
    walked: WalkResult,
) -> list[bytes]:
    """List one directory and add its paths to `walked`. Return the subdirectories to visit."""
    if len(directory) > PATH_BYTES_MAX:
        raise path_too_long_error(directory)
    items = list_directory(directories, directory)
    if items is None:
        return []
    names = {name for name, _ in items}
    if directory != top and b".git" in names:
        walked.repositories.append(directory)
        return []
    prefix = directory + b"/" if directory else b""
    if GITIGNORE_NAME in names:
        data, _ = read_ignore_file(directories, directory, GITIGNORE_NAME)
        if data is not None:
            ignore_files.put(directory, parse_ignore_file(data, display_path(prefix + GITIGNORE_NAME), prefix))
    rule_file = prefix + IGNORE_FILE
    # An ignored .codebatchignore has no effect. git's list does not contain it either, so both listing modes give the
    # same result.
    if IGNORE_FILE in names and not _is_ignored(
        ignore_files.values_above(rule_file) + above, rule_file, is_directory=False
    ):
        rules.add_ignore_file(directory)
    below = []
    for name, kind in items:
        path = prefix + name
        if is_git_directory(name) or _is_ignored(
            ignore_files.values_above(path) + above, path, is_directory=kind == "directory"
        ):
            continue
        if kind == "file":
            walked.paths.append(path)
        elif kind == "special":
            walked.special.append(path)
        elif rules.exclusion_reason_with_parents(path, is_directory=True) is None:
            below.append(path)
    return below


def _is_ignored(chain: tuple[PatternList, ...], path: bytes, *, is_directory: bool) -> bool:
    """Return whether .gitignore files ignore a path. The caller has tested that they do not ignore its parents."""
    if not chain:
        return False
    decided = find_deciding_pattern(chain, path, is_directory=is_directory)
    return decided is not None and not decided[1].negated


def ignore_files_above(base: bytes, directory: bytes) -> tuple[PatternList, ...]:
    """Return the .gitignore files above a directory that apply to it, nearest first.

    `directory` is relative to the base. Only files within its work tree apply. Raises SourceUnreadable.
    """
    target = os.path.join(base, directory) if directory else base
    top = work_tree_around(target)
    if top is None or top == target:
        return ()
    parts = os.path.relpath(target, top).split(b"/")
    below_base = directory.split(b"/") if directory else []
    pattern_lists: list[PatternList] = []
    with DirectoryDescriptors(top) as directories:
        for depth in range(len(parts)):
            data, _ = read_ignore_file(directories, b"/".join(parts[:depth]), GITIGNORE_NAME)
            if data is None:
                continue
            # The number of directory levels from the file up to the base is negative if the file is below the base.
            beyond = len(parts) - len(below_base) - depth
            directory_prefix = b"".join(part + b"/" for part in parts[depth : depth + max(beyond, 0)])
            prefix = b"".join(part + b"/" for part in below_base[: max(-beyond, 0)])
            pattern_lists.insert(
                0, parse_ignore_file(data, display_path(GITIGNORE_NAME), prefix, prefix=directory_prefix)
            )
    return tuple(pattern_lists)


class GitIgnore:
    """The .gitignore files of a tree. Each file is read when it is first needed. A context manager."""

    def __init__(self, top: bytes, base: bytes) -> None:
        """Open `top`, the absolute directory of the first ignore file. Raises OSError if it is not a directory.

        In returned rules, the paths of ignore files are relative to `base`.
        """
        self._top = top
        self._base = base.rstrip(b"/") + b"/"
        self._directories = DirectoryDescriptors(top)
        self._files: DirectoryMap[PatternList] = DirectoryMap()
        self._read: set[bytes] = set()
        self._rules: dict[bytes, str | None] = {b"": None}

    def __enter__(self) -> GitIgnore:
        return self

    def __exit__(self, *_: object) -> None:
        self._directories.__exit__()

    def rule_for(self, target: bytes, *, is_directory: bool) -> str | None:
        """Return the pattern that ignores an absolute path below the top, or ignores one of its parents.

        None if no pattern does. Raises SourceUnreadable.
        """
        path = target[len(self._top.rstrip(b"/")) + 1 :]
        parent = parent_directory(path)
        for directory in unknown_ancestors(parent, self._rules):
            self._rules[directory] = self._rules[parent_directory(directory)] or self._rule_ignoring_parents(
                directory, is_directory=True
            )
        return self._rules[parent] or self._rule_ignoring_parents(path, is_directory=is_directory)

    def _rule_ignoring_parents(self, path: bytes, *, is_directory: bool) -> str | None:
        directory = parent_directory(path)
        if directory not in self._read:
            self._read.add(directory)
            data, _ = read_ignore_file(self._directories, directory, GITIGNORE_NAME)
            if data is not None:
                prefix = directory + b"/" if directory else b""
                displayed_file = os.path.join(self._top, prefix + GITIGNORE_NAME).removeprefix(self._base)
                self._files.put(directory, parse_ignore_file(data, display_path(displayed_file), prefix))
        decided = find_deciding_pattern(self._files.values_above(path), path, is_directory=is_directory)
        return describe_pattern(*decided) if decided is not None and not decided[1].negated else None


def ignored_by(target: bytes, base: bytes, *, is_directory: bool) -> str | None:
    """Return the .gitignore pattern that ignores an absolute path, or ignores one of its parents in its work tree.

    None if no pattern does. The returned path of the ignore file is relative to `base`. Raises SourceUnreadable.
    """
    top = work_tree_around(os.path.dirname(target))
    if top is None:
        return None
    with GitIgnore(top, base) as ignore:
        return ignore.rule_for(target, is_directory=is_directory)


def work_tree_around(directory: bytes) -> bytes | None:
    """Return the nearest directory with a `.git`, from an absolute directory upwards. None if there is none."""
    while not os.path.lexists(os.path.join(directory, b".git")):
        if directory == os.path.dirname(directory):
            return None
        directory = os.path.dirname(directory)
    return directory


def list_directory(directories: DirectoryDescriptors, directory: bytes) -> list[tuple[bytes, str]] | None:
    """Return the names in a directory with their kinds: `file` (or link), `directory`, `special`.

    Return None if the directory does not exist any more. Raises SourceUnreadable.
    """
    try:
        return [(os.fsencode(item.name), _entry_kind(item)) for item in directories.scan_directory(directory)]
    except (FileNotFoundError, NotADirectoryError):
        # The directory was removed or replaced after its parent was read.
        return None
    except OSError as error:
        raise unreadable_error(directory, error.strerror) from error


def special_files(directories: DirectoryDescriptors, directory: bytes) -> list[bytes]:
    """Return the FIFOs, sockets and devices in a directory, which git never lists. Empty if it is unreadable."""
    prefix = directory + b"/" if directory else b""
    try:
        return [
            prefix + os.fsencode(item.name)
            for item in directories.scan_directory(directory)
            if _entry_kind(item) == "special"
        ]
    except OSError:
        return []


def is_git_directory(name: bytes) -> bool:
    """Return whether a name is `.git`, in upper or lower case, because some file systems ignore case."""
    return name.lower() == b".git"


def path_too_long_error(path: bytes) -> SourceUnreadable:
    """Return the error for a path that is too long for a snapshot."""
    return SourceUnreadable(
        f"a path is longer than {PATH_BYTES_MAX} bytes: {display_path(path[:DISPLAYED_BYTES_MAX])}…",
        hint="exclude the path with --exclude",
    )


def unreadable_error(path: bytes, reason: str | None) -> SourceUnreadable:
    """Return the error that the operating system denies access to a path of the source."""
    return UnreadablePath(display_path(path) or ".", reason, hint="fix its permissions, or exclude it with --exclude")


def _entry_kind(item: os.DirEntry[str]) -> str:
    if item.is_file(follow_symlinks=False) or item.is_symlink():
        return "file"
    return "directory" if item.is_dir(follow_symlinks=False) else "special"
