"""Directory descriptors below a root, opened component by component without following symbolic links.

Every access to a source tree is relative to an open directory. So a path may be longer than PATH_MAX. If another
process replaces a directory by a symbolic link during the access, the link is not followed, so the access cannot leave
the tree.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from codebatch.model.nearest_directories import common_length

_OPEN_MAX = 64
_PARTS_LEAVING_BASE = (b"", b".", b"..")
_OPEN_FLAGS = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_PATH can open a directory that has search permission but no read permission.
_SEARCH_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | _OPEN_FLAGS


class DirectoryDescriptors:
    """A cache of open directory descriptors: of the directory that was entered last, and of its parents.

    A context manager. At most 128 descriptors stay open: those of the 64 highest and the 64 lowest levels.
    """

    def __init__(self, base: bytes) -> None:
        """Open the base. Raises OSError if it is not a directory."""
        self._base = _open_directory_at(base)
        self._parts: list[bytes] = []
        self._fds: list[int | None] = []
        self._entered: tuple[bytes, int] = (b"", self._base)

    def __enter__(self) -> DirectoryDescriptors:
        return self

    def __exit__(self, *_: object) -> None:
        self._close_below(0)
        os.close(self._base)

    def open_directory(self, directory: bytes) -> int:
        """Return a descriptor of a directory, for use as `dir_fd`. An empty path means the base.

        The descriptor is valid until the next call. Raises FileNotFoundError, also if the path contains `..`;
        NotADirectoryError, also for a symbolic link; PermissionError; or another OSError.
        """
        entered, fd = self._entered
        if entered == directory:
            return fd
        self._entered = (b"", self._base)
        if entered and directory.startswith(entered + b"/"):
            fd = self._open_below(fd, directory[len(entered) + 1 :].split(b"/"))
        else:
            parts = directory.split(b"/") if directory else []
            self._close_below(common_length(self._parts, parts))
            fd = self._open_below(self._deepest_open(), parts[len(self._parts) :])
        self._entered = (directory, fd)
        return fd

    def scan_directory(self, directory: bytes) -> Iterator[os.DirEntry[str]]:
        """Yield the entries of a directory. Raises OSError like `enter`.

        Consume all entries before you call another method.
        """
        fd = self.open_directory(directory)
        try:
            with os.scandir(fd) as entries:
                yield from entries
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from error

    def _open_below(self, fd: int, parts: list[bytes]) -> int:
        for part in parts:
            if part in _PARTS_LEAVING_BASE:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), part)
            fd = _open_directory_at(part, fd)
            self._parts.append(part)
            self._fds.append(fd)
            self._close_level(len(self._fds) - 1 - _OPEN_MAX)
        return fd

    def _close_level(self, level: int) -> None:
        """Close the descriptor of a level in the middle, to limit the number of open descriptors.

        The lowest levels stay open, because a traversal goes back up level by level.
        """
        if level >= _OPEN_MAX and (fd := self._fds[level]) is not None:
            os.close(fd)
            self._fds[level] = None

    def _deepest_open(self) -> int:
        """Return the descriptor of the deepest open level, and remove all levels below it."""
        while self._fds and self._fds[-1] is None:
            self._close_below(len(self._fds) - 1)
        return self._base if not self._fds or self._fds[-1] is None else self._fds[-1]

    def _close_below(self, depth: int) -> None:
        while len(self._fds) > depth:
            fd = self._fds.pop()
            self._parts.pop()
            if fd is not None:
                os.close(fd)


def _open_directory_at(name: bytes, parent: int | None = None) -> int:
    try:
        return os.open(name, os.O_RDONLY | _OPEN_FLAGS, dir_fd=parent)
    except PermissionError:
        return os.open(name, _SEARCH_FLAGS, dir_fd=parent)
