"""Files below a store: the port that store code writes through, and its real implementation.

What must be whole and last gets its public name from `write_atomic`, `publish_directory`, `create_exclusive` or
`replace` alone, and only after its bytes are on disk. SPEC.md "Write ordering" says what else there is.

The port and its implementation are one file, long as it is: who changes a promise changes what keeps it.

What is no plain file where one is meant, or is reached through a link below the store's root, is StrangeEntry at once:
nobody of ours made it, and nothing is written, read or waited for there (SPEC.md "Threat model").
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import Protocol, TypeVar

from codebatch.system.files.file_reader import FileReader
from codebatch.system.files.os_errors import FOREIGN, foreign, locking, wrap_read_errors, wrap_write_errors
from codebatch.system.files.system_calls import SHARED_MODE, RealCalls, SystemCalls

T = TypeVar("T")

_FEW_FILES = 16
# A disk that takes less for each is not waited for: threads would take more.
_QUICK_SECONDS = 0.001
_WRITERS = 8


class Appender(Protocol):
    """An append-only file with one writer."""

    def append(self, data: bytes) -> int:
        """Add bytes at the end; returns the offset they start at. Not durable before `sync`."""

    def sync(self) -> None:
        """On return everything appended so far is on disk."""

    def close(self) -> None:
        """Release the file. Does not sync."""


class Files(FileReader, Protocol):
    """What a store needs of a file system, to read and to write.

    Every method raises StoreUnwritable where the disk refuses a write, StoreError where it refuses to be read, and
    StrangeEntry where something else than a plain file or directory is in its place.

    Of what is asked thousands of times a text names it too: to make a Path takes as long as a system call.

    What makes a name makes its directory where that is missing: copies that hold no empty directories (git, zip, object
    stores) lose it. Not so `write_new`: where the directory of such a file is gone, so is what else was in it.
    """

    def confine(self, root: Path) -> None:
        """From now on reach nothing below a store's root through a symbolic link. To be called before anything else."""

    def keeping_open(self, *directories: Path) -> AbstractContextManager[None]:
        """For that time, find what is in these directories faster. Only for who runs no code that closes descriptors.

        Those that are not there are made by whoever makes a name in them, and found as ever.
        """

    def unfinished(self, path: Path) -> list[str]:
        """The names in a directory that begin with `.` and end with `.tmp`: what `listing` leaves out, and ours."""

    def make_directory(self, path: Path, mode: int = SHARED_MODE) -> bool:
        """Make a directory; False where it exists. Its name is durable after `sync_directory`.

        Parents that are missing are made too; their names are durable on return, but for those that are hidden.
        """

    def write_new(self, path: Path | str, data: bytes) -> None:
        """Write a file that nobody else knows yet and bring it to disk. Its name is durable after `sync_directory`.

        Raises FileExistsError.
        """

    def write_many(self, contents: Iterable[tuple[Path, bytes]]) -> None:
        """`write_new` of each; some may wait for the disk at once. Where one fails, any number of them are there."""

    def make_link(self, target: str, path: Path) -> None:
        """Make a symbolic link. Its name is durable after `sync_directory`. Raises FileExistsError."""

    def write_atomic(self, path: Path, data: bytes) -> None:
        """Create or replace a file in one step. On return bytes and name are on disk."""

    def write_volatile(self, path: Path, data: bytes) -> None:
        """Create or replace a file in one step, without waiting for the disk: for what may be lost."""

    def create_exclusive(self, source: Path | str, path: Path | str) -> bool:
        """Give the complete file `source` the further name `path`, never replacing one: link(2).

        False where the name was taken by another file. A reply that was lost (NFS) is told from a lost race by the
        inode: the same inode means that the link is ours. The name is durable after `sync_directory`.
        """

    def publish_directory(self, source: Path, path: Path) -> bool:
        """Rename a finished directory to its public name; False (and `source` removed) where that name exists.

        Files in it must have come from `write_new`. On return the name is on disk, whoever gave it.
        """

    def retire(self, path: Path) -> Path | None:
        """Rename a directory to a hidden name beside it, under which nobody looks for it; returns that, None of none.

        Durable after `sync_directory`. What is killed before it removes it leaves what `unfinished` lists.
        """

    def replace(self, source: Path, path: Path) -> None:
        """Have a finished file take the name of another, which loses it, in one step: rename(2). A directory may take a
        name that nothing has.

        Durable after `sync_directory`. Where both are names of one file nothing happens. Raises StrangeEntry where a
        directory has the name.
        """

    def sync_directory(self, path: Path) -> None:
        """On return every name linked into or renamed within the directory so far is on disk."""

    def open_append(self, path: Path | str, *, directory_mode: int = SHARED_MODE) -> Appender:
        """Make a file to append to. The caller must be its only writer. Raises FileExistsError."""

    def open_page(self, path: Path, *, create: bool) -> int:
        """A descriptor for mmap(2), which the caller closes: of a new file to write, else of one that is there to read.

        Raises FileNotFoundError, FileExistsError.
        """

    def remove(self, path: Path | str) -> None:
        """Remove a file; nothing happens where it is missing."""

    def remove_tree(self, path: Path) -> None:
        """Remove a directory and all below it; nothing happens where it is missing."""

    def try_lock(self, path: Path, *, create: bool = True) -> Lock | None:
        """Take the exclusive flock of a file, None where another process holds it.

        Raises FileNotFoundError without `create`.
        """

    def is_locked(self, path: Path | str) -> bool:
        """Whether some process holds the exclusive flock of a file; False where there is no file."""

    def wait_lock(self, path: Path, *, shared: bool) -> Lock:
        """Take the flock of a file, waiting for who has it. Writes only where the file is missing."""


