"""The calls of the operating system that files are made of, and nothing else: the seam at which tests inject faults.

`codebatch.testing` has a twin with a disk in memory, and a wrapper that watches, fails or stops any call.

Below a root that was confined no symbolic link is followed, whoever made it and whenever: the real calls go from the
root down, directory by directory, each opened relative to the one above with O_NOFOLLOW, and do what they do relative
to the last (SPEC.md "Threat model"). No descriptor is kept between two calls, for a task may close any, but by who asks
for it: a process that runs no code of others.
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

FILE_MODE = 0o644
SHARED_MODE = 0o777
PRIVATE_MODE = 0o700
_ENTERED = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CONFINED = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
# A directory that may be searched but not read can be entered all the same.
_PASSED = getattr(os, "O_PATH", os.O_RDONLY) | _ENTERED


class SystemCalls(Protocol):
    """System calls by their names; every one raises OSError as the system does. Descriptors are close-on-exec."""

    def confine(self, root: Path) -> None:
        """From now on follow no link below a root: one on the way, or a file that is one, is ELOOP. No system call.

        A path that leads out of all roots that were confined, and to none of them, is EXDEV, as openat2(2) has it.
        """

    def keeping_open(self, *directories: Path) -> AbstractContextManager[None]:
        """For that time, go to what is in these directories from descriptors of them. No system call but to get them.

        What takes the place of one meanwhile is not seen, but of one that was removed, once something is not found in
        it. Only for who runs no code that may close descriptors.
        """

    def open(self, path: Path | str, flags: int) -> int:
        """open(2) with mode 0644; below a confined root also O_NONBLOCK, so that it does not wait at a FIFO."""

    def close(self, fd: int) -> None:
        """close(2)."""

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """write(2): how many bytes were taken, perhaps not all."""

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        """pread(2)."""

    def ftruncate(self, fd: int, length: int) -> None:
        """ftruncate(2)."""

    def fsync(self, fd: int) -> None:
        """fsync(2), of a file or a directory."""

    def sync_directory(self, path: Path) -> None:
        """open(2), fsync(2) and close(2) of a directory; fsync(2) alone of one that is kept open."""

    def fstat(self, fd: int) -> os.stat_result:
        """fstat(2)."""

    def stat(self, path: Path | str) -> os.stat_result:
        """stat(2); lstat(2) below a confined root."""

    def listing(self, path: Path) -> dict[str, int]:
        """Every name in a directory, in no order, and the inode behind it: getdents(2)."""

    def lengths(self, path: Path) -> dict[str, int]:
        """How long each plain file in a directory is: getdents(2), and lstat(2) of each."""

    def mkdir(self, path: Path, mode: int = SHARED_MODE) -> None:
        """mkdir(2)."""

    def link(self, source: Path | str, path: Path | str) -> None:
        """link(2). A link is not followed but gets a further name."""

    def symlink(self, target: str, path: Path) -> None:
        """symlink(2)."""

    def rename(self, source: Path, path: Path) -> None:
        """rename(2)."""

    def unlink(self, path: Path | str) -> None:
        """unlink(2)."""

    def remove_tree(self, path: Path) -> None:
        """unlink(2) and rmdir(2) of a directory and all below it."""

    def flock(self, fd: int, operation: int) -> None:
        """flock(2)."""


class _SystemPath:
    """A path as the system is called with it: a name, relative to a directory, which is closed behind it if `is_ours`.

    A class, for there are dozens in each attempt of a command.
    """

    __slots__ = ("_forget", "is_confined", "is_ours", "name", "parent")

    def __init__(
        self,
        name: str,
        parent: int | None,
        *,
        is_confined: bool,
        is_ours: bool = False,
        forget: Callable[[int], None] | None = None,
    ) -> None:
        """`forget` is called where the name is not there: the directory, kept from before, may not be either."""
        self.name = name
        self.parent = parent
        self.is_confined = is_confined
        self.is_ours = is_ours
        self._forget = forget

    def __enter__(self) -> _SystemPath:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if self.parent is None:
            return
        if self.is_ours:
            os.close(self.parent)
        elif self._forget is not None and isinstance(error, FileNotFoundError):
            self._forget(self.parent)


class RealCalls:
    """The operating system's own."""

    close = staticmethod(os.close)
    write = staticmethod(os.write)
    pread = staticmethod(os.pread)
    ftruncate = staticmethod(os.ftruncate)
    fsync = staticmethod(os.fsync)
    fstat = staticmethod(os.fstat)
    flock = staticmethod(fcntl.flock)

    def __init__(self) -> None:
        self._roots: tuple[str, ...] = ()
        self._kept: dict[str, int] = {}

    @contextlib.contextmanager
    def keeping_open(self, *directories: Path) -> Iterator[None]:
        mine: dict[str, int] = {}
        try:
            for directory in directories:
                # One that is not there, or may not be opened, is gone to as ever.
                with contextlib.suppress(OSError), self._at(directory) as at:
                    if at.is_confined:
                        mine[os.fspath(directory)] = _enter(at.name, at.parent)
            self._kept |= mine
            yield
        finally:
            self._kept = {path: fd for path, fd in self._kept.items() if path not in mine}
            for fd in mine.values():
                os.close(fd)

    def confine(self, root: Path) -> None:
        self._roots = tuple({*self._roots, os.fspath(root)})

    def open(self, path: Path | str, flags: int) -> int:
        whole = os.fspath(path)
        if self._kept:  # As `_at` does, in half the time: of a batch tens of thousands of files are opened so.
            above, _, name = whole.rpartition("/")
            if (kept := self._still_kept(whole)) is not None:
                return _open_at(".", flags | _CONFINED, kept)
            if name != ".." and (kept := self._kept.get(above)) is not None:
                try:
                    return _open_at(name, flags | _CONFINED, kept)
                except FileNotFoundError:
                    self._forget(kept)
                    raise
        with self._at(whole) as at:
            return _open_at(at.name, flags | (_CONFINED if at.is_confined else os.O_CLOEXEC), at.parent)

    def sync_directory(self, path: Path) -> None:
        if (kept := self._still_kept(os.fspath(path))) is not None:
            try:
                os.fsync(kept)
            except OSError as error:
                if error.errno != errno.EBADF:  # It may be searched, and not read.
                    raise
            else:
                return
        open_and_sync(self, path)

    def stat(self, path: Path | str) -> os.stat_result:
        with self._at(path) as at:
            return os.stat(at.name, dir_fd=at.parent, follow_symlinks=not at.is_confined)

    def listing(self, path: Path) -> dict[str, int]:
        fd = self.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(fd) as found:
                return {item.name: item.inode() for item in found}
        finally:
            os.close(fd)

    def lengths(self, path: Path) -> dict[str, int]:
        fd = self.open(path, os.O_RDONLY | os.O_DIRECTORY)
        found: dict[str, int] = {}
        try:
            with os.scandir(fd) as items:
                for item in items:
                    with contextlib.suppress(FileNotFoundError):
                        if item.is_file(follow_symlinks=False):
                            found[item.name] = item.stat(follow_symlinks=False).st_size
            return found
        finally:
            os.close(fd)

    def mkdir(self, path: Path, mode: int = SHARED_MODE) -> None:
        with self._at(path) as at:
            os.mkdir(at.name, mode, dir_fd=at.parent)

    def link(self, source: Path | str, path: Path | str) -> None:
        with self._at(source) as old, self._at(path) as new:
            os.link(old.name, new.name, src_dir_fd=old.parent, dst_dir_fd=new.parent, follow_symlinks=False)

    def symlink(self, target: str, path: Path) -> None:
        with self._at(path) as at:
            os.symlink(target, at.name, dir_fd=at.parent)

    def rename(self, source: Path, path: Path) -> None:
        with self._at(source) as old, self._at(path) as new:
            os.rename(old.name, new.name, src_dir_fd=old.parent, dst_dir_fd=new.parent)

    def unlink(self, path: Path | str) -> None:
        with self._at(path) as at:
            os.unlink(at.name, dir_fd=at.parent)

    def remove_tree(self, path: Path) -> None:
        with self._at(path) as at:
            fd = _open_at(at.name, os.O_RDONLY | _ENTERED, at.parent)
            try:
                while directories := _remove_files(fd):
                    for directory in directories:
                        _lift_out(directory, fd)
            finally:
                os.close(fd)
            os.rmdir(at.name, dir_fd=at.parent)

    def _at(self, path: Path | str) -> _SystemPath:
        """What to call a path, relative to which directory, and whether it lies below a confined root."""
        whole = os.fspath(path)
        above, _, name = whole.rpartition("/")
        if name != ".." and (kept := self._kept.get(above)) is not None:
            return _SystemPath(name, kept, is_confined=True, forget=self._forget)
        root = next((root for root in self._roots if whole.startswith(root + "/")), None)
        first, *rest = whole[len(root) + 1 :].split("/") if root else [""]
        if first == ".." or ".." in rest or (root is None and self._leads_out(whole)):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), whole)
        if root is None or not rest:
            return _SystemPath(whole, None, is_confined=root is not None)
        kept, below = self._kept_above(whole) if self._kept else (None, [])
        *directories, name = below or rest
        fd = _open_at(f"{root}/{first}", _PASSED, None) if kept is None else _open_at(directories.pop(0), _PASSED, kept)
        try:
            for directory in directories:
                above_fd, fd = fd, _open_at(directory, _PASSED, fd)
                os.close(above_fd)
        except BaseException:
            os.close(fd)
            raise
        return _SystemPath(name, fd, is_confined=True, is_ours=True)

    def _forget(self, directory: int) -> None:
        """Where somebody removed a directory that is kept open, go by its path again: it may be made anew."""
        if os.fstat(directory).st_nlink == 0:
            self._kept = {path: kept for path, kept in self._kept.items() if kept != directory}

    def _still_kept(self, path: str) -> int | None:
        """The descriptor of a directory that is kept open, itself to be read or synced; None where it was removed."""
        kept = self._kept.get(path)
        if kept is not None:
            self._forget(kept)
        return self._kept.get(path)

    def _kept_above(self, path: str) -> tuple[int | None, list[str]]:
        """The descriptor of the nearest directory above a path that is kept open, and the names from there on."""
        below: list[str] = []
        while path:
            path, _, name = path.rpartition("/")
            below.insert(0, name)
            if (kept := self._kept.get(path)) is not None:
                return kept, below
        return None, []

    def _leads_out(self, path: str) -> bool:
        """Whether a path is neither a root nor above one. Names in documents are a stranger's: one may be absolute."""
        return bool(self._roots) and not any(f"{root}/".startswith(f"{path.rstrip('/')}/") for root in self._roots)


