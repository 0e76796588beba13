"""Temporary directories with a lock. A directory that a killed process left is removed by the next user, and by `gc`.

A directory is orphaned if it belongs to this user and no process holds its lock. The creator of a directory writes to
the lock file once it holds the lock. So a directory without content in this file may be new, unless it is old.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ENGINE_PREFIX = "codebatch-engine-"
VERIFY_PREFIX = "codebatch-verify-"
_LOCK_NAME = "lock"
_UNLOCKED_SECONDS_MIN = 60.0
"""Minimum age of a directory without a lock that is removed. Its creator needs a moment to lock it."""


@contextlib.contextmanager
def locked_directory(prefix: str) -> Iterator[Path]:
    """Create a directory that only this user can read, below `$TMPDIR`. Remove it at the end. Raises OSError.

    Orphaned directories with this prefix are removed too.
    """
    remove_orphaned_directories(prefix)
    with (
        tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name,
        open(Path(name, _LOCK_NAME), "wb", buffering=0) as lock,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(b"locked")
        yield Path(name)


def remove_orphaned_directories(*prefixes: str) -> None:
    """Remove the directories of killed processes below `$TMPDIR` whose names have one of the prefixes."""
    for path in (path for prefix in prefixes for path in Path(tempfile.gettempdir()).glob(f"{glob.escape(prefix)}*")):
        with contextlib.suppress(OSError):
            status = path.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and _is_orphaned(path, status.st_mtime):
                shutil.rmtree(path, ignore_errors=True)


def _is_orphaned(path: Path, changed_at: float) -> bool:
    was_locked = False
    with contextlib.suppress(FileNotFoundError), open(path / _LOCK_NAME, "rb") as lock:
        was_locked = bool(lock.read(1))
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return was_locked or time.time() - changed_at > _UNLOCKED_SECONDS_MIN
