"""Files below a store: the port that store code writes through, and its real implementation.

Only `write_atomic`, `publish_directory` and `create_exclusive` give a file its public name, and only after its bytes
are on disk. SPEC.md "Read and write ordering" names every caller.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from codebatch.errors import StoreUnwritable

_REFUSALS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE}


class Listed(NamedTuple):
    """A name in a directory and the inode behind it: two names of one inode are one file."""

    name: str
    inode: int


class Appender(Protocol):
    """An append-only file with one writer."""

    def append(self, data: bytes) -> int:
        """Add bytes at the end; returns the offset they start at. Not durable before `sync`."""

    def sync(self) -> None:
        """On return everything appended so far is on disk."""

    def close(self) -> None:
        """Release the file. Does not sync."""


class Files(Protocol):
    """What a store needs of a file system. Every method raises StoreUnwritable where the disk refuses a write."""

    def read(self, path: Path) -> bytes:
        """All bytes of a file. Raises FileNotFoundError."""

    def read_range(self, path: Path, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset`; shorter at the end of the file. Raises FileNotFoundError."""

    def size(self, path: Path) -> int | None:
        """Bytes of a file, None where there is none."""

    def listing(self, path: Path) -> list[Listed]:
        """The names in a directory, sorted, without those that begin with `.`; empty where there is no directory."""

    def make_directory(self, path: Path) -> None:
        """Make a directory and its parents; nothing happens where it exists."""

    def write_new(self, path: Path, data: bytes) -> None:
        """Write a file that nobody else knows yet and bring it to disk. Its name is durable after `sync_directory`."""

    def write_atomic(self, path: Path, data: bytes) -> None:
        """Create or replace a file in one step. On return bytes and name are on disk."""

    def write_volatile(self, path: Path, data: bytes) -> None:
        """Create or replace a file in one step, without waiting for the disk: for caches and leases."""

    def create_exclusive(self, source: Path, path: Path) -> bool:
        """Give the complete file `source` the further name `path`, never replacing one: link(2).

        False where the name was taken by another file. A reply that was lost (NFS) is told from a lost race by the
        inode: the same inode means that the link is ours. The name is durable after `sync_directory`.
        """

    def publish_directory(self, source: Path, path: Path) -> bool:
        """Rename a finished directory to its public name; False (and `source` removed) where that name exists.

        Files in it must have come from `write_new`. On return the name is on disk.
        """

    def sync_directory(self, path: Path) -> None:
        """On return every name linked into or renamed within the directory so far is on disk."""

    def open_append(self, path: Path) -> Appender:
        """Open a file for appending, creating it where it is missing. The caller must be its only writer."""

    def remove(self, path: Path) -> None:
        """Remove a file; nothing happens where it is missing."""

    def remove_tree(self, path: Path) -> None:
        """Remove a directory and all below it; nothing happens where it is missing."""


@contextlib.contextmanager
def refusals(path: Path | str) -> Iterator[None]:
    """Turn the operating system's refusal of a write into StoreUnwritable; let other errors pass."""
    try:
        yield
    except OSError as error:
        if error.errno in _REFUSALS:
            raise StoreUnwritable(
                f"cannot write {path}: {error.strerror}",
                hint="free some space or fix the permissions, then run the same command again: nothing is lost",
            ) from error
        raise


class _RealAppender:
    def __init__(self, path: Path) -> None:
        self._path = path
        with refusals(path):
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._end = os.fstat(self._fd).st_size

    def append(self, data: bytes) -> int:
        start = self._end
        with refusals(self._path):
            try:
                _write_all(self._fd, data)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._fd, start)
                raise
        self._end += len(data)
        return start

    def sync(self) -> None:
        with refusals(self._path):
            os.fsync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