def open_and_sync(calls: SystemCalls, path: Path) -> None:
    """Bring the names in a directory to disk, by open(2), fsync(2) and close(2). Raises OSError."""
    fd = calls.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        calls.fsync(fd)
    finally:
        calls.close(fd)


def _enter(name: str, parent: int | None) -> int:
    """Open a directory to read it, or where we may not, to pass through."""
    try:
        return _open_at(name, os.O_RDONLY | _ENTERED, parent)
    except PermissionError:
        return _open_at(name, _PASSED, parent)


def _open_at(name: str, flags: int, parent: int | None) -> int:
    """openat(2), which says ELOOP of a link also where a directory is wanted, as the system does not."""
    try:
        return os.open(name, flags, FILE_MODE, dir_fd=parent)
    except NotADirectoryError:
        if flags & os.O_NOFOLLOW and stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


def _remove_files(directory: int) -> list[str]:
    """Remove all of a directory but its directories, and name these."""
    directories = []
    with os.scandir(directory) as found:
        items = list(found)
    for item in items:
        if item.is_dir(follow_symlinks=False):
            directories.append(item.name)
        else:
            os.unlink(item.name, dir_fd=directory)
    return directories


def _lift_out(name: str, parent: int) -> None:
    """Remove a directory whose own directories move up beside it: so no depth costs descriptors or stack."""
    fd = _open_at(name, os.O_RDONLY | _ENTERED, parent)
    try:
        for below in _remove_files(fd):
            os.rename(below, uuid.uuid4().hex, src_dir_fd=fd, dst_dir_fd=parent)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=parent)
