"""The system calls by which files are implemented. Tests replace this class to inject faults.

A confined root is a directory that was passed to `confine`, usually the root of a store. Below it, no symbolic link is
ever followed (SPEC.md "Threat model"). To reach a path, each directory from the root down is opened relative to its
parent with O_NOFOLLOW. The system call then acts relative to the last directory.

By default no descriptor stays open between two calls, because a task in this process may close any descriptor.
Processes that run no foreign code can keep directories open.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

FILE_MODE = 0o666
SHARED_MODE = 0o777
PRIVATE_MODE = 0o700
_DIRECTORY_FLAGS = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CONFINED_FILE_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
# O_PATH can open a directory that has search permission but no read permission.
_SEARCH_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | _DIRECTORY_FLAGS


class SystemCalls(Protocol):
    """System calls by their names.

    Every method raises OSError as the system does. New descriptors are close-on-exec.
    """

    def confine(self, root: Path) -> None:
        """Confine access below a root: from now on, no symbolic link below this directory is followed.

        A link in a path below the root, or at its end, is the error ELOOP. A path that is neither in a confined root
        nor above one is the error EXDEV, as in openat2(2). This method makes no system call.
        """

    def keeping_open(self, *directories: Path) -> AbstractContextManager[None]:
        """Keep descriptors of directories inside the `with`, and access their files relative to them.

        If another directory takes the path of an open one, files are still accessed in the open one. If an open
        directory is removed, this is detected when a name is not found in it. Use this only in processes that run no
        code that may close descriptors.
        """

    def open(self, path: Path | str, flags: int) -> int:
        """open(2) with mode 0666, to which the umask applies.

        Below a root that was passed to `confine`, O_NONBLOCK is added, so that opening a FIFO does not wait.
        """

    def close(self, fd: int) -> None:
        """close(2)."""

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """write(2). Returns the number of bytes written, which may be fewer than given."""

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        """pread(2)."""

    def ftruncate(self, fd: int, length: int) -> None:
        """ftruncate(2)."""

    def fsync(self, fd: int) -> None:
        """fsync(2), of a file or a directory."""

    def sync_directory(self, path: Path) -> None:
        """open(2), fsync(2) and close(2) of a directory.

        If the directory is kept open (`keeping_open`), only fsync(2).
        """

    def fstat(self, fd: int) -> os.stat_result:
        """fstat(2)."""

    def stat(self, path: Path | str) -> os.stat_result:
        """stat(2). Below a root that was passed to `confine`, lstat(2)."""

    def listing(self, path: Path) -> dict[str, int]:
        """getdents(2). Maps every name in a directory to its inode, unordered."""

    def lengths(self, path: Path) -> dict[str, int]:
        """getdents(2), and lstat(2) of each entry. Maps the name of each regular file to its size."""

    def mkdir(self, path: Path, mode: int = SHARED_MODE) -> None:
        """mkdir(2)."""

    def link(self, source: Path | str, path: Path | str) -> None:
        """link(2). If `source` is a symbolic link, the new name is a hard link to the symbolic link itself."""

    def symlink(self, target: str, path: Path) -> None:
        """symlink(2)."""

    def rename(self, source: Path, path: Path) -> None:
        """rename(2)."""

    def unlink(self, path: Path | str) -> None:
        """unlink(2)."""

    def remove_tree(self, path: Path) -> None:
        """unlink(2) and rmdir(2) of a directory and everything below it."""

    def flock(self, fd: int, operation: int) -> None:
        """flock(2)."""


class _SystemPath:
    """The arguments of a system call that acts on a path: a name, and the descriptor of the directory that contains it.

    If `is_below_root` is set, the descriptor is closed on exit. This is a class and not a generator context manager,
    because a generator is slower, and each attempt of a command needs dozens of calls.
    """

    __slots__ = ("_drop_if_removed", "is_below_root", "is_confined", "name", "parent")

    def __init__(
        self,
        name: str,
        parent: int | None,
        *,
        is_confined: bool,
        is_ours: bool = False,
        drop_if_removed: Callable[[int], None] | None = None,
    ) -> None:
        """Store the arguments.

        `drop_if_removed` is called if the name is not found, because the open directory may have been removed.
        """
        self.name = name
        self.parent = parent
        self.is_confined = is_confined
        self.is_below_root = is_ours
        self._drop_if_removed = drop_if_removed

    def __enter__(self) -> _SystemPath:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if self.parent is None:
            return
        if self.is_below_root:
            os.close(self.parent)
        elif self._drop_if_removed is not None and isinstance(error, FileNotFoundError):
            self._drop_if_removed(self.parent)


class RealCalls:
    """System calls of the operating system."""

    close = staticmethod(os.close)
    write = staticmethod(os.write)
    pread = staticmethod(os.pread)
    ftruncate = staticmethod(os.ftruncate)
    fsync = staticmethod(os.fsync)
    fstat = staticmethod(os.fstat)
    flock = staticmethod(fcntl.flock)

    def __init__(self) -> None:
        self._roots: tuple[str, ...] = ()
        self._open_directories: dict[str, int] = {}

    @contextlib.contextmanager
    def keeping_open(self, *directories: Path) -> Iterator[None]:
        opened: dict[str, int] = {}
        try:
            for directory in directories:
                # A directory that is missing or cannot be opened is not kept open: its files are accessed by their
                # paths.
                with contextlib.suppress(OSError), self._resolve_path(directory) as at:
                    if at.is_confined:
                        opened[os.fspath(directory)] = _open_directory(at.name, at.parent)
            self._open_directories |= opened
            yield
        finally:
            self._open_directories = {path: fd for path, fd in self._open_directories.items() if path not in opened}
            for fd in opened.values():
                os.close(fd)

    def confine(self, root: Path) -> None:
        self._roots = tuple({*self._roots, os.fspath(root)})

    def open(self, path: Path | str, flags: int) -> int:
        path_text = os.fspath(path)
        # A fast path, because a batch opens tens of thousands of files in directories that are kept open.
        if self._open_directories:
            above, _, name = path_text.rpartition("/")
            if (descriptor := self._open_descriptor(path_text)) is not None:
                return _open_at(".", flags | _CONFINED_FILE_FLAGS, descriptor)
            if name != ".." and (descriptor := self._open_directories.get(above)) is not None:
                try:
                    return _open_at(name, flags | _CONFINED_FILE_FLAGS, descriptor)
                except FileNotFoundError:
                    self._drop_if_removed(descriptor)
                    raise
        with self._resolve_path(path_text) as at:
            return _open_at(at.name, flags | (_CONFINED_FILE_FLAGS if at.is_confined else os.O_CLOEXEC), at.parent)

    def sync_directory(self, path: Path) -> None:
        if (descriptor := self._open_descriptor(os.fspath(path))) is not None:
            try:
                os.fsync(descriptor)
            except OSError as error:
                # The permissions allow searching the directory, but not reading it, so it was opened with O_PATH.
                if error.errno != errno.EBADF:
                    raise
            else:
                return
        open_and_sync_directory(self, path)

    def stat(self, path: Path | str) -> os.stat_result:
        with self._resolve_path(path) as at:
            return os.stat(at.name, dir_fd=at.parent, follow_symlinks=not at.is_confined)

    def listing(self, path: Path) -> dict[str, int]:
        fd = self.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(fd) as items:
                return {item.name: item.inode() for item in items}
        finally:
            os.close(fd)

    def lengths(self, path: Path) -> dict[str, int]:
        fd = self.open(path, os.O_RDONLY | os.O_DIRECTORY)
        sizes: dict[str, int] = {}
        try:
            with os.scandir(fd) as items:
                for item in items:
                    with contextlib.suppress(FileNotFoundError):
                        if item.is_file(follow_symlinks=False):
                            sizes[item.name] = item.stat(follow_symlinks=False).st_size
            return sizes
        finally:
            os.close(fd)

    def mkdir(self, path: Path, mode: int = SHARED_MODE) -> None:
        with self._resolve_path(path) as at:
            os.mkdir(at.name, mode, dir_fd=at.parent)

    def link(self, source: Path | str, path: Path | str) -> None:
        with self._resolve_path(source) as old, self._resolve_path(path) as new:
            os.link(old.name, new.name, src_dir_fd=old.parent, dst_dir_fd=new.parent, follow_symlinks=False)

    def symlink(self, target: str, path: Path) -> None:
        with self._resolve_path(path) as at:
            os.symlink(target, at.name, dir_fd=at.parent)

    def rename(self, source: Path, path: Path) -> None:
        with self._resolve_path(source) as old, self._resolve_path(path) as new:
            os.rename(old.name, new.name, src_dir_fd=old.parent, dst_dir_fd=new.parent)

    def unlink(self, path: Path | str) -> None:
        with self._resolve_path(path) as at:
            os.unlink(at.name, dir_fd=at.parent)

    def remove_tree(self, path: Path) -> None:
        with self._resolve_path(path) as at:
            fd = _open_at(at.name, os.O_RDONLY | _DIRECTORY_FLAGS, at.parent)
            try:
                while directories := _remove_files(fd):
                    for directory in directories:
                        _remove_and_lift_subdirectories(directory, fd)
            finally:
                os.close(fd)
            os.rmdir(at.name, dir_fd=at.parent)

    def _resolve_path(self, path: Path | str) -> _SystemPath:
        """Return the arguments with which to call a path. Below a confined root, no link is followed."""
        path_text = os.fspath(path)
        above, _, name = path_text.rpartition("/")
        if name != ".." and (descriptor := self._open_directories.get(above)) is not None:
            return _SystemPath(name, descriptor, is_confined=True, drop_if_removed=self._drop_if_removed)
        root = next((root for root in self._roots if path_text.startswith(root + "/")), None)
        first, *components = path_text[len(root) + 1 :].split("/") if root else [""]
        if first == ".." or ".." in components or (root is None and self._is_outside_roots(path_text)):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path_text)
        if root is None or not components:
            return _SystemPath(path_text, None, is_confined=root is not None)
        descriptor, below = self._nearest_open_ancestor(path_text) if self._open_directories else (None, [])
        *directories, name = below or components
        fd = (
            _open_at(f"{root}/{first}", _SEARCH_FLAGS, None)
            if descriptor is None
            else _open_at(directories.pop(0), _SEARCH_FLAGS, descriptor)
        )
        try:
            for directory in directories:
                above_fd, fd = fd, _open_at(directory, _SEARCH_FLAGS, fd)
                os.close(above_fd)
        except BaseException:
            os.close(fd)
            raise
        return _SystemPath(name, fd, is_confined=True, is_ours=True)

    def _drop_if_removed(self, directory: int) -> None:
        """Stop using a directory that is kept open if it was removed: it may be created again at the same path."""
        if os.fstat(directory).st_nlink == 0:
            self._open_directories = {
                path: descriptor for path, descriptor in self._open_directories.items() if descriptor != directory
            }

    def _open_descriptor(self, path: str) -> int | None:
        """Return the descriptor of a directory that is kept open. None if it is not kept open or was removed."""
        descriptor = self._open_directories.get(path)
        if descriptor is not None:
            self._drop_if_removed(descriptor)
        return self._open_directories.get(path)

    def _nearest_open_ancestor(self, path: str) -> tuple[int | None, list[str]]:
        """Return the descriptor of the nearest ancestor of a path that is kept open, and the rest of the path.

        The rest is a list of names. The descriptor is None if no ancestor is kept open.
        """
        below: list[str] = []
        while path:
            path, _, name = path.rpartition("/")
            below.insert(0, name)
            if (descriptor := self._open_directories.get(path)) is not None:
                return descriptor, below
        return None, []

    def _is_outside_roots(self, path: str) -> bool:
        """Return whether a path is neither in a confined root nor above one.

        Paths in documents are untrusted and may be absolute.
        """
        return bool(self._roots) and not any(f"{root}/".startswith(f"{path.rstrip('/')}/") for root in self._roots)


def open_and_sync_directory(calls: SystemCalls, path: Path) -> None:
    """Sync the names in a directory to disk, by open(2), fsync(2) and close(2). Raises OSError."""
    fd = calls.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        calls.fsync(fd)
    finally:
        calls.close(fd)


def _open_directory(name: str, parent: int | None) -> int:
    """Open a directory for reading. If its permissions do not allow this, open it with O_PATH, for searching only."""
    try:
        return _open_at(name, os.O_RDONLY | _DIRECTORY_FLAGS, parent)
    except PermissionError:
        return _open_at(name, _SEARCH_FLAGS, parent)


def _open_at(name: str, flags: int, parent: int | None) -> int:
    """Call openat(2). For a symbolic link in place of a directory, raise ELOOP, although the system raises ENOTDIR."""
    try:
        return os.open(name, flags, FILE_MODE, dir_fd=parent)
    except NotADirectoryError:
        if flags & os.O_NOFOLLOW and stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


def _remove_files(directory: int) -> list[str]:
    """Remove all files in a directory. Return the names of its subdirectories, which stay."""
    directories = []
    with os.scandir(directory) as entries:
        items = list(entries)
    for item in items:
        if item.is_dir(follow_symlinks=False):
            directories.append(item.name)
        else:
            os.unlink(item.name, dir_fd=directory)
    return directories


def _remove_and_lift_subdirectories(name: str, parent: int) -> None:
    """Remove a directory after moving its subdirectories into its parent.

    Because subdirectories move up, removing a tree of any depth needs a constant number of descriptors and stack
    frames.
    """
    fd = _open_at(name, os.O_RDONLY | _DIRECTORY_FLAGS, parent)
    try:
        for below in _remove_files(fd):
            os.rename(below, uuid.uuid4().hex, src_dir_fd=fd, dst_dir_fd=parent)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=parent)