class _RealAppender:
    def __init__(self, calls: SystemCalls, path: Path | str, directory_mode: int) -> None:
        self._calls = calls
        self._path = path
        with wrap_write_errors(path):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
            self._fd = _with_directory(calls, path, lambda: calls.open(path, flags), directory_mode)

    def append(self, data: bytes) -> int:
        # Asked each time: a task that writes to descriptors that are not its own spoils its own work only.
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
    """Files of the operating system, or of the twin of it that `calls` is. It has many methods: one for each call."""

    def __init__(self, calls: SystemCalls | None = None) -> None:
        self._calls: SystemCalls = calls or RealCalls()
        self._is_threaded = calls is None

    def confine(self, root: Path) -> None:
        self._calls.confine(root)

    def keeping_open(self, *directories: Path) -> AbstractContextManager[None]:
        return self._calls.keeping_open(*directories)

    def read(self, path: Path) -> bytes:
        with wrap_read_errors(path):
            fd, size = self._open(path, os.O_RDONLY)
            try:
                return _read_at(self._calls, fd, 0, size)
            finally:
                self._calls.close(fd)

    def read_range(self, path: Path | str, offset: int, length: int) -> bytes:
        with wrap_read_errors(path):
            fd, size = self._open(path, os.O_RDONLY)
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
        found = self.stat(path)
        return None if found is None else found.st_size

    def listing(self, path: Path) -> dict[str, int]:
        with wrap_read_errors(path):
            try:
                found = self._calls.listing(path)
            except (FileNotFoundError, NotADirectoryError):
                return {}
        return {name: found[name] for name in sorted(found) if name[0] != "."}

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
                found = self._calls.listing(path)
            except (FileNotFoundError, NotADirectoryError):
                return []
        return sorted(name for name in found if name.startswith(".") and name.endswith(".tmp"))

    def make_directory(self, path: Path, mode: int = SHARED_MODE) -> bool:
        with wrap_write_errors(path):
            try:
                return self._make_one_directory(path, mode)
            except FileNotFoundError:
                self.make_directory(path.parent)
                if not _is_hidden(path.parent):
                    # Also where another has just made it, who may die before this.
                    self._calls.sync_directory(path.parent.parent)
                return self._make_one_directory(path, mode)

    def _make_one_directory(self, path: Path, mode: int) -> bool:
        try:
            self._calls.mkdir(path, mode)
        except FileExistsError:
            if not stat.S_ISDIR(self._calls.stat(path).st_mode):
                raise foreign(path, FOREIGN[errno.ENOTDIR]) from None
            return False
        return True

    def write_new(self, path: Path | str, data: bytes) -> None:
        self._write(path, data, sync=True)

    def write_many(self, contents: Iterable[tuple[Path, bytes]]) -> None:
        more = iter(contents)
        waited = 0.0
        for number, (path, data) in enumerate(more, 1):
            began = time.perf_counter()
            self.write_new(path, data)
            waited += time.perf_counter() - began
            if self._is_threaded and number >= _FEW_FILES and waited > number * _QUICK_SECONDS:
                _write_at_once(self.write_new, more)

    def write_atomic(self, path: Path, data: bytes) -> None:
        self._put(path, data, sync=True)
        self.sync_directory(path.parent)

    def write_volatile(self, path: Path, data: bytes) -> None:
        self._put(path, data, sync=False)

    def _put(self, path: Path, data: bytes, *, sync: bool) -> None:
        temporary = _temporary_beside(path)
        try:
            with wrap_write_errors(path):
                _with_directory(self._calls, path, lambda: self._write(temporary, data, sync=sync))
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
                is_ours = False
            else:
                is_ours = True
        # Also where it is another's: who renamed it may have died before this.
        self.sync_directory(path.parent)
        return is_ours

    def retire(self, path: Path) -> Path | None:
        hidden = _temporary_beside(path)
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

    def open_append(self, path: Path | str, *, directory_mode: int = SHARED_MODE) -> Appender:
        return _RealAppender(self._calls, path, directory_mode)

    def open_page(self, path: Path, *, create: bool) -> int:
        with wrap_write_errors(path):
            return self._open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL if create else os.O_RDONLY)[0]

    def remove(self, path: Path | str) -> None:
        with wrap_write_errors(path), contextlib.suppress(FileNotFoundError):
            self._calls.unlink(path)

    def remove_tree(self, path: Path) -> None:
        with wrap_write_errors(path), contextlib.suppress(FileNotFoundError):
            self._calls.remove_tree(path)

    def try_lock(self, path: Path, *, create: bool = True) -> Lock | None:
        with wrap_write_errors(path):
            fd, _ = self._open(path, os.O_RDWR | (os.O_CREAT if create else 0))
        try:
            with locking(path):
                self._calls.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._calls.close(fd)
            return None
        except BaseException:
            self._calls.close(fd)
            raise
        return Lock(self._calls, fd)

    def is_locked(self, path: Path | str) -> bool:
        try:
            with wrap_read_errors(path):
                fd, _ = self._open(path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            with locking(path):
                self._calls.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            self._calls.close(fd)
        return False

    def wait_lock(self, path: Path, *, shared: bool) -> Lock:
        with wrap_write_errors(path):
            try:
                # flock(2) does not ask for the right to write: who finds nothing to do works on a read-only store.
                fd, _ = self._open(path, os.O_RDONLY)
            except FileNotFoundError:
                self.make_directory(path.parent)
                fd, _ = self._open(path, os.O_RDWR | os.O_CREAT)
        try:
            with locking(path):
                self._calls.flock(fd, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        except BaseException:
            self._calls.close(fd)
            raise
        return Lock(self._calls, fd)

    def _open(self, path: Path | str, flags: int) -> tuple[int, int]:
        """Open a plain file, and its size. Anything else is refused: a device has no end, a FIFO perhaps no writer."""
        fd = self._calls.open(path, flags)
        found = self._calls.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            self._calls.close(fd)
            raise foreign(path, "something that is not a regular file")
        return fd, found.st_size

    def _write(self, path: Path | str, data: bytes, *, sync: bool) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with wrap_write_errors(path):
            fd = self._calls.open(path, flags)
            try:
                _write_all(self._calls, fd, data)
                if sync:
                    self._calls.fsync(fd)
            finally:
                self._calls.close(fd)


class Lock:
    """An flock(2) held by this process until `release` or death. Not inherited: the descriptor is close-on-exec.

    Who is given the descriptor holds the same lock, and nobody undoes it (LOCK_UN): it ends when the last one closes.
    """

    def __init__(self, calls: SystemCalls, descriptor: int) -> None:
        self._calls = calls
        self.descriptor = descriptor

    def share(self) -> None:
        """Hold it together with others from now on; waits for one who took it alone in between."""
        self._calls.flock(self.descriptor, fcntl.LOCK_SH)

    def release(self) -> None:
        """Give up our part in the lock."""
        self._calls.close(self.descriptor)


def _write_at_once(write: Callable[[Path, bytes], None], contents: Iterator[tuple[Path, bytes]]) -> None:
    """Write files in some threads: a disk brings several to rest in the time of one."""
    from codebatch.system.threads import Threads  # of who writes many files

    with Threads(_WRITERS) as threads:
        waiting = deque(threads.submit(write, *each) for each in islice(contents, 2 * _WRITERS))
        while waiting:
            waiting.popleft().result()
            waiting.extend(threads.submit(write, *each) for each in islice(contents, 1))


def _read_at(calls: SystemCalls, fd: int, offset: int, length: int) -> bytes:
    """pread(2) until `length` bytes or the end of the file."""
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
    """Make a name; where the directory is not there for it, make that, bring its own name to disk, and try again."""
    try:
        return make()
    except FileNotFoundError:
        directory = Path(path).parent
        if _is_hidden(directory):
            raise
        with contextlib.suppress(FileExistsError):
            calls.mkdir(directory, mode)
        # Also where another has just made it, who may die before this.
        calls.sync_directory(directory.parent)
    return make()


def _is_hidden(directory: Path) -> bool:
    """Whether a directory is being built, so that its name goes, or is the root of a store, which its maker syncs."""
    return directory.name.startswith(".")


def _temporary_beside(path: Path) -> Path:
    """A name in the same directory that `listing` leaves out and no other process makes."""
    return path.with_name(f".{path.name[:64]}.{uuid.uuid4().hex}.tmp")
