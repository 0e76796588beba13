"""Files below a store: the interface for store code, and its implementation for the operating system.

A file that must be complete and durable gets its final name only after its bytes are on disk: from `write_atomic`,
`publish_directory`, `create_exclusive` or `replace`. SPEC.md "Write ordering" lists the exceptions.

The interface and its implementation share one file, long as it is, because they always change together.

If a path has an unexpected type, or leads through a link below the store's root, UnsupportedEntry is raised
immediately. codebatch did not create such an entry, and never reads, writes or waits there (SPEC.md "Threat model").
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
import uuid
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, TypeVar

from codebatch.system.files.file_reader import FileReader
from codebatch.system.files.os_errors import (
    FOREIGN_ENTRY_BY_ERROR,
    translating_lock_errors,
    unsupported_entry,
    wrap_read_errors,
    wrap_write_errors,
)
from codebatch.system.files.parallel_writes import write_in_threads
from codebatch.system.files.system_calls import SHARED_MODE, RealCalls, SystemCalls

T = TypeVar("T")

_FILES_WITHOUT_THREADS_MAX = 16
# Average seconds of a write. If writes are faster, starting threads takes more time than it saves.
_QUICK_WRITE_SECONDS = 0.001


class FileAppender(Protocol):
    """A file to which one writer appends."""

    def append(self, data: bytes) -> int:
        """Append bytes and return the offset of the first. They are durable after `sync`."""

    def sync(self) -> None:
        """Wait until everything appended so far is on disk."""

    def close(self) -> None:
        """Close the file without syncing it."""


class StoreFiles(FileReader, Protocol):
    """The file system operations that are needed to read and write a store.

    Every method raises StoreUnwritable if the system refuses a write, and StoreError if it refuses to read. It raises
    UnsupportedEntry if something other than a regular file or directory is at the path. Methods on hot paths also
    accept `str`, because making a Path costs as much as a system call.

    Methods that create a name also create a missing parent directory, because a copy of a store made by git, zip or
    object stores lacks empty directories. Exception: `write_new`. If the directory for its file is missing, the other
    files in that directory are missing too, so this is an error.
    """

    def confine(self, root: Path) -> None:
        """From now on, follow no symbolic link below `root`, the root of a store. Must be called first."""

    def keeping_open(self, *directories: Path) -> AbstractContextManager[None]:
        """Keep directories open inside the `with`, for faster access. No code that closes descriptors may run there."""

    def unfinished(self, path: Path) -> list[str]:
        """Return the names of temporary files in a directory: they begin with `.` and end with `.tmp`."""

    def make_directory(self, path: Path, mode: int = SHARED_MODE) -> bool:
        """Create a directory. Return False if it exists. Its name is durable after `sync_directory`.

        Missing parents are created too. On return the names of the parents are durable, except hidden ones.
        """

    def write_new(self, path: Path | str, data: bytes) -> None:
        """Create a file and sync its bytes.

        The file must be new and unknown to other processes. Raises FileExistsError.

        Its name is durable after `sync_directory`.
        """

    def write_many(self, contents: Iterable[tuple[Path, bytes]]) -> None:
        """Create files like `write_new`, perhaps several at a time. After an error, any of the files may exist."""

    def make_link(self, target: str, path: Path) -> None:
        """Create a symbolic link. Its name is durable after `sync_directory`. Raises FileExistsError."""

    def write_atomic(self, path: Path, data: bytes) -> None:
        """Create or replace a file atomically. On return bytes and name are on disk."""

    def write_volatile(self, path: Path, data: bytes) -> None:
        """Create or replace a file atomically without syncing it. A power loss may damage the file."""

    def create_exclusive(self, source: Path | str, path: Path | str) -> bool:
        """Make `path` a hard link to the complete file `source`: link(2).

        Return False if `path` exists and is another file.

        If `path` has the same inode, an earlier call succeeded and only its reply was lost (NFS). The name is durable
        after `sync_directory`.
        """

    def publish_directory(self, source: Path, path: Path) -> bool:
        """Rename a finished directory to its final name. If the name exists, remove `source` and return False.

        Files in `source` must have been written by `write_new`. On return the name is on disk, whichever process made
        it.
        """

    def retire(self, path: Path) -> Path | None:
        """Rename a directory to a hidden name beside it. Return the new path, or None if it is missing.

        Durable after `sync_directory`. If the caller is killed before it removes the directory, `unfinished` lists it.
        """

    def replace(self, source: Path, path: Path) -> None:
        """Rename a finished file to `path` atomically, and replace the file there: rename(2).

        If `source` is a directory, `path` must not exist.

        Durable after `sync_directory`. If both names are links to one file, nothing happens. Raises UnsupportedEntry if
        `path` is a directory.
        """

    def sync_directory(self, path: Path) -> None:
        """Wait until all names that were created in a directory, or moved into it, are on disk."""

    def open_append(self, path: Path | str, *, directory_mode: int = SHARED_MODE) -> FileAppender:
        """Create a file to which only the caller appends. Raises FileExistsError."""

    def open_page(self, path: Path, *, create: bool) -> int:
        """Return a descriptor for mmap(2).

        If `create` is set, it is of a new file to write, otherwise of an existing file to read. The caller must close
        it. Raises FileNotFoundError or FileExistsError.
        """

    def remove(self, path: Path | str) -> None:
        """Remove a file. Does nothing if the file is missing."""

    def remove_tree(self, path: Path) -> None:
        """Remove a directory and everything below it. Does nothing if the directory is missing."""

    def try_lock(self, path: Path, *, create: bool = True) -> FileLock | None:
        """Take the exclusive flock of a file without waiting. Return None if another process holds it.

        Raises FileNotFoundError if the file is missing and `create` is false.
        """

    def is_locked(self, path: Path | str) -> bool:
        """Return whether a process holds the exclusive flock of a file. False if the file is missing."""

    def wait_lock(self, path: Path, *, shared: bool) -> FileLock:
        """Take the flock of a file. If another process holds it, wait. Writes only if the file is missing."""


class _RealAppender:
    def __init__(self, calls: SystemCalls, path: Path | str, directory_mode: int) -> None:
        self._calls = calls
        self._path = path
        with wrap_write_errors(path):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
            self._fd = _with_directory(calls, path, lambda: calls.open(path, flags), directory_mode)

    def append(self, data: bytes) -> int:
        # The size is read at each call, because a task may have written to this descriptor by mistake. Then only the
        # work of that task is damaged.
        start = self._calls.fstat(self._fd).st_size
        with wrap_write_errors(self._path):
            try:
                _write_all(self._calls, self._fd, data)
            except OSError:
                with contextlib.suppress(OSError):
                    self._calls.ftruncate(self._fd, start)
                raise
        return start

    def sync(self) -> None:
        with wrap_write_errors(self._path):
            self._calls.fsync(self._fd)

    def close(self) -> None:
        self._calls.close(self._fd)


class RealFiles:
    """Implementation of Files by system calls, real or simulated (`calls`). It has many methods: one for each call."""

    def __init__(self, calls: SystemCalls | None = None) -> None:
        self._calls: SystemCalls = calls or RealCalls()
        self._is_threaded = calls is None

    def confine(self, root: Path) -> None:
        self._calls.confine(root)

    def keeping_open(self, *directories: Path) -> AbstractContextManager[None]:
        return self._calls.keeping_open(*directories)

    def read(self, path: Path) -> bytes:
        with wrap_read_errors(path):
            fd, size = self._open_regular(path, os.O_RDONLY)
            try:
                return _read_at(self._calls, fd, 0, size)
            finally:
                self._calls.close(fd)

    def read_range(self, path: Path | str, offset: int, length: int) -> bytes:
        with wrap_read_errors(path):
            fd, size = self._open_regular(path, os.O_RDONLY)
            try:
                return _read_at(self._calls, fd, offset, max(0, min(length, size - offset)))
            finally:
                self._calls.close(fd)

    def stat(self, path: Path) -> os.stat_result | None:
        with wrap_read_errors(path):
            try:
                return self._calls.stat(path)
            except (FileNotFoundError, NotADirectoryError):
                return None

    def size(self, path: Path) -> int | None:
        status = self.stat(path)
        return None if status is None else status.st_size

    def listing(self, path: Path) -> dict[str, int]:
        with wrap_read_errors(path):
            try:
                inodes = self._calls.listing(path)
            except (FileNotFoundError, NotADirectoryError):
                return {}
        return {name: inodes[name] for name in sorted(inodes) if name[0] != "."}

    def has_only(self, path: Path, names: Collection[str]) -> bool:
        with wrap_read_errors(path):
            return set(self._calls.listing(path)) == set(names)

    def lengths(self, path: Path) -> dict[str, int]:
        with wrap_read_errors(path):
            try:
                return self._calls.lengths(path)
            except (FileNotFoundError, NotADirectoryError):
                return {}

    def unfinished(self, path: Path) -> list[str]:
        with wrap_read_errors(path):
            try:
                names = self._calls.listing(path)
            except (FileNotFoundError, NotADirectoryError):
                return []
        return sorted(name for name in names if name.startswith(".") and name.endswith(".tmp"))

    def make_directory(self, path: Path, mode: int = SHARED_MODE) -> bool:
        with wrap_write_errors(path):
            try:
                return self._make_one_directory(path, mode)
            except FileNotFoundError:
                self.make_directory(path.parent)
                if not _is_hidden(path.parent):
                    # Sync even if another process has just created the parent, because that process may die before it
                    # syncs.
                    self._calls.sync_directory(path.parent.parent)
                return self._make_one_directory(path, mode)

    def _make_one_directory(self, path: Path, mode: int) -> bool:
        try:
            self._calls.mkdir(path, mode)
        except FileExistsError:
            if not stat.S_ISDIR(self._calls.stat(path).st_mode):
                raise unsupported_entry(path, FOREIGN_ENTRY_BY_ERROR[errno.ENOTDIR]) from None
            return False
        return True

    def write_new(self, path: Path | str, data: bytes) -> None:
        self._write_file(path, data, sync=True)

    def write_many(self, contents: Iterable[tuple[Path, bytes]]) -> None:
        remaining = iter(contents)
        elapsed = 0.0
        for number, (path, data) in enumerate(remaining, 1):
            start = time.perf_counter()
            self.write_new(path, data)
            elapsed += time.perf_counter() - start
            if self._is_threaded and number >= _FILES_WITHOUT_THREADS_MAX and elapsed > number * _QUICK_WRITE_SECONDS:
                write_in_threads(self.write_new, remaining)

    def write_atomic(self, path: Path, data: bytes) -> None:
        self._put_file(path, data, sync=True)
        self.sync_directory(path.parent)

    def write_volatile(self, path: Path, data: bytes) -> None:
        self._put_file(path, data, sync=False)

    def _put_file(self, path: Path, data: bytes, *, sync: bool) -> None:
        temporary = _temporary_sibling(path)
        try:
            with wrap_write_errors(path):
                _with_directory(self._calls, path, lambda: self._write_file(temporary, data, sync=sync))
                self._calls.rename(temporary, path)
        except BaseException:
            self.remove(temporary)
            raise

    def make_link(self, target: str, path: Path) -> None:
        with wrap_write_errors(path):
            self._calls.symlink(target, path)

    def create_exclusive(self, source: Path | str, path: Path | str) -> bool:
        with wrap_write_errors(path):
            try:
                _with_directory(self._calls, path, lambda: self._calls.link(source, path))
            except FileExistsError:
                return os.path.samestat(self._calls.stat(source), self._calls.stat(path))
        return True

    def publish_directory(self, source: Path, path: Path) -> bool:
        self.sync_directory(source)
        with wrap_write_errors(path):
            try:
                self._calls.rename(source, path)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                self.remove_tree(source)
                is_published = False
            else:
                is_published = True
        # Sync even if another process published the directory, because that process may have died before it synced.
        self.sync_directory(path.parent)
        return is_published

    def retire(self, path: Path) -> Path | None:
        hidden = _temporary_sibling(path)
        with wrap_write_errors(path), contextlib.suppress(FileNotFoundError):
            self._calls.rename(path, hidden)
            return hidden
        return None

    def replace(self, source: Path, path: Path) -> None:
        with wrap_write_errors(path):
            self._calls.rename(source, path)

    def sync_directory(self, path: Path) -> None:
        with wrap_write_errors(path):
            self._calls.sync_directory(path)

    def open_append(self, path: Path | str, *, directory_mode: int = SHARED_MODE) -> FileAppender:
        return _RealAppender(self._calls, path, directory_mode)

    def open_page(self, path: Path, *, create: bool) -> int:
        with wrap_write_errors(path):
            return self._open_regular(path, os.O_RDWR | os.O_CREAT | os.O_EXCL if create else os.O_RDONLY)[0]

    def remove(self, path: Path | str) -> None:
        with wrap_write_errors(path), contextlib.suppress(FileNotFoundError):
            self._calls.unlink(path)

    def remove_tree(self, path: Path) -> None:
        with wrap_write_errors(path), contextlib.suppress(FileNotFoundError):
            self._calls.remove_tree(path)

    def try_lock(self, path: Path, *, create: bool = True) -> FileLock | None:
        with wrap_write_errors(path):
            try:
                fd, _ = self._open_regular(path, os.O_RDWR | (os.O_CREAT if create else 0))
            except PermissionError:  # Another user of the group may have created the file with a stricter umask.
                fd, _ = self._open_regular(path, os.O_RDONLY)
        with contextlib.suppress(BlockingIOError):
            return self._lock_open_file(path, fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return None

    def is_locked(self, path: Path | str) -> bool:
        try:
            with wrap_read_errors(path):
                fd, _ = self._open_regular(path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            with translating_lock_errors(path):
                self._calls.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            self._calls.close(fd)
        return False

    def wait_lock(self, path: Path, *, shared: bool) -> FileLock:
        with wrap_write_errors(path):
            try:
                # flock(2) does not need a writable descriptor, except for an exclusive lock on NFS. So commands that
                # change nothing work on a read-only store.
                fd, _ = self._open_regular(path, os.O_RDONLY)
            except FileNotFoundError:
                self.make_directory(path.parent)
                fd, _ = self._open_regular(path, os.O_RDWR | os.O_CREAT)
        return self._lock_open_file(path, fd, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)

    def _lock_open_file(self, path: Path, fd: int, operation: int) -> FileLock:
        """Lock an open file. If this fails, close it."""
        try:
            with translating_lock_errors(path):
                self._calls.flock(fd, operation)
        except BaseException:
            self._calls.close(fd)
            raise
        return FileLock(self._calls, fd)

    def _open_regular(self, path: Path | str, flags: int) -> tuple[int, int]:
        """Open a regular file. Return its descriptor and size. Refuse other types, because reading them may block."""
        fd = self._calls.open(path, flags)
        status = self._calls.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            self._calls.close(fd)
            raise unsupported_entry(path, "something that is not a regular file")
        return fd, status.st_size

    def _write_file(self, path: Path | str, data: bytes, *, sync: bool) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with wrap_write_errors(path):
            fd = self._calls.open(path, flags)
            try:
                _write_all(self._calls, fd, data)
                if sync:
                    self._calls.fsync(fd)
            finally:
                self._calls.close(fd)


class FileLock:
    """An flock(2) that this process holds until `release` or its end. Not inherited: its descriptor is close-on-exec.

    If the descriptor is passed to another process, both processes hold the lock. LOCK_UN is never used, so the lock is
    released when the last process closes its descriptor.
    """

    def __init__(self, calls: SystemCalls, descriptor: int) -> None:
        self._calls = calls
        self.descriptor = descriptor

    def make_shared(self) -> None:
        """Convert the lock to a shared one. If another process takes the exclusive lock in between, wait for it."""
        self._calls.flock(self.descriptor, fcntl.LOCK_SH)

    def release(self) -> None:
        """Close this process's descriptor. The lock is released if no other process has a copy of it."""
        self._calls.close(self.descriptor)


