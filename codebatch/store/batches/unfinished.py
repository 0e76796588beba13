"""Removal of unfinished files outside of batches, which dead processes left."""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Sequence
from pathlib import Path

from codebatch.errors import StoreUntrusted, StoreUnwritable
from codebatch.store import layout
from codebatch.system.files.files import Files


def sweep_parts(files: Files, objects: Path) -> int:
    """Remove the parts of packs that no living writer holds; how many there were."""
    parts = [objects / name for name in files.listing(objects) if name.endswith(layout.PART_SUFFIX)]
    return sum(remove_unlocked(files, part) for part in parts)


def sweep_unfinished(files: Files, directories: Sequence[Path]) -> int:
    """Remove what is unfinished in some directories outside of batches. Only for who has the store's lock alone."""
    paths = (directory / name for directory in directories for name in files.unfinished(directory))
    return sum(remove_unfinished(files, path) for path in paths)


def remove_unlocked(files: Files, path: Path) -> bool:
    """Remove a file that no process has locked. Who made it and has not locked it yet makes another."""
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


def remove_unfinished(files: Files, path: Path) -> bool:
    """Remove a file, a link or a directory. A refusal is for those to tell who write what is needed."""
    with contextlib.suppress(StoreUnwritable, StoreUntrusted):
        found = files.stat(path)
        # Asked for, as unlink(2) refuses a directory with one error here and with another there.
        if found is not None and stat.S_ISDIR(found.st_mode):
            files.remove_tree(path)
        else:
            files.remove(path)
        return True
    return False