class RealFiles:
    """Files of the operating system."""

    def read(self, path: Path) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def read_range(self, path: Path, offset: int, length: int) -> bytes:
        with open(path, "rb", buffering=0) as file:
            return read_at(file.fileno(), offset, length)

    def size(self, path: Path) -> int | None:
        try:
            return os.stat(path).st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def listing(self, path: Path) -> list[Listed]:
        try:
            with os.scandir(path) as found:
                return sorted(Listed(item.name, item.inode()) for item in found if not item.name.startswith("."))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def make_directory(self, path: Path) -> None:
        with refusals(path):
            path.mkdir(parents=True, exist_ok=True)

    def write_new(self, path: Path, data: bytes) -> None:
        self._write(path, data, sync=True)

    def write_atomic(self, path: Path, data: bytes) -> None:
        temporary = _temporary_beside(path)
        try:
            self._write(temporary, data, sync=True)
            with refusals(path):
                os.rename(temporary, path)
        except BaseException:
            self.remove(temporary)
            raise
        self.sync_directory(path.parent)

    def write_volatile(self, path: Path, data: bytes) -> None:
        temporary = _temporary_beside(path)
        try:
            self._write(temporary, data, sync=False)
            with refusals(path):
                os.rename(temporary, path)
        except BaseException:
            self.remove(temporary)
            raise

    def create_exclusive(self, source: Path, path: Path) -> bool:
        with refusals(path):
            try:
                os.link(source, path)
            except FileExistsError:
                return os.path.samefile(source, path)
        return True

    def publish_directory(self, source: Path, path: Path) -> bool:
        self.sync_directory(source)
        with refusals(path):
            try:
                os.rename(source, path)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    self.remove_tree(source)
                    return False
                raise
        self.sync_directory(path.parent)
        return True

    def sync_directory(self, path: Path) -> None:
        with refusals(path):
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def open_append(self, path: Path) -> Appender:
        return _RealAppender(path)

    def remove(self, path: Path) -> None:
        with refusals(path), contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def remove_tree(self, path: Path) -> None:
        import shutil  # brings bz2 and lzma along, and those who only read remove nothing

        with refusals(path), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)

    def _write(self, path: Path, data: bytes, *, sync: bool) -> None:
        with refusals(path):
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            try:
                _write_all(fd, data)
                if sync:
                    os.fsync(fd)
            finally:
                os.close(fd)


class Lock:
    """An flock(2) held by this process until `release` or death. Not inherited: the descriptor is close-on-exec."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        """Give the lock up."""
        os.close(self._fd)


def try_lock(path: Path, *, shared: bool = False, create: bool = True) -> Lock | None:
    """Take the flock of a file, None where another process holds it. Raises FileNotFoundError without `create`."""
    flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
    with refusals(path):
        fd = os.open(path, flags, 0o644)
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    except BaseException:
        os.close(fd)
        raise
    return Lock(fd)


def wait_lock(path: Path, *, shared: bool = False) -> Lock:
    """Take the flock of a file, waiting for whoever holds it."""
    with refusals(path):
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_CREAT, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
    except BaseException:
        os.close(fd)
        raise
    return Lock(fd)


def is_locked(path: Path) -> bool:
    """Whether some process holds the exclusive flock of a file; False where there is no file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def read_at(fd: int, offset: int, length: int) -> bytes:
    """pread(2) until `length` bytes or the end of the file."""
    data = os.pread(fd, length, offset)
    if len(data) == length or not data:
        return data
    parts = [data]
    missing = length - len(data)
    while missing and (data := os.pread(fd, missing, offset + length - missing)):
        parts.append(data)
        missing -= len(data)
    return b"".join(parts)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _temporary_beside(path: Path) -> Path:
    """A name in the same directory that `listing` leaves out and no other process makes."""
    return path.with_name(f".{path.name[:64]}.{uuid.uuid4().hex}.tmp")


def is_refusal(error: OSError) -> bool:
    """Whether the disk or its permissions refused something, as opposed to a name that is not there."""
    return error.errno in _REFUSALS
