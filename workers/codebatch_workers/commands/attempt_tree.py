"""The tree of one attempt: the environment of its command, and the change set that the command leaves.

The contents of changed files and the change set are durable before the outcome that names them is committed. So a kill
at any point leaves a complete change set, or a tree that a later process removes.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from codebatch.errors import CodebatchError, UnreadablePath
from codebatch.git.linked_trees import without_repository_variables
from codebatch.model.change import (
    ChangeSet,
    ListedChange,
    TreeChange,
    UnrecordedPath,
    encode_change_set,
    unrecorded_text,
)
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.entry import display_path
from codebatch.model.gitignore import PatternList
from codebatch.snapshotting.entries import entry_from_row
from codebatch.snapshotting.tree_contents import TreeContents, TreeReading, encode_contents, read_tree
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.store.work.trees import BatchTrees, TreeName
from codebatch.system.files.files import FileLock, RealFiles
from codebatch.system.files.writable_tree import WritableTree, restore_permissions
from codebatch_workers.commands.attempt import AttemptResult
from codebatch_workers.commands.attempt_outputs import store_when_possible
from codebatch_workers.commands.tree_changes import list_changes
from codebatch_workers.syntax.edited_files import count_changed_lines

Note = Callable[[str], None]
"""A function that writes a line of codebatch into the log of the attempt."""


class AttemptTree:
    """The tree of one attempt, whose lock this process holds."""

    def __init__(
        self,
        trees: BatchTrees,
        objects: ObjectStore,
        name: TreeName,
        origin: TreeName,
        lock: FileLock,
        *,
        root: Path,
        start: TreeContents,
        links: tuple[bytes, ...],
        has_git: bool,
        ignored_above: tuple[PatternList, ...],
        previous: Path | None,
    ) -> None:
        """`origin` is the name of the tree itself, `name` is that of the attempt.

        `start` are its contents when the first command began in it. `root` is the directory in the tree that
        corresponds to the root of the batch. `links` and `ignored_above` are as in `read_tree`. `previous` is the tree
        of the failed attempt before this one.
        """
        self.name = name
        self.origin = origin
        self.lock = lock
        self.root = root
        self._trees = trees
        self._objects = objects
        self._start = start
        self._links = links
        self._has_git = has_git
        self._ignored_above = ignored_above
        self._path = trees.path(origin)
        self._identity = _directory_identity(self._path)
        self._previous = previous

    def variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that name the trees, and those that keep git in the tree. `environment` is the caller's.

        In a copy, git does not search for a repository in the directories above the tree. In a work tree, git ignores
        the links to directories of the user.
        """
        previous = "" if self._previous is None else str(self._previous)
        variables = {"CODEBATCH_TREE": str(self._path), "CODEBATCH_PREVIOUS_TREE": previous}
        if not self._has_git:
            ceilings = [str(self._path.parent), *filter(None, [environment.get("GIT_CEILING_DIRECTORIES")])]
            return {**variables, "GIT_CEILING_DIRECTORIES": os.pathsep.join(ceilings)}
        if (excludes := self._trees.excludes_path(self.origin)).exists():
            settings = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.excludesFile"}
            variables |= {**settings, "GIT_CONFIG_VALUE_0": str(excludes)}
        return variables

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of the caller without variables that would lead git to another repository."""
        return without_repository_variables(environment)

    def finish(self, result: AttemptResult, note: Note, sleep: Callable[[float], None] = time.sleep) -> AttemptResult:
        """Return the result of the attempt with its change set. On return the change set is durable.

        If the changes of a successful attempt cannot be read or stored, the attempt fails with the reason `check`. An
        attempt that is executed again (`type` is None) has no change set.
        """
        if result.type is None:
            return result
        try:
            changes, lost = self._store_changes(sleep)
            if lost:
                note(f"not recorded in the changes: {unrecorded_text(lost)}")
            if result.type == "blocked":
                RealFiles().write_volatile(self._trees.start_path(self.origin), encode_contents(self._start))
            result = msgspec.structs.replace(result, changes=changes, unrecorded=len(lost))
        except (CodebatchError, OSError) as error:
            note(f"the changes in {self._path} cannot be recorded: {error}")
            if result.type == "result":
                result = msgspec.structs.replace(result, type="failed", reason="check", exit_status=None)
        if self.is_kept(result):
            note(f"the tree is kept: {self._path}")
        return result

    def is_kept(self, result: AttemptResult) -> bool:
        """Return whether the tree is kept after a result. A tree whose directory the command removed is not."""
        return self._trees.keeps(result.type, result.unrecorded) and self._path.is_dir()

    def _store_changes(self, sleep: Callable[[float], None]) -> tuple[Digest, tuple[UnrecordedPath, ...]]:
        """Store the change set and the contents that it names. Return its digest, and the paths with lost work.

        If the disk is full, try again for some time. If the command took permissions from its own files, restore them.
        """

        def store() -> tuple[Digest, tuple[UnrecordedPath, ...]]:
            with PackWriter(self._objects) as writer:
                return self._add_change_set(writer, self._read(writer))

        try:
            return store_when_possible(store, sleep)
        except (UnreadablePath, PermissionError):
            with contextlib.suppress(OSError):  # The second try reports what is still unreadable.
                restore_permissions(self._path)
            return store_when_possible(store, sleep)

    def _read(self, writer: PackWriter) -> TreeReading:
        if _directory_identity(self._path) != self._identity:
            raise FileNotFoundError("the command has removed or replaced the directory of its tree")
        return read_tree(
            bytes(self._path),
            self._objects,
            writer,
            stamp_ns=0,  # Nothing is compared with these contents, so their rows need not be valid.
            before=self._start,
            links=self._links,
            uses_git=self._has_git and os.path.lexists(self._path / ".git"),
            ignored_above=self._ignored_above,
        )

    def _add_change_set(self, writer: PackWriter, reading: TreeReading) -> tuple[Digest, tuple[UnrecordedPath, ...]]:
        after, rows = reading.contents, self._start.rows
        paths = [path for path in rows.keys() | after.rows.keys() if rows.get(path) is not after.rows.get(path)]
        old, new = (
            {path: entry for path in paths if path in one.rows and (entry := entry_from_row(path, one.rows[path]))}
            for one in (self._start, after)
        )
        with WritableTree(bytes(self._path)) as tree:
            changes, same = list_changes(old, new)
            listed = tuple(self._count_lines(change, writer, tree) for change in changes)
        change_set = ChangeSet(changes=listed, unrecorded=tuple(sorted((*reading.unrecorded, *same))))
        return writer.add(encode_change_set(change_set.changes, change_set.unrecorded)), change_set.lost

    def _count_lines(self, change: TreeChange, writer: PackWriter, tree: WritableTree) -> ListedChange:
        """Return a change with its numbers of lines. The content before the change is made durable."""
        old = new = b""
        if change.before is not None:
            if not writer.has_object(change.before):
                raise FileNotFoundError(f"the store does not have the earlier content of {display_path(change.path)}")
            old = self._objects.read(change.before)
        if change.after is not None:
            file = tree.read(change.path)
            if file is None or digest_bytes(file.content) != change.after:  # It has changed again since.
                return ListedChange(change=change, added=0, removed=0)
            new = file.content
        added, removed = (0, 0) if old == new else count_changed_lines(old, new)
        return ListedChange(change=change, added=added, removed=removed)


def _directory_identity(path: Path) -> tuple[int, int]:
    """Return the device and inode of a directory, or zeros if it does not exist."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return 0, 0
    return status.st_dev, status.st_ino
