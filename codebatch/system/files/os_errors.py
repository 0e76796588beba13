"""Translation of OSErrors to errors of codebatch.

Three causes are translated: the disk or its permissions refuse an operation, an entry was not made by codebatch, or the
file system lacks a feature.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from codebatch.errors import StoreError, StoreUnwritable, UnsupportedEntry, UnsupportedFileSystem

_WRITE_REFUSALS = {
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM, errno.EMFILE,
    errno.ENFILE, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP,
}  # fmt: skip
_PROCESS_REFUSALS = {errno.EAGAIN, errno.ENOMEM}
OPEN_FILES_ASSUMED = 1024
"""The limit of open files that hints recommend to users."""
_LOCK_REFUSALS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL}
_READ_REFUSALS = {errno.EACCES, errno.EPERM, errno.EIO}
FOREIGN_ENTRY_BY_ERROR = {
    errno.ELOOP: "a symbolic link",
    errno.ENOTDIR: "a file instead of a directory",
    errno.EISDIR: "a directory instead of a file",
    errno.ENXIO: "a FIFO, socket or device",
    errno.EXDEV: "a path outside the store",
}


class ProcessRefused(OSError):
    """The error that the system refused to start a process, because a limit of processes or memory is reached."""


class _ErrorTranslation:
    """A context manager that translates OSErrors to errors that name the failed operation and its path."""

    __slots__ = ("_path", "_translate")

    def __init__(self, path: Path | str, translate: Callable[[Path | str, OSError], None]) -> None:
        self._path = path
        self._translate = translate

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, OSError):
            self._translate(self._path, error)


def wrap_write_errors(path: Path | str) -> AbstractContextManager[None]:
    """Translate an OSError of a write. A refusal becomes StoreUnwritable.

    If something other than a file or directory of codebatch is at the path, the error becomes UnsupportedEntry. Other
    errors are not changed.
    """
    return _ErrorTranslation(path, _raise_unwritable)


def wrap_read_errors(path: Path | str) -> AbstractContextManager[None]:
    """Translate an OSError of a read like `wrap_write_errors`, except that a refusal becomes StoreError."""
    return _ErrorTranslation(path, _raise_unreadable)


@contextlib.contextmanager
def translating_lock_errors(path: Path | str) -> Iterator[None]:
    """Translate an OSError to UnsupportedFileSystem if it means that the file system does not support flock(2)."""
    try:
        yield
    except OSError as error:
        if error.errno in _LOCK_REFUSALS:
            raise UnsupportedFileSystem(str(path), "lock files", error.strerror) from error
        raise


@contextlib.contextmanager
def translating_start_errors() -> Iterator[None]:
    """Translate an OSError to ProcessRefused if it means that fork(2) was refused. Other errors are not changed."""
    try:
        yield
    except OSError as error:
        if error.errno in _PROCESS_REFUSALS:
            raise ProcessRefused(error.errno, error.strerror) from error
        raise


def _raise_unwritable(path: Path | str, error: OSError) -> None:
    _raise_unsupported(path, error)
    if error.errno in _WRITE_REFUSALS:
        raise StoreUnwritable(
            f"cannot write {path}: {error.strerror}",
            hint=f"{fix_hint(error)}, then run the same command again; finished work is not lost",
        ) from error


def _raise_unreadable(path: Path | str, error: OSError) -> None:
    _raise_unsupported(path, error)
    if error.errno in _READ_REFUSALS:
        raise StoreError(
            f"cannot read {path}: {error.strerror}", hint="fix the permissions or the disk; nothing was changed"
        ) from error


def _raise_unsupported(path: Path | str, error: OSError) -> None:
    if error.errno in FOREIGN_ENTRY_BY_ERROR:
        raise unsupported_entry(path, FOREIGN_ENTRY_BY_ERROR[error.errno]) from error


def unsupported_entry(path: Path | str, description: str) -> UnsupportedEntry:
    return UnsupportedEntry(
        f"unexpected entry at or above {path}: {description}, which codebatch did not create",
        hint="find out which program created this path and remove it, or use another store with --store",
    )


def fix_hint(error: BaseException | None) -> str:
    """Return advice for users on how to fix the cause of an error, such as a full disk."""
    if isinstance(error, ProcessRefused):
        return "stop other processes, or raise the process limit (ulimit -u, or the limit of the container)"
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return f"raise the limit of open files: ulimit -n {OPEN_FILES_ASSUMED}"
    if isinstance(error, OSError) and error.errno == errno.ENFILE:
        return "stop programs that have many files open on this machine"
    return "free some space or fix the permissions"


def is_write_refusal(error: OSError) -> bool:
    """Return whether an error means that the system, the disk or permissions refused an operation.

    False for an error that means that a file does not exist.
    """
    return isinstance(error, ProcessRefused) or error.errno in _WRITE_REFUSALS
