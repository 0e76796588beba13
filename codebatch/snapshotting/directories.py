"""Directories below a root, entered part by part and never through a symbolic link.

Everything in a source tree is looked at relative to an open directory. So a path may be longer than PATH_MAX, and a
directory that somebody swaps for a link to elsewhere while we look cannot lead us out of the tree.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

_HELD_MAX = 64
_OUTSIDE = (b"", b".", b"..")
_FLAGS = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A directory that may be searched but not read can be entered all the same.
_FLAGS_TO_SEARCH = getattr(os, "O_PATH", os.O_RDONLY) | _FLAGS


class Directories:
    """Descriptors of the directory entered last and of its parents: the top 64 and the lowest 64. A context manager."""

    def __init__(self, base: bytes) -> None:
        """Raises OSError where the base is no directory."""
        self._base = _open(base)
        self._parts: list[bytes] = []
        self._fds: list[int | None] = []
        self._entered: tuple[bytes, int] = (b"", self._base)

    def __enter__(self) -> Directories:
        return self

    def __exit__(self, *_: object) -> None:
        self._leave_to(0)
        os.close(self._base)

    def enter(self, directory: bytes) -> int:
        """A descriptor of a directory, good until the next call; for `dir_fd` only. Empty means the base.

        Raises OSError: FileNotFoundError (also for `..`, whatever is there), NotADirectoryError (also for a symbolic
        link), PermissionError.
        """
        entered, fd = self._entered
        if entered == directory:
            return fd
        self._entered = (b"", self._base)
        if entered and directory.startswith(entered + b"/"):
            fd = self._descend(fd, directory[len(entered) + 1 :].split(b"/"))
        else:
            parts = directory.split(b"/") if directory else []
            self._leave_to(_common_length(self._parts, parts))
            fd = self._descend(self._nearest_held(), parts[len(self._parts) :])
        self._entered = (directory, fd)
        return fd

    def scan(self, directory: bytes) -> Iterator[os.DirEntry[str]]:
        """What is in a directory. To be read to its end before the next call. Raises OSError as `enter` does."""
        fd = self.enter(directory)
        try:
            with os.scandir(fd) as found:
                yield from found
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from error

    def _descend(self, fd: int, parts: list[bytes]) -> int:
        for part in parts:
            if part in _OUTSIDE:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), part)
            fd = _open(part, fd)
            self._parts.append(part)
            self._fds.append(fd)
            self._let_go(len(self._fds) - 1 - _HELD_MAX)
        return fd

    def _let_go(self, level: int) -> None:
        """Close the descriptor of a level in the middle: descriptors are few, and who goes up goes by single steps."""
        if level >= _HELD_MAX and (fd := self._fds[level]) is not None:
            os.close(fd)
            self._fds[level] = None

    def _nearest_held(self) -> int:
        """The descriptor of the lowest level that has one; what is below it is left."""
        while self._fds and self._fds[-1] is None:
            self._leave_to(len(self._fds) - 1)
        return self._base if not self._fds or self._fds[-1] is None else self._fds[-1]

    def _leave_to(self, depth: int) -> None:
        while len(self._fds) > depth:
            fd = self._fds.pop()
            self._parts.pop()
            if fd is not None:
                os.close(fd)


def _open(name: bytes, parent: int | None = None) -> int:
    try:
        return os.open(name, os.O_RDONLY | _FLAGS, dir_fd=parent)
    except PermissionError:
        return os.open(name, _FLAGS_TO_SEARCH, dir_fd=parent)


def _common_length(left: list[bytes], right: list[bytes]) -> int:
    """How many leading parts two paths share."""
    length = 0
    for one, other in zip(left, right):  # noqa: B905 - the shorter one ends it
        if one != other:
            break
        length += 1
    return length
