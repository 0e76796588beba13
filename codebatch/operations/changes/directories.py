"""The directories of a tree that `apply` writes to, opened one from another from the root of the tree."""

from __future__ import annotations

import errno
import os
import re
import stat
import unicodedata
import uuid
from collections.abc import Sequence

from codebatch.model.entry import display_path
from codebatch.store import layout
from codebatch.system.files.tree_writer import TreeCalls

_TEMPORARY_NAME = re.compile(rb"\.codebatch-[0-9a-f]{32}\.tmp\Z")
_RESERVED_NAMES = frozenset({".git", "git~1", layout.STORE_DIRECTORY})
_REPOSITORY_NAMES = (b"HEAD", b"objects", b"refs")
"""The names in the directory of a git repository, with or without a work tree."""
_NO_DIRECTORY_REASONS = {
    errno.ENOENT: "does not exist",
    errno.ENOTDIR: "is a file or a symbolic link",
    errno.ELOOP: "is a symbolic link",
}


class PathRefused(Exception):
    """A file that cannot be written. `reason` says why, for users."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TreeDirectories:
    """Open directories below the root of a tree: those above the last file that was reached.

    Reaching files in path order opens each directory once. `root` is an open descriptor of the root. The caller closes
    it.
    """

    def __init__(self, calls: TreeCalls, root: int) -> None:
        self._calls = calls
        self._root = root
        self._opened: list[tuple[bytes, int]] = []

    def open_parent(self, path: bytes) -> int:
        """Return the open directory that contains a file. It stays open until a file elsewhere is reached.

        Raises PathRefused if a directory above the file is not a directory of this tree.
        """
        *names, _ = path.split(b"/")
        shared = 0
        while shared < min(len(names), len(self._opened)) and self._opened[shared][0] == names[shared]:
            shared += 1
        self._close_below(shared)
        for depth in range(shared, len(names)):
            self._open_next(names[: depth + 1])
        return self._opened[-1][1] if self._opened else self._root

    def close(self) -> None:
        """Close all directories except the root."""
        self._close_below(0)

    def _open_next(self, names: Sequence[bytes]) -> None:
        parent = self._opened[-1][1] if self._opened else self._root
        shown = display_path(b"/".join(names))
        try:
            directory = self._calls.open_directory(parent, names[-1])
        except OSError as error:
            reason = _NO_DIRECTORY_REASONS.get(error.errno or 0, f"cannot be opened: {error.strerror}")
            raise PathRefused(f"directory {shown} {reason}") from error
        self._opened.append((names[-1], directory))
        try:
            is_repository = has_name(self._calls, directory, b".git") or all(
                has_name(self._calls, directory, name) for name in _REPOSITORY_NAMES
            )
        except OSError as error:
            self._close_below(len(self._opened) - 1)
            raise PathRefused(f"directory {shown} cannot be read: {error.strerror}") from error
        if is_repository:
            self._close_below(len(self._opened) - 1)
            raise PathRefused(f"directory {shown} is another repository")

    def _close_below(self, depth: int) -> None:
        while len(self._opened) > depth:
            self._calls.close(self._opened.pop()[1])


def has_reserved_name(path: bytes) -> bool:
    """Return whether a component of a path names a directory of git or of codebatch, or a temporary file of `apply`.

    Some file systems ignore case, characters that are not displayed, or dots and spaces at the end of a name.
    """
    for component in path.split(b"/"):
        if _TEMPORARY_NAME.match(component):
            return True
        text = unicodedata.normalize("NFKC", component.decode("utf-8", "replace"))
        shown = "".join(character for character in text if unicodedata.category(character) != "Cf")
        if shown.partition(":")[0].rstrip(". ").casefold() in _RESERVED_NAMES:
            return True
    return False


def new_temporary_name() -> bytes:
    """Return a new name of a temporary file of `apply`."""
    return f".codebatch-{uuid.uuid4().hex}.tmp".encode()


def remove_temporary_files(calls: TreeCalls, directory: int) -> None:
    """Remove temporary files in a directory that a killed `apply` left. No other `apply` may run in this tree."""
    for name in calls.names(directory):
        if _TEMPORARY_NAME.match(name) and is_own_file(calls.status(directory, name)):
            calls.unlink(directory, name)


def is_own_file(status: os.stat_result) -> bool:
    """Return whether an entry is a regular file of this user."""
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def has_name(calls: TreeCalls, directory: int, name: bytes) -> bool:
    """Return whether a directory has an entry. Raises OSError if this is unknown."""
    try:
        calls.status(directory, name)
    except FileNotFoundError:
        return False
    return True
