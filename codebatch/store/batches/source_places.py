"""Whether the source directory of a batch was removed (SPEC.md "Garbage collection").

A directory that does not exist now may come back: its disk or network share may not be mounted, or this process may run
in a container that shows other directories. So each batch records where its directory was, and a directory counts as
removed only if evidence proves it. Anything unknown, such as an error, means that it was not removed.
"""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Sequence
from pathlib import Path

import msgspec

from codebatch.git.worktrees import linked_common_directory, read_linked_trees

_DAY_NS = 24 * 3600 * 10**9


class SourcePlace(msgspec.Struct, frozen=True, kw_only=True):
    """The location of the source directory of a batch when the batch was made.

    - `device`: the device of the directory. `is_on_store_device`: the store is on this device too. Device numbers can
      change at a reboot, so this is compared if possible.
    - `parent`: the inode of the parent directory, or 0 if it is on another device.
    - `work_tree`: the top of the linked git work tree that contains the directory, and `repository`, the git directory
      that lists this tree. Empty if there is none.
    - `directory`: the path of the directory from the top of its git work tree, or None if it is in none.
    """

    device: int
    is_on_store_device: bool
    parent: int
    work_tree: bytes = b""
    repository: bytes = b""
    directory: bytes | None = None


def locate_source(sources: Sequence[bytes], store_root: Path) -> SourcePlace | None:
    """Return the place of the only source of a batch. None if it is not one directory, or cannot be examined."""
    if len(sources) != 1:
        return None
    source = sources[0]
    try:
        own, above, store = os.lstat(source), os.lstat(os.path.dirname(source)), os.stat(store_root)
    except OSError:
        return None
    if not stat.S_ISDIR(own.st_mode):
        return None
    top = _work_tree_around(source)
    repository = None if top is None else linked_common_directory(top)
    return SourcePlace(
        device=own.st_dev,
        is_on_store_device=own.st_dev == store.st_dev,
        parent=above.st_ino if above.st_dev == own.st_dev else 0,
        work_tree=top if top is not None and repository is not None else b"",
        repository=repository or b"",
        directory=None if top is None else source[len(top) :].lstrip(b"/"),
    )


class RemovedSources:
    """Decides which source directories were removed, at one time. What was read is not read again."""

    def __init__(self, store_root: Path, now_ns: int) -> None:
        self._store_root = store_root
        self._now_ns = now_ns
        self._read_trees = functools.cache(read_linked_trees)
        self._is_removed = functools.cache(self._decide)

    def has(self, sources: Sequence[bytes], place: SourcePlace | None) -> bool:
        """Return whether the source directory of a batch was removed. False if it is unknown."""
        return place is not None and len(sources) == 1 and self._is_removed(sources[0], place)

    def _decide(self, source: bytes, place: SourcePlace) -> bool:
        """Return whether git no longer lists the work tree, or the parent directory has not had `source` for a day."""
        try:
            device = os.stat(self._store_root).st_dev if place.is_on_store_device else place.device
            if place.repository:
                is_locked = self._lock_state(place)
                if is_locked is None:
                    return _is_missing(place.work_tree) and _nearest_directory(place.work_tree).st_dev == device
                if is_locked:
                    return False
            # Another device than that of the store may be a network share, and examining its directories could block.
            if not (place.is_on_store_device and place.parent and _is_missing(source)):
                return False
            above = os.lstat(os.path.dirname(source))
            is_same_parent = (above.st_dev, above.st_ino) == (device, place.parent)
            return is_same_parent and above.st_mtime_ns < self._now_ns - _DAY_NS
        except OSError:
            return False

    def _lock_state(self, place: SourcePlace) -> bool | None:
        """Return whether the work tree is locked, or None if git does not list it. Raises OSError."""
        trees = self._read_trees(place.repository)
        if (state := trees.get(place.work_tree)) is not None:
            return state
        name = os.path.basename(place.work_tree)
        similar = (top for top in trees if os.path.basename(top) == name)
        return next((trees[top] for top in similar if os.path.realpath(top) == place.work_tree), None)


def _work_tree_around(directory: bytes) -> bytes | None:
    """Return the top of the git work tree that contains a directory. None if there is none, or `.git` is damaged."""
    while not os.path.lexists(git := os.path.join(directory, b".git")):
        if directory == os.path.dirname(directory):
            return None
        directory = os.path.dirname(directory)
    # git passes over a directory `.git` that is no repository, and uses the repository above.
    return directory if os.path.isfile(git) or os.path.exists(os.path.join(git, b"HEAD")) else None


def _is_missing(path: bytes) -> bool:
    """Return whether a path does not exist. Raises OSError if this is unknown, as without permission to look."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return True
    return False


def _nearest_directory(path: bytes) -> os.stat_result:
    """Return the status of the nearest ancestor of a path that exists. Raises OSError."""
    while True:
        path = os.path.dirname(path)
        try:
            return os.lstat(path)
        except FileNotFoundError:
            continue
