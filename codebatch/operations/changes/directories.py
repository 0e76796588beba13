"""The directories of a tree that `apply` writes to, opened one from another from the root of the tree."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import uuid
from collections.abc import Container, Iterable, Sequence
from functools import partial

from codebatch.model.entry import display_path
from codebatch.operations.changes.judgement import PathRefused
from codebatch.store.reserved_names import TEMPORARY_NAME, is_repository
from codebatch.system.files.tree_writer import TreeCalls

_NO_DIRECTORY_REASONS = {
    errno.ENOENT: "does not exist",
    errno.ENOTDIR: "is a file or a symbolic link",
    errno.ELOOP: "is a symbolic link",
}


class _DirectoryAbsent(PathRefused):
    """A path above a file with no directory there. `is_free`: nothing else is there either."""

    def __init__(self, path: bytes, reason: str, *, is_free: bool) -> None:
        super().__init__(reason)
        self.path = path
        self.is_free = is_free


class TreeDirectories:
    """Open directories below the root of a tree: those above the last file that was reached.

    Reaching files in path order opens each directory once. `root` is an open descriptor of the root. The caller closes
    it. `made` has the paths of the directories that were made.
    """

    def __init__(self, calls: TreeCalls, root: int) -> None:
        self._calls = calls
        self.root = root
        self.made: list[bytes] = []
        self._opened: list[tuple[bytes, int]] = []

    def open_parent(self, path: bytes, *, make: bool = False) -> int:
        """Return the open directory that contains a file. It stays open until a file elsewhere is reached.

        With `make`, missing directories are made. Raises PathRefused if a directory above the file is not a directory
        of this tree, and OSError if it cannot be made.
        """
        *names, _ = path.split(b"/")
        shared = 0
        while shared < min(len(names), len(self._opened)) and self._opened[shared][0] == names[shared]:
            shared += 1
        self._close_below(shared)
        for depth in range(shared, len(names)):
            self._open_next(names[: depth + 1], make=make)
        return self._last()

    def open_nearest(self, path: bytes, replaced: Container[bytes], *, make: bool = False) -> tuple[int, bytes]:
        """Return the open directory that is nearest to a file, and its path with a slash (the root: empty).

        This is the directory that contains the file, or if that is missing, the nearest one above. Files and links at
        the paths `replaced` count as missing directories, which are not made. Raises the errors of `open_parent`.
        """
        try:
            return self.open_parent(path, make=make), path[: path.rfind(b"/") + 1]
        except _DirectoryAbsent as error:
            if not error.is_free and error.path not in replaced:
                raise
            return self._last(), b"".join(name + b"/" for name, _ in self._opened)

    def open_above(self, path: bytes) -> int:
        """Return the open directory that contains a file and is above the last file that was reached."""
        depth = path.count(b"/")
        return self._opened[depth - 1][1] if depth else self.root

    def exists(self, path: bytes) -> bool:
        """Return whether there is an entry at a path, in real directories of this tree. Raises OSError if unknown."""
        try:
            return has_name(self._calls, self.open_parent(path), path.rpartition(b"/")[2])
        except PathRefused:
            return False

    def has_only(self, path: bytes, files: Container[bytes], directories: Container[bytes]) -> bool:
        """Return whether a directory has no entries except those at given paths. Raises PathRefused, OSError."""
        prefix = path + b"/"
        directory = self.open_parent(prefix)
        below = []
        for name in self._calls.names(directory):
            if prefix + name in directories and stat.S_ISDIR(self._calls.status(directory, name).st_mode):
                below.append(prefix + name)
            elif prefix + name not in files:
                return False
        return all(self.has_only(each, files, directories) for each in below)

    def remove_empty(self, paths: Iterable[bytes]) -> None:
        """Remove those of some directories that are empty, or become empty by this. Errors are ignored."""
        for path in sorted({*paths}, reverse=True):
            with contextlib.suppress(PathRefused, OSError):
                self._calls.rmdir(self.open_parent(path), path.rpartition(b"/")[2])

    def close(self) -> None:
        """Close all directories except the root."""
        self._close_below(0)

    def _last(self) -> int:
        return self._opened[-1][1] if self._opened else self.root

    def _open_next(self, names: Sequence[bytes], *, make: bool) -> None:
        parent, path = self._last(), b"/".join(names)
        shown = display_path(path)
        if make and not has_name(self._calls, parent, names[-1]):
            with contextlib.suppress(FileExistsError):
                self._calls.mkdir(parent, names[-1])
                self.made.append(path)
        try:
            directory = self._calls.open_directory(parent, names[-1])
        except OSError as error:
            if error.errno not in _NO_DIRECTORY_REASONS:
                raise PathRefused(f"directory {shown} cannot be opened: {error.strerror}") from error
            reason = f"directory {shown} {_NO_DIRECTORY_REASONS[error.errno]}"
            raise _DirectoryAbsent(path, reason, is_free=error.errno == errno.ENOENT) from error
        self._opened.append((names[-1], directory))
        try:
            is_other = is_repository(partial(has_name, self._calls, directory))
        except OSError as error:
            self._close_below(len(self._opened) - 1)
            raise PathRefused(f"directory {shown} cannot be read: {error.strerror}") from error
        if is_other:
            self._close_below(len(self._opened) - 1)
            raise PathRefused(f"directory {shown} is another repository")

    def _close_below(self, depth: int) -> None:
        while len(self._opened) > depth:
            self._calls.close(self._opened.pop()[1])


def new_temporary_name() -> bytes:
    """Return a new name of a temporary file of `apply`."""
    return f".codebatch-{uuid.uuid4().hex}.tmp".encode()


def remove_temporary_files(calls: TreeCalls, directory: int) -> None:
    """Remove temporary files in a directory that a killed `apply` left. No other `apply` may run in this tree."""
    for name in calls.names(directory):
        if TEMPORARY_NAME.match(name) and is_own_file(calls.status(directory, name)):
            calls.unlink(directory, name)


def is_own_file(status: os.stat_result) -> bool:
    """Return whether an entry is a regular file or a symbolic link of this user."""
    return (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)) and status.st_uid == os.geteuid()


def has_name(calls: TreeCalls, directory: int, name: bytes) -> bool:
    """Return whether a directory has an entry. Raises OSError if this is unknown."""
    try:
        calls.status(directory, name)
    except FileNotFoundError:
        return False
    return True


def read_tree_link(calls: TreeCalls, root: int, path: bytes) -> bytes | None:
    """Return the target of a link at a path, or None if another entry is there. The directories above are real ones."""
    *above, name = path.split(b"/")
    opened: list[int] = []
    try:
        for directory in above:
            opened.append(calls.open_directory(opened[-1] if opened else root, directory))
        parent = opened[-1] if opened else root
        is_link = stat.S_ISLNK(calls.status(parent, name).st_mode)
        return calls.read_link(parent, name) if is_link else None
    except (FileNotFoundError, NotADirectoryError):
        return None
    finally:
        for fd in opened:
            with contextlib.suppress(OSError):
                calls.close(fd)