def _read_at(calls: SystemCalls, fd: int, offset: int, length: int) -> bytes:
    """Read with pread(2) until `length` bytes have been read or the file ends."""
    data = calls.pread(fd, length, offset)
    if len(data) == length or not data:
        return data
    parts = [data]
    missing = length - len(data)
    while missing and (data := calls.pread(fd, missing, offset + length - missing)):
        parts.append(data)
        missing -= len(data)
    return b"".join(parts)


def _write_all(calls: SystemCalls, fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[calls.write(fd, view) :]


def _with_directory(calls: SystemCalls, path: Path | str, make: Callable[[], T], mode: int = SHARED_MODE) -> T:
    """Create a name by `make`. If its directory is missing, create and sync the directory, and try again."""
    try:
        return make()
    except FileNotFoundError:
        directory = Path(path).parent
        if _is_hidden(directory):
            raise
        with contextlib.suppress(FileExistsError):
            calls.mkdir(directory, mode)
        # Sync even if another process has just created the directory, because that process may die before it syncs.
        calls.sync_directory(directory.parent)
    return make()


def _is_hidden(directory: Path) -> bool:
    """Return whether a directory is unfinished or the root of a store. Its creator syncs the name itself."""
    return directory.name.startswith(".")


def _temporary_sibling(path: Path) -> Path:
    """Return a unique temporary name in the directory of `path`. `listing` omits temporary names."""
    return path.with_name(f".{path.name[:64]}.{uuid.uuid4().hex}.tmp")
