"""The trees of a work batch on disk: their paths, locks and removal (SPEC.md "Trees").

A batch has a directory below `trees.directory`. A tree `<task>.r<round>` is a directory, or a link to the tree of an
earlier round that an attempt continued. Beside it are `<task>.r<round>.lock`, whose flock its supervisor holds, and
`<task>.r<round>.start` with the files that the tree had when its command began, if an attempt in it asked a question.
`<task>.r<round>.exclude` has the patterns of paths that git ignores in the tree, if it has links to directories of the
user.

A lock file is removed only by a process that holds its lock. So a process that takes a lock checks afterwards that the
file still has its name.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from codebatch.errors import StoreError, StoreUnwritable
from codebatch.git.linked_trees import unregister_linked_tree
from codebatch.git.repository import GitError, find_git
from codebatch.model.digest import digest_bytes
from codebatch.model.outcome import OutcomeType
from codebatch.model.work.trees import TreeSettings
from codebatch.store.batches.store_directory import StoreDir
from codebatch.system.files.allocation import spread_subdirectories
from codebatch.system.files.files import FileLock, RealFiles
from codebatch.system.files.system_calls import PRIVATE_MODE
from codebatch.system.files.writable_tree import remove_any_tree

_LOCK_SUFFIX = ".lock"
_START_SUFFIX = ".start"
_EXCLUDES_SUFFIX = ".exclude"
_STAMP_SUFFIX = ".stamp"
_TREE_NAME = re.compile(r"(?P<task>.+)\.r(?P<round>[1-9][0-9]*)\Z", re.DOTALL)
_LOCK_ATTEMPTS_MAX = 100


class TreeName(NamedTuple):
    """The task and the round of the attempt that a tree belongs to. `/` in the task is replaced by `+`."""

    task: str
    round: int

    @classmethod
    def of_attempt(cls, task: str, round_: int) -> TreeName:
        """Return the name of the tree of an attempt."""
        return cls(task.replace("/", "+"), round_)

    def __str__(self) -> str:
        return f"{self.task}.r{self.round}"


def is_tree_name(name: str) -> bool:
    """Return whether an entry of the directory of a batch is a tree, or belongs to one."""
    return _TREE_NAME.match(name) is not None


class BatchTrees:
    """The trees of one batch."""

    def __init__(self, store: StoreDir, batch_id: str, settings: TreeSettings) -> None:
        """Nothing is read or created."""
        self._settings = settings
        self._files = RealFiles()
        self._shared_directory = Path(os.fsdecode(settings.directory))
        self.directory = self._shared_directory / store.id / batch_id

    def keeps(self, type_: OutcomeType | None, unrecorded: int) -> bool:
        """Return whether the tree of an attempt with an outcome is kept. `unrecorded` is as in `TaskOutcome`."""
        return self._settings.keep == "failed" and (
            type_ in ("failed", "blocked") or (type_ == "result" and unrecorded > 0)
        )

    def path(self, name: TreeName) -> Path:
        """Return the path of a tree."""
        return self.directory / str(name)

    def start_path(self, name: TreeName) -> Path:
        """Return the path of the file with the contents of a tree when its command began."""
        return self.directory / f"{name}{_START_SUFFIX}"

    def excludes_path(self, name: TreeName) -> Path:
        """Return the path of the file with the patterns of paths that git ignores in a tree, which may not exist."""
        return self.directory / f"{name}{_EXCLUDES_SUFFIX}"

    def make_directory(self) -> None:
        """Create the directory of the batch, and those above it. Raises StoreUnwritable."""
        for directory in (self._shared_directory, self.directory.parent):
            self._files.make_directory(directory, PRIVATE_MODE)
        if self._files.make_directory(self.directory, PRIVATE_MODE):
            spread_subdirectories(self.directory)

    def origin(self, name: TreeName) -> TreeName | None:
        """Return the name of the tree in which an attempt worked: its own, or that of an earlier round.

        Return None if this tree does not exist.
        """
        name = self._linked_name(name) or name
        path = self.path(name)
        return name if path.is_dir() and not path.is_symlink() else None

    def _linked_name(self, name: TreeName) -> TreeName | None:
        """Return the name of the earlier tree to which a name is linked, or None if it is not such a link."""
        try:
            match = _TREE_NAME.match(os.readlink(self.path(name)))
        except OSError:
            return None
        if match is None or match["task"] != name.task or int(match["round"]) >= name.round:
            return None
        return TreeName(name.task, int(match["round"]))

    def link(self, name: TreeName, origin: TreeName) -> None:
        """Record that an attempt continues in the tree of an earlier round. Raises OSError."""
        with contextlib.suppress(FileNotFoundError):
            self.path(name).unlink()
        self.path(name).symlink_to(str(origin))

    def names(self) -> list[TreeName]:
        """Return the names of all trees and links, sorted."""
        try:
            entries = os.listdir(self.directory)
        except OSError:
            return []
        matches = (_TREE_NAME.match(entry.removesuffix(_LOCK_SUFFIX)) for entry in entries)
        return sorted({TreeName(match["task"], int(match["round"])) for match in matches if match is not None})

    def try_lock(self, name: TreeName) -> FileLock | None:
        """Take the lock of a tree, or return None if another process holds it. Raises StoreUnwritable."""
        return self._lock_file(self.directory / f"{name}{_LOCK_SUFFIX}", waits=False)

    @contextlib.contextmanager
    def locking(self, name: str) -> Iterator[None]:
        """Hold a lock with a name of its own, which all workers of this batch share. Raises StoreUnwritable."""
        with self._holding(self.directory / f".{name}{_LOCK_SUFFIX}"):
            yield

    @contextlib.contextmanager
    def locking_repository(self) -> Iterator[None]:
        """Hold the lock for changes of the list of work trees of the repository. Raises StoreUnwritable."""
        name = digest_bytes(self._settings.repository)[:16]
        with self._holding(self._shared_directory / f".{name}{_LOCK_SUFFIX}"):
            yield

    def make_stamp(self, name: TreeName) -> int:
        """Return the present time in ns by the clock of the file system of the trees. Raises StoreUnwritable.

        A file in a tree that changes later has this time or a later one.
        """
        path = self.directory / f".{name}{_STAMP_SUFFIX}"
        self._files.write_volatile(path, b"")
        try:
            return os.lstat(path).st_mtime_ns
        finally:
            self._files.remove(path)

    def remove(self, name: TreeName) -> None:
        """Remove a tree or link, and all that belongs to it. The caller holds its lock, and releases it afterwards.

        Raises OSError or StoreUnwritable if something of it remains.
        """
        self.clear(name)
        if self._settings.repository:
            self._unregister(self.path(name))
        self._files.remove(self.directory / f"{name}{_LOCK_SUFFIX}")

    def clear(self, name: TreeName) -> None:
        """Remove the files of a tree, or a link, so that a new tree can take its place. The caller holds its lock.

        Raises OSError or StoreUnwritable if something remains.
        """
        remove_any_tree(self.path(name))
        self._files.remove(self.start_path(name))
        self._files.remove(self.excludes_path(name))

    def _unregister(self, path: Path) -> None:
        git = find_git()
        # Without git, or without a registration, as of a copy, there is nothing to remove.
        if git is not None:
            with contextlib.suppress(GitError), self.locking_repository():
                unregister_linked_tree(git, self._settings.repository, bytes(path))

    def remove_unlocked(self, names: Iterable[TreeName]) -> None:
        """Remove trees and links, except those whose lock is taken. What cannot be removed stays."""
        for name in names:
            with contextlib.suppress(OSError, StoreError):
                lock = self.try_lock(name)
                if lock is None:
                    continue
                try:
                    self.remove(name)
                finally:
                    lock.release()

    @contextlib.contextmanager
    def _holding(self, path: Path) -> Iterator[None]:
        lock = self._lock_file(path, waits=True)
        assert lock is not None, "the lock was waited for"
        try:
            yield
        finally:
            lock.release()

    def _lock_file(self, path: Path, *, waits: bool) -> FileLock | None:
        for _ in range(_LOCK_ATTEMPTS_MAX):
            lock = self._files.wait_lock(path, shared=False) if waits else self._files.try_lock(path)
            if lock is None:
                return None
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock.descriptor), os.stat(path)):
                    return lock
            lock.release()
        raise StoreUnwritable(f"another program keeps removing {path}")


def remove_trees(store: StoreDir, batch_id: str, settings: TreeSettings) -> None:
    """Remove all trees of a batch that is removed. What cannot be removed stays, as do trees that a process uses."""
    trees = BatchTrees(store, batch_id, settings)
    if not trees.directory.is_dir():
        return
    trees.remove_unlocked(trees.names())
    with contextlib.suppress(OSError):
        if not trees.names():
            remove_any_tree(trees.directory)
        trees.directory.parent.rmdir()


def remove_leftover_trees(
    store: StoreDir,
    batch_id: str,
    settings: TreeSettings,
    kept: Collection[tuple[str, int]],
    running: Collection[str] = (),
) -> None:
    """Remove the trees of a batch that no process uses.

    `kept` has the tasks and rounds whose trees remain if the settings say so (`kept_trees`). `running` are tasks whose
    trees remain, because their attempts may end at this moment.
    """
    trees = BatchTrees(store, batch_id, settings)
    names = {TreeName.of_attempt(*each) for each in kept} if settings.keep == "failed" else set()
    names.update([origin for name in names if (origin := trees.origin(name)) is not None])
    tasks = {TreeName.of_attempt(task, 0).task for task in running}
    trees.remove_unlocked(name for name in trees.names() if name not in names and name.task not in tasks)
