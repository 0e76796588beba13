"""Removal of orphaned temporary files outside of batches."""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Sequence
from pathlib import Path

from codebatch.errors import StoreUntrusted, StoreUnwritable
from codebatch.store import layout
from codebatch.system.files.files import StoreFiles


def sweep_parts(files: StoreFiles, objects: Path) -> int:
    """Remove unfinished packs that no live writer locks, and return their number."""
    parts = [objects / name for name in files.listing(objects) if name.endswith(layout.PART_SUFFIX)]
    return sum(remove_unlocked(files, part) for part in parts)


def sweep_unfinished(files: StoreFiles, directories: Sequence[Path]) -> int:
    """Remove unfinished files in `directories`, which are outside of batches. Return the number of removed files.

    The caller holds the exclusive lock of the store.
    """
    paths = (directory / name for directory in directories for name in files.unfinished(directory))
    return sum(remove_unfinished(files, path) for path in paths)


def remove_unlocked(files: StoreFiles, path: Path) -> bool:
    """Remove a file if no process has locked it. Return whether it was removed.

    If a writer has created the file and not locked it yet, the writer later finds the file removed and creates another.
    """
    try:
        lock = files.try_lock(path, create=False)
    except (FileNotFoundError, StoreUnwritable, StoreUntrusted):
        return False
    if lock is None:
        return False
    try:
        return remove_unfinished(files, path)
    finally:
        lock.release()


def remove_unfinished(files: StoreFiles, path: Path) -> bool:
    """Remove a file, link or directory. Return whether it was removed.

    Errors of the removal are ignored. If the file later prevents a write, that write raises the error.
    """
    with contextlib.suppress(StoreUnwritable, StoreUntrusted):
        status = files.stat(path)
        # unlink(2) of a directory fails with different errors on different systems, so the type is checked first.
        if status is not None and stat.S_ISDIR(status.st_mode):
            files.remove_tree(path)
        else:
            files.remove(path)
        return True
    return False
