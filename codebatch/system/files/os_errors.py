"""What the refusal of a system call means: of the disk or its permissions, of what is not ours, of what cannot be."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from codebatch.errors import StoreError, StoreUnwritable, UnsupportedEntry, UnsupportedFileSystem

_REFUSALS = {
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM, errno.EMFILE,
    errno.ENFILE, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP,
}  # fmt: skip
_NO_PROCESS = {errno.EAGAIN, errno.ENOMEM}
FILES_OPEN = 1024
"""How many a hint says are enough."""
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL}
_UNREADABLE = {errno.EACCES, errno.EPERM, errno.EIO}
FOREIGN = {
    errno.ELOOP: "a symbolic link",
    errno.ENOTDIR: "a file instead of a directory",
    errno.EISDIR: "a directory instead of a file",
    errno.ENXIO: "a FIFO, socket or device",
    errno.EXDEV: "a path outside the store",
}


class ProcessRefused(OSError):
    """The system starts no further process: a limit of processes, or of memory, is reached."""


class _Turned:
    """A context in which the operating system's refusals are turned into errors that say what was to be done."""

    __slots__ = ("_path", "_turn")

    def __init__(self, path: Path | str, turn: Callable[[Path | str, OSError], None]) -> None:
        self._path = path
        self._turn = turn

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, OSError):
            self._turn(self._path, error)


def wrap_write_errors(path: Path | str) -> AbstractContextManager[None]:
    """Turn the operating system's refusal of a write into StoreUnwritable, and what is not ours into StrangeEntry.

    Other errors pass.
    """
    return _Turned(path, _raise_unwritable)


def wrap_read_errors(path: Path | str) -> AbstractContextManager[None]:
    """As `wrap_write_errors`, for what only reads."""
    return _Turned(path, _raise_unreadable)


@contextlib.contextmanager
def locking(path: Path | str) -> Iterator[None]:
    """Turn the answer of a file system that knows no flock(2) into UnsupportedFileSystem."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_LOCKS:
            raise UnsupportedFileSystem(str(path), "lock files", error.strerror) from error
        raise


@contextlib.contextmanager
def starting_process() -> Iterator[None]:
    """Turn the refusal of fork(2) into ProcessRefused. Other errors pass."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_PROCESS:
            raise ProcessRefused(error.errno, error.strerror) from error
        raise


def _raise_unwritable(path: Path | str, error: OSError) -> None:
    _raise_foreign(path, error)
    if error.errno in _REFUSALS:
        raise StoreUnwritable(
            f"cannot write {path}: {error.strerror}",
            hint=f"{suggest_fix(error)}, then run the same command again; finished work is not lost",
        ) from error


def _raise_unreadable(path: Path | str, error: OSError) -> None:
    _raise_foreign(path, error)
    if error.errno in _UNREADABLE:
        raise StoreError(
            f"cannot read {path}: {error.strerror}", hint="fix the permissions or the disk; nothing was changed"
        ) from error


def _raise_foreign(path: Path | str, error: OSError) -> None:
    if error.errno in FOREIGN:
        raise foreign(path, FOREIGN[error.errno]) from error


def foreign(path: Path | str, what: str) -> UnsupportedEntry:
    return UnsupportedEntry(
        f"{path} is, or is below, {what} that codebatch did not create",
        hint="find out which program created this path and remove it, or use another store with --store",
    )


def suggest_fix(error: BaseException | None) -> str:
    """What to do so that the system does not refuse it again."""
    if isinstance(error, ProcessRefused):
        return "stop other processes, or raise the process limit (ulimit -u, or the limit of the container)"
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return f"raise the limit of open files: ulimit -n {FILES_OPEN}"
    if isinstance(error, OSError) and error.errno == errno.ENFILE:
        return "stop programs that have many files open on this machine"
    return "free some space or fix the permissions"


def is_refusal(error: OSError) -> bool:
    """Whether the system, the disk or its permissions refused something, as opposed to a name that is not there."""
    return isinstance(error, ProcessRefused) or error.errno in _REFUSALS
