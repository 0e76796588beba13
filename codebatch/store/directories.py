"""Directories below a root, entered part by part and never through a symbolic link.

Everything in a source tree is looked at relative to an open directory. So a path may be longer than PATH_MAX, and a
directory that somebody swaps for a link to elsewhere while we look cannot lead us out of the tree.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

_HELD_MAX = 64
_FLAGS = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A directory that may be searched but not read can be entered all the same.
_FLAGS_TO_SEARCH = getattr(os, "O_PATH", os.O_RDONLY) | _FLAGS


class Directories:
    """Descriptors of the directory entered last and of its parents, at most 64 of them. A context manager."""

    def __init__(self, base: bytes) -> None:
        """Raises OSError where the base is no directory."""
        self._base = _open(base)
        self._parts: list[bytes] = []
        self._fds: list[int] = []
        self._entered: tuple[bytes, int] = (b"", self._base)
        self._deep: int | None = None

    def __enter__(self) -> Directories:
        return self

    def __exit__(self, *_: object) -> None:
        self._leave_to(0)
        os.close(self._base)

    def enter(self, directory: bytes) -> int:
        """A descriptor of a directory, good until the next call; for `dir_fd` only. Empty means the base.

        Raises OSError: FileNotFoundError, NotADirectoryError (also for a symbolic link), PermissionError.
        """
        entered, fd = self._entered
        if entered == directory:
            return fd
        self._entered = (b"", self._base)
        fd = self._enter(directory.split(b"/") if directory else [])
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

    def _enter(self, parts: list[bytes]) -> int:
        common = _common_length(self._parts, parts)
        self._leave_to(common)
        fd = self._fds[-1] if self._fds else self._base
        for part in parts[common:_HELD_MAX]:
            fd = _open(part, fd)
            self._parts.append(part)
            self._fds.append(fd)
        return self._enter_deep(fd, parts[_HELD_MAX:]) if len(parts) > _HELD_MAX else fd

    def _enter_deep(self, fd: int, parts: list[bytes]) -> int:
        """Below the 64th level only the last descriptor is kept: trees that deep are rare, descriptors are few."""
        for part in parts:
            below = _open(part, fd)
            if self._deep is not None:
                os.close(self._deep)
            self._deep = fd = below
        return fd

    def _leave_to(self, depth: int) -> None:
        if self._deep is not None:
            os.close(self._deep)
        self._deep = None
        while len(self._fds) > depth:
            os.close(self._fds.pop())
            self._parts.pop()


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
