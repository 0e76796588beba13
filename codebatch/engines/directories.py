"""Temporary directories of parts and engines. A directory that a killed process left is removed by the next user."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PREFIX = "codebatch-engine-"
_LOCK_NAME = "lock"
_UNLOCKED_SECONDS_MIN = 60.0
"""Minimum age of an unlocked directory that is removed. Its creator needs a moment to lock it."""


@contextlib.contextmanager
def engine_directory() -> Iterator[Path]:
    """Create a directory that only this user can read, below `$TMPDIR`. Remove it at the end. Raises OSError.

    Directories whose processes were killed are removed too.
    """
    _remove_orphaned(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name, open(Path(name, _LOCK_NAME), "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Path(name)


def _remove_orphaned(root: Path) -> None:
    for path in root.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            status = path.lstat()
            is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
            if is_own and time.time() - status.st_mtime > _UNLOCKED_SECONDS_MIN and not _is_locked(path / _LOCK_NAME):
                shutil.rmtree(path, ignore_errors=True)


def _is_locked(path: Path) -> bool:
    try:
        with open(path, "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False
