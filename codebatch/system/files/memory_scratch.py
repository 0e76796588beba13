"""Scratch directories in memory, for tools that accept only files (SPEC.md "Scratch").

Creating thousands of short-lived small files takes five times as long on a disk as in memory. On a disk, this also
waits for the journal of the file system whenever another worker commits.

The directories are outside the store, where other users have access. So each is private (0700), and its name contains
the ID of its user. The process that created a directory holds its flock(2), which the kernel releases however the
process ends. Later processes of the same user remove directories whose lock is free.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import uuid
import weakref
from pathlib import Path

from codebatch.system.files.system_calls import RealCalls

# Shared memory of Linux. On systems without it, such as macOS, there is no scratch in memory.
MEMORY_DIRECTORY = Path("/dev/shm")  # noqa: S108 - directories created there are private, owned by us and checked
# Minimum free bytes. If less is free, as often in containers, no scratch directory is created in memory, because other
# programs may need it.
_FREE_BYTES_MIN = 32 << 20
_ATTEMPTS_MAX = 100


class MemoryScratch:
    """An empty directory in memory. It is removed when this object is deleted or its process ends."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._end = weakref.finalize(self, _remove_directory, path, lock)

    def remove(self) -> None:
        """Remove the directory and release its lock. Idempotent."""
        self._end()


def try_memory_scratch(memory: Path = MEMORY_DIRECTORY, *, free_bytes: int = _FREE_BYTES_MIN) -> MemoryScratch | None:
    """Create a scratch directory in memory.

    Return None if the system has no shared memory, or less than `free_bytes` are free.
    """
    for _ in range(_ATTEMPTS_MAX):
        path = memory / f"{_name_prefix()}{uuid.uuid4().hex}"
        try:
            if _free_bytes(memory) < free_bytes:
                return None
            path.mkdir(mode=0o700)
        except OSError:
            return None
        # Before this process locks the directory, another process may remove it as an orphan. Then that process holds
        # the lock, or has removed the directory. In both cases, try again with another name.
        lock = _try_lock(path)
        if lock is not None and path.is_dir():
            return MemoryScratch(path, lock)
        if lock is not None:
            os.close(lock)
    return None


def sweep_memory_scratch(memory: Path = MEMORY_DIRECTORY) -> int:
    """Remove the scratch directories of this user whose creator is dead. Return their number."""
    swept = 0
    with contextlib.suppress(OSError):
        for name in os.listdir(memory):
            if name.startswith(_name_prefix()) and (lock := _try_lock(memory / name)) is not None:
                _remove_directory(memory / name, lock)
                swept += 1
    return swept


def _try_lock(path: Path) -> int | None:
    """Take the flock of a directory. Return the descriptor that holds it, or None if this is not possible.

    It is not possible if another process holds the flock, or if the directory is not private to this user.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    status = os.fstat(fd)
    if status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o077:
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
    os.close(fd)
    return None


def _remove_directory(path: Path, lock: int) -> None:
    with contextlib.suppress(OSError):
        RealCalls().remove_tree(path)
    os.close(lock)


def _name_prefix() -> str:
    return f"codebatch-{os.geteuid()}-"


def _free_bytes(directory: Path) -> int:
    status = os.statvfs(directory)
    return status.f_bavail * status.f_frsize
