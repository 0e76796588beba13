"""Scratch directories in memory, for tools that can only be given files (SPEC.md "Scratch").

A directory of thousands of small files that live for a second costs a disk's file system five times what it costs one
in memory, and there it waits for the journal whenever another worker commits. Such directories lie outside the store,
so each is private (0700), held under flock(2) by the process that made it, and named after its user; whoever comes by
later removes those of the same user that nobody holds: the kernel lets go of a lock whichever way a process ends.
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

# Linux's shared memory; where it is missing, as on macOS, there is no such scratch.
MEMORY = Path("/dev/shm")  # noqa: S108 - what is made there is private, owned by us and checked
# A small one, as containers have, is left to those who cannot do without.
_FREE_BYTES_MIN = 32 << 20
_ATTEMPTS_MAX = 100


class MemoryScratch:
    """An empty directory in memory that goes when this object or its process does."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._end = weakref.finalize(self, _remove, path, lock)

    def remove(self) -> None:
        """Remove the directory and let go of its lock; a second call does nothing."""
        self._end()


def try_memory_scratch(memory: Path = MEMORY, *, free_bytes: int = _FREE_BYTES_MIN) -> MemoryScratch | None:
    """A new scratch directory, None where there is no memory to have it in, or less than is to be free."""
    for _ in range(_ATTEMPTS_MAX):
        path = memory / f"{_prefix()}{uuid.uuid4().hex}"
        try:
            if _free_bytes(memory) < free_bytes:
                return None
            path.mkdir(mode=0o700)
        except OSError:
            return None
        # Between our making the directory and our locking it a sweeper may take it for a dead process's. Then either
        # it has the lock still, or what we locked has no name any more: in both cases we take another name.
        lock = _try_lock(path)
        if lock is not None and path.is_dir():
            return MemoryScratch(path, lock)
        if lock is not None:
            os.close(lock)
    return None


def sweep_memory_scratch(memory: Path = MEMORY) -> int:
    """Remove the scratch directories of this user that no living process holds; how many there were."""
    swept = 0
    with contextlib.suppress(OSError):
        for name in os.listdir(memory):
            if name.startswith(_prefix()) and (lock := _try_lock(memory / name)) is not None:
                _remove(memory / name, lock)
                swept += 1
    return swept


def _try_lock(path: Path) -> int | None:
    """A descriptor that holds a directory's flock; None where another process has it, or it is not ours."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    found = os.fstat(fd)
    if found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077:
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
    os.close(fd)
    return None


def _remove(path: Path, lock: int) -> None:
    with contextlib.suppress(OSError):
        RealCalls().remove_tree(path)
    os.close(lock)


def _prefix() -> str:
    return f"codebatch-{os.geteuid()}-"


def _free_bytes(directory: Path) -> int:
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize
