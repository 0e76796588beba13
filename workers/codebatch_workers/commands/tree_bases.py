"""The files with which the trees of a batch start: those of a commit, or those of a snapshot."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from codebatch.errors import StoreError
from codebatch.git.ancestry import Repository
from codebatch.git.linked_trees import (
    BLOCK_BYTES,
    CommitTree,
    fill_linked_tree,
    read_commit_tree,
    register_linked_tree,
)
from codebatch.git.repository import GitError, find_git
from codebatch.model.entry import Entry, decode_entries, display_path, encode_entries
from codebatch.model.work.trees import TreeSettings
from codebatch.snapshotting.tree_contents import TreeContents
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.reserved_names import is_bare_repository
from codebatch.store.snapshots.snapshots import Snapshot, load_snapshot
from codebatch.store.work.trees import BatchTrees
from codebatch.system.files.files import RealFiles
from codebatch.system.files.system_calls import PRIVATE_MODE
from codebatch.system.files.writable_tree import TreeFileContent, WritableTree

_GIT_ATTEMPTS_MAX = 3
_KNOWN_FILE = ".base"
_ENTRIES_PER_CHECK = 100


class TreeNotMade(Exception):
    """The error that an attempt cannot get its tree. If `is_final` is set, another attempt cannot get it either."""

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final


class TreeBase(Protocol):
    """The files with which trees start."""

    @property
    def has_git(self) -> bool:
        """Whether git lists the files of the trees."""

    def size_bytes(self) -> int:
        """Return about how much disk space a tree needs, or 0 if this is unknown."""

    @property
    def submodules(self) -> Mapping[bytes, str]:
        """The commits of the submodules, by path. Empty if git cannot list them."""

    @property
    def root_path(self) -> bytes:
        """The path of the root of the batch in a tree. Empty if it is the tree itself. Raises TreeNotMade."""

    def write(self, tree: Path, may_continue: Callable[[], bool]) -> None:
        """Create a tree and write its files.

        If `may_continue` returns false, the work ends. Raises TreeNotMade, GitError, StoreError or OSError.
        """

    def known(self) -> Mapping[bytes, Entry]:
        """Return the entries of files whose contents are known, by path."""

    def learn(self, contents: TreeContents, changed: frozenset[bytes]) -> None:
        """Remember the contents of a new tree. `changed` are the paths of files that are not those of the base."""


class CommitBase:
    """The files of a commit, in a linked work tree of the user's repository.

    Each tree has the same files. So only the first tree of a batch is read: its entries are kept in a file for the
    other workers.
    """

    has_git = True

    def __init__(self, trees: BatchTrees, settings: TreeSettings, batch_root: bytes) -> None:
        self._trees = trees
        self._settings = settings
        self._batch_root = batch_root
        self._files = RealFiles()
        self._known: Mapping[bytes, Entry] | None = None
        self._tree: CommitTree | None = None

    def size_bytes(self) -> int:
        return self._commit_tree().size_bytes

    @property
    def submodules(self) -> Mapping[bytes, str]:
        return self._commit_tree().submodules

    def _commit_tree(self) -> CommitTree:
        if self._tree is None:
            self._tree = CommitTree(0, [], {}, {})
            with contextlib.suppress(GitError):  # `write` reports a commit that does not exist any more.
                self._tree = read_commit_tree(_require_git(), self._settings.repository, self._settings.base)
        return self._tree

    @property
    def root_path(self) -> bytes:
        if self._batch_root == self._settings.repository:
            return b""
        prefix = os.path.join(self._settings.repository, b"")
        if not self._batch_root.startswith(prefix):
            raise TreeNotMade(f"the root of this batch is not in {display_path(self._settings.repository)}")
        return self._batch_root.removeprefix(prefix)

    def write(self, tree: Path, may_continue: Callable[[], bool]) -> None:
        git, repository, path = _require_git(), self._settings.repository, bytes(tree)
        for attempt in range(1, _GIT_ATTEMPTS_MAX + 1):
            try:
                with self._trees.locking_repository():
                    register_linked_tree(git, repository, path, self._settings.base, may_continue)
                break
            except GitError as error:
                if Repository(git, repository).find(self._settings.base) is None:
                    raise TreeNotMade(
                        f"commit {self._settings.base[:12]} is not in {display_path(repository)} any more, for example "
                        "after an amended commit and `git gc`; fetch it, or make a new batch with: codebatch work run",
                        is_final=True,
                    ) from error
                # A command of the user may change the work trees of the repository at the same time.
                if attempt == _GIT_ATTEMPTS_MAX or not may_continue():
                    raise
        fill_linked_tree(git, path, may_continue)
        if not os.path.isdir(os.path.join(path, self.root_path)):
            raise TreeNotMade(f"commit {self._settings.base[:12]} does not have the root of this batch")

    def known(self) -> Mapping[bytes, Entry]:
        if self._known is None:
            with contextlib.suppress(FileNotFoundError, StoreError, ValueError):
                entries = decode_entries(self._files.read(self._trees.directory / _KNOWN_FILE))
                self._known = {entry.path: entry for entry in entries}
        return self._known or {}

    def learn(self, contents: TreeContents, changed: frozenset[bytes]) -> None:
        if self._known is None:
            self._known = {entry.path: entry for entry in contents.entries() if entry.path not in changed}
            self._files.write_volatile(self._trees.directory / _KNOWN_FILE, encode_entries(self._known.values()))


class SnapshotBase:
    """The files of a snapshot, written out."""

    has_git = False
    root_path = b""
    submodules: Mapping[bytes, str] = {}

    def __init__(self, store: StoreDir, settings: TreeSettings, objects: ObjectStore) -> None:
        self._store = store
        self._settings = settings
        self._objects = objects
        self._loaded: Snapshot | None = None
        self._known: Mapping[bytes, Entry] | None = None

    def _snapshot(self) -> Snapshot:
        if self._loaded is None:
            files, root = self._store.files, self._store.root
            self._loaded = load_snapshot(files, root, self._settings.snapshot, objects=self._objects)
        return self._loaded

    def size_bytes(self) -> int:
        document = self._snapshot().document
        return document.bytes + document.entries * BLOCK_BYTES

    def write(self, tree: Path, may_continue: Callable[[], bool]) -> None:
        tree.mkdir(mode=PRIVATE_MODE)
        with WritableTree(bytes(tree)) as files:
            for number, entry in enumerate(self._snapshot().entries):
                if number % _ENTRIES_PER_CHECK == 0 and not may_continue():
                    raise TreeNotMade("the attempt was ended")
                if entry.kind != "submodule":
                    content = self._objects.read(entry.object, entry.size)
                    files.write(entry.path, TreeFileContent(content, entry.kind == "symlink", entry.executable))
            if is_bare_repository(files.exists):
                raise TreeNotMade("git would take the copy of the files, which has no `.git`, for a repository")

    def known(self) -> Mapping[bytes, Entry]:
        if self._known is None:
            entries = self._snapshot().entries
            self._known = {entry.path: entry for entry in entries if entry.kind != "submodule"}
        return self._known

    def learn(self, contents: TreeContents, changed: frozenset[bytes]) -> None:
        """Do nothing: the snapshot has all contents."""


def _require_git() -> str:
    git = find_git()
    if git is None:
        raise TreeNotMade('isolation = "worktree" needs git, which is not installed')
    return git
