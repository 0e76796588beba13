"""Listing a tree without git: every directory, with the .gitignore files obeyed as git would obey them."""

from __future__ import annotations

import os
from typing import NamedTuple

from codebatch.errors import SourceUnreadable
from codebatch.model.entry import display_path
from codebatch.store.directories import Directories
from codebatch.store.ignore import PatternList, decide_chain, describe, parse_ignore_file
from codebatch.store.nearest import Nearest, parent_of
from codebatch.store.rules import IGNORE_FILE, Rules, parents_of, read_ignore_file

GITIGNORE = b".gitignore"


class Walked(NamedTuple):
    """What a walk found: paths of files and links, directories that hold a `.git` of their own, and special files."""

    paths: list[bytes]
    repositories: list[bytes]
    special: list[bytes]


def walk(directories: Directories, top: bytes, rules: Rules) -> Walked:
    """List what lies below `top` (a path below the base). A directory that the rules leave out is not entered.

    An ignored directory is never entered, so nothing in it can be taken back by a `!` pattern: as git has it.
    Raises SourceUnreadable.
    """
    walked = Walked([], [], [])
    ignore_files: Nearest[PatternList] = Nearest()
    left = [top]
    while left:
        directory = left.pop()
        left.extend(_visit(directories, directory, top, rules, ignore_files, walked))
    return walked


def _visit(
    directories: Directories,
    directory: bytes,
    top: bytes,
    rules: Rules,
    ignore_files: Nearest[PatternList],
    walked: Walked,
) -> list[bytes]:
    """Read one directory; returns the directories to go on with."""
    items = list_directory(directories, directory)
    if items is None:
        return []
    names = {name for name, _ in items}
    if directory != top and b".git" in names:
        walked.repositories.append(directory)
        return []
    prefix = directory + b"/" if directory else b""
    if GITIGNORE in names:
        data, _ = read_ignore_file(directories, directory, GITIGNORE)
        if data is not None:
            ignore_files.put(directory, parse_ignore_file(data, display_path(prefix + GITIGNORE), prefix))
    if IGNORE_FILE in names:
        rules.add_ignore_file(directory)
    below = []
    for name, kind in items:
        path = prefix + name
        if name == b".git" or is_ignored(ignore_files, path, is_directory=kind == "directory"):
            continue
        if kind == "file":
            walked.paths.append(path)
        elif kind == "special":
            walked.special.append(path)
        elif rules.leaves_out_below(path, is_directory=True) is None:
            below.append(path)
    return below


def is_ignored(ignore_files: Nearest[PatternList], path: bytes, *, is_directory: bool) -> bool:
    """Whether .gitignore files ignore a path whose parents they do not."""
    if not ignore_files:
        return False
    decided = decide_chain(ignore_files.above(path), path, is_directory=is_directory)
    return decided is not None and not decided[1].negated


def ignored_by(target: bytes, *, is_directory: bool) -> str | None:
    """The .gitignore pattern that ignores an absolute path or a parent of it within the work tree around it.

    The work tree is taken to begin at the nearest directory above that has a `.git`. Raises SourceUnreadable.
    """
    top = os.path.dirname(target)
    while not os.path.lexists(os.path.join(top, b".git")):
        if top == os.path.dirname(top):
            return None
        top = os.path.dirname(top)
    relative = os.path.relpath(target, top)
    files: Nearest[PatternList] = Nearest()
    with Directories(top) as directories:
        for part in parents_of(relative):
            above = parent_of(part)
            prefix = above + b"/" if above else b""
            data, _ = read_ignore_file(directories, above, GITIGNORE)
            if data is not None:
                files.put(above, parse_ignore_file(data, os.fsdecode(os.path.join(top, prefix + GITIGNORE)), prefix))
            decided = decide_chain(files.above(part), part, is_directory=is_directory or part != relative)
            if decided is not None and not decided[1].negated:
                return describe(*decided)
    return None


def list_directory(directories: Directories, directory: bytes) -> list[tuple[bytes, str]] | None:
    """Names in a directory with what they are: `file` (or link), `directory`, `special`. None where it has gone."""
    try:
        return [(os.fsencode(item.name), _kind(item)) for item in directories.scan(directory)]
    except (FileNotFoundError, NotADirectoryError):
        # Gone, or become something else, since its parent was read: the parent's list is not wrong, only older.
        return None
    except OSError as error:
        raise unreadable(directory, error.strerror) from error


def special_files(directories: Directories, directory: bytes) -> list[bytes]:
    """The fifos, sockets and devices right in a directory, which git does not list; none where it cannot be read."""
    prefix = directory + b"/" if directory else b""
    try:
        return [prefix + os.fsencode(item.name) for item in directories.scan(directory) if _kind(item) == "special"]
    except OSError:
        return []


def unreadable(path: bytes, reason: str | None) -> SourceUnreadable:
    """The error for a path of the source that the operating system refuses."""
    return SourceUnreadable(
        f"cannot read {display_path(path) or '.'}: {reason}",
        hint="fix its permissions, or leave it out with --exclude",
    )


def _kind(item: os.DirEntry[str]) -> str:
    if item.is_file(follow_symlinks=False) or item.is_symlink():
        return "file"
    return "directory" if item.is_dir(follow_symlinks=False) else "special"
