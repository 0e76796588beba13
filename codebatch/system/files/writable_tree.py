"""Files of a tree that codebatch itself makes, below one directory. No symbolic link is followed, so the content of the
tree cannot lead to a place outside.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class TreeFileContent(NamedTuple):
    """A file of a tree. If it is a link, the content is its target."""

    content: bytes
    is_link: bool
    is_executable: bool


class WritableTree:
    """The files below a directory. Paths are relative to this directory and safe (`is_safe_path`).

    A context manager. Every method raises OSError as the system does.
    """

    def __init__(self, root: bytes) -> None:
        """Open the directory."""
        self._root = os.open(root, _DIRECTORY_FLAGS)
        self._directory, self._descriptor = b"", self._root

    def __enter__(self) -> WritableTree:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: TracebackType | None) -> None:
        self._leave()
        os.close(self._root)

    def read(self, path: bytes) -> TreeFileContent | None:
        """Return a file or link, or None if neither exists at the path. A directory raises IsADirectoryError."""
        mode = self._mode(path)
        if mode is None:
            return None
        parent, name = self._open_parent(path, create=False)
        if stat.S_ISLNK(mode):
            return TreeFileContent(os.readlink(name, dir_fd=parent), is_link=True, is_executable=False)
        if not stat.S_ISREG(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        with open(os.open(name, _READ_FLAGS, dir_fd=parent), "rb") as file:
            return TreeFileContent(file.read(), is_link=False, is_executable=bool(mode & stat.S_IXUSR))

    def write(self, path: bytes, file: TreeFileContent) -> None:
        """Write a file or link in place of the present one. Missing directories above it are made."""
        parent, name = self._open_parent(path, create=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=parent)
        if file.is_link:
            os.symlink(file.content, name, dir_fd=parent)
            return
        descriptor = os.open(name, _CREATE_FLAGS, 0o777 if file.is_executable else 0o666, dir_fd=parent)
        try:
            view = memoryview(file.content)
            while view:
                view = view[os.write(descriptor, view) :]
        finally:
            os.close(descriptor)

    def remove(self, path: bytes) -> None:
        """Remove a file or link, then the directories above it that are empty."""
        parent, name = self._open_parent(path, create=False)
        os.unlink(name, dir_fd=parent)
        directory = path
        while directory := directory.rpartition(b"/")[0]:
            above, name = self._open_parent(directory, create=False)
            try:
                os.rmdir(name, dir_fd=above)
            except OSError:
                return

    def exists(self, path: bytes) -> bool:
        """Return whether anything exists at a path, even a directory or a broken link."""
        return self._mode(path) is not None

    def is_link(self, path: bytes) -> bool:
        """Return whether a link exists at a path."""
        mode = self._mode(path)
        return mode is not None and stat.S_ISLNK(mode)

    def _mode(self, path: bytes) -> int | None:
        try:
            parent, name = self._open_parent(path, create=False)
            return os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _open_parent(self, path: bytes, *, create: bool) -> tuple[int, bytes]:
        """Return a descriptor of the directory above a path, valid until the next call, and the last name."""
        directory, _, name = path.rpartition(b"/")
        if directory != self._directory:
            self._leave()
            descriptor = self._root
            try:
                for part in directory.split(b"/") if directory else ():
                    below = _open_directory(part, descriptor, create=create)
                    self._close(descriptor)
                    descriptor = below
            except OSError:
                self._close(descriptor)
                raise
            self._directory, self._descriptor = directory, descriptor
        return self._descriptor, name

    def _leave(self) -> None:
        self._close(self._descriptor)
        self._directory, self._descriptor = b"", self._root

    def _close(self, descriptor: int) -> None:
        if descriptor != self._root:
            os.close(descriptor)


def _open_directory(name: bytes, parent: int, *, create: bool) -> int:
    if create:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=parent)
    return os.open(name, _DIRECTORY_FLAGS, dir_fd=parent)


def remove_any_tree(root: Path) -> None:
    """Remove a directory with any content, or a link in its place. Links are not followed. Raises OSError.

    Programs may have taken the permissions of directories from their owner. These are set again.
    """
    if root.is_symlink():
        root.unlink()
        return
    shutil.rmtree(root, ignore_errors=True)
    if not root.is_dir():
        return
    restore_permissions(root)
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(root)


def restore_permissions(root: Path) -> None:
    """Give the owner the permissions to read all files and to change all directories of a tree. Raises OSError.

    Programs may have taken these permissions. Links are not followed.
    """
    _add_permissions(os.fspath(root))
    for path, names, files in os.walk(root):
        for name in (*names, *files):
            _add_permissions(os.path.join(path, name))


def _add_permissions(path: str) -> None:
    mode = os.lstat(path).st_mode
    needed = stat.S_IRWXU if stat.S_ISDIR(mode) else stat.S_IRUSR if stat.S_ISREG(mode) else 0
    if mode & needed != needed:
        os.chmod(path, stat.S_IMODE(mode) | needed)
