"""Trees of isolated commands: made before the command starts, kept or removed after its outcome is committed.

See SPEC.md "Trees".
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from codebatch.errors import CodebatchError, StoreError
from codebatch.git.linked_trees import merge_contents, read_user_excludes
from codebatch.git.repository import GitError, find_git
from codebatch.model.change import decode_change_set, unrecorded_text
from codebatch.model.documents import DocumentError
from codebatch.model.entry import display_path
from codebatch.model.gitignore import PatternList
from codebatch.model.text.quantities import human_bytes
from codebatch.model.work.command import Isolation
from codebatch.model.work.trees import NeededChanges, TreeInput, TreeSettings
from codebatch.protocol.messages import Assign
from codebatch.snapshotting.tree_contents import TreeContents, decode_contents, read_tree, store_missing_contents
from codebatch.snapshotting.walk import ignore_files_above, ignored_by, work_tree_around
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.store.work.tree_links import ProjectDirectories, leading_links_text
from codebatch.store.work.trees import BatchTrees, TreeName
from codebatch.system.files.files import FileLock, RealFiles
from codebatch.system.files.writable_tree import TreeFileContent, WritableTree
from codebatch_workers.commands.attempt import AttemptResult
from codebatch_workers.commands.attempt_tree import AttemptTree, Note
from codebatch_workers.commands.log import AttemptLogWriter
from codebatch_workers.commands.tree_bases import CommitBase, SnapshotBase, TreeBase, TreeNotMade
from codebatch_workers.commands.tree_changes import NeededChangesConflict, NeededChangesWriter

FREE_SPACE_FACTOR = 2


class _EndedAttempt(NamedTuple):
    tree: AttemptTree
    result: AttemptResult


class TreeMaker:
    """The trees of the attempts of one worker, one after the other."""

    def __init__(
        self, store: StoreDir, batch_id: str, batch_root: Path, settings: TreeSettings, objects: ObjectStore
    ) -> None:
        """`batch_root` is the user's directory in which the commands would work without trees of their own."""
        self._trees = BatchTrees(store, batch_id, settings)
        self._settings = settings
        self._objects = objects
        self._batch_root = os.fsencode(batch_root)
        self._files = RealFiles()
        self._bases: dict[Isolation, TreeBase] = {
            "worktree": CommitBase(self._trees, settings, self._batch_root),
            "copy": SnapshotBase(store, settings, objects),
        }
        self._ended: list[_EndedAttempt] = []

    def make(
        self,
        isolation: Isolation,
        task: str,
        round_: int,
        given: TreeInput,
        note: Note,
        may_continue: Callable[[], bool],
    ) -> AttemptTree:
        """Make the tree of an attempt, or take the tree of the attempt that it continues.

        `may_continue` is called from time to time. If it returns false, the work ends with TreeNotMade. Raises
        TreeNotMade or NeededChangesConflict.
        """
        name = TreeName.of_attempt(task, round_)
        base = self._bases[isolation]
        try:
            self._trees.make_directory()
            if given.continued_round:
                continued = self._continue_tree(base, name, TreeName.of_attempt(task, given.continued_round))
                if continued is not None:
                    return continued
                note("the tree of the attempt that asked does not exist any more: this attempt gets a new one")
            return self._make_tree(base, name, given, note, may_continue)
        except OSError as error:
            raise TreeNotMade(f"{self._trees.path(name)}: {error.strerror}") from error
        except (GitError, CodebatchError) as error:
            raise TreeNotMade(str(error)) from error

    def _continue_tree(self, base: TreeBase, name: TreeName, asked: TreeName) -> AttemptTree | None:
        """Return the tree of the attempt that asked a question, or None if it does not exist any more."""
        origin = self._trees.origin(asked)
        if origin is None:
            return None
        with contextlib.ExitStack() as opened:
            lock = self._lock(origin)
            opened.callback(lock.release)
            try:
                start = decode_contents(self._files.read(self._trees.start_path(origin)))
            except (FileNotFoundError, StoreError, ValueError):
                return None
            with PackWriter(self._objects) as writer:
                store_missing_contents(bytes(self._trees.path(origin)), start, self._objects, writer)
            self._trees.link(name, origin)
            opened.pop_all()
            return self._attempt_tree(base, name, origin, lock, start, None)

    def _make_tree(
        self, base: TreeBase, name: TreeName, given: TreeInput, note: Note, may_continue: Callable[[], bool]
    ) -> AttemptTree:
        path = self._trees.path(name)
        previous = self._trees.origin(name._replace(round=given.previous_round))
        with contextlib.ExitStack() as opened:
            lock = self._lock(name)
            opened.callback(self._remove, name, lock)
            self._trees.clear(name)
            self._check_space(base.size_bytes())
            base.write(path, may_continue)
            with WritableTree(bytes(path)) as tree:
                self._make_links(base, name, tree, note)
                changed = self._write_needed(tree, given.needed, note)
            start = self._read_start(base, name, changed)
            self._check_links(path, start)
            opened.pop_all()
            return self._attempt_tree(base, name, name, lock, start, previous)

    def _attempt_tree(
        self,
        base: TreeBase,
        name: TreeName,
        origin: TreeName,
        lock: FileLock,
        start: TreeContents,
        previous: TreeName | None,
    ) -> AttemptTree:
        return AttemptTree(
            self._trees,
            self._objects,
            name,
            origin,
            lock,
            root=self._trees.path(origin) / os.fsdecode(base.root_path),
            start=start,
            links=self._link_paths(base),
            has_git=base.has_git,
            ignored_above=self._ignored_above(base),
            previous=None if previous is None else self._trees.path(previous),
        )

    def _lock(self, name: TreeName) -> FileLock:
        lock = self._trees.try_lock(name)
        if lock is None:
            raise TreeNotMade(f"another process works in the tree {self._trees.path(name)}")
        return lock

    def _check_space(self, size_bytes: int) -> None:
        needed = FREE_SPACE_FACTOR * size_bytes
        free = shutil.disk_usage(self._trees.directory).free
        if free < needed:
            raise TreeNotMade(
                f"not enough space for a tree in {self._trees.directory}: {human_bytes(needed)} must be free, "
                f"but only {human_bytes(free)} are"
            )

    def _link_paths(self, base: TreeBase) -> tuple[bytes, ...]:
        """Return the paths of the links in a tree."""
        return tuple(os.path.join(base.root_path, link) for link in self._settings.links)

    def _make_links(self, base: TreeBase, name: TreeName, tree: WritableTree, note: Note) -> None:
        """Make the symbolic links to the user's own directories. In a work tree, git gets a file that excludes them."""
        made = []
        for link, path in zip(self._settings.links, self._link_paths(base), strict=True):
            target = os.path.join(self._batch_root, link)
            if not os.path.lexists(target):
                note(f"{display_path(path)} is not linked: it does not exist in the directory of the user")
            elif not tree.exists(path):
                tree.write(path, TreeFileContent(target, is_link=True, is_executable=False))
                made.append(path)
            elif not tree.is_link(path):
                note(f"{display_path(path)} is not linked: the tree has files of its own there")
        git = find_git() if base.has_git and made else None
        if git is not None:
            patterns = b"".join(b"/%b\n" % _as_pattern(path) for path in made if b"\n" not in path)
            excludes = read_user_excludes(git, bytes(self._trees.path(name)))
            self._files.write_volatile(self._trees.excludes_path(name), b"%b\n%b" % (excludes, patterns))

    def _check_links(self, tree: Path, start: TreeContents) -> None:
        """Raise TreeNotMade if a link leads to the project or to another tree, unless `links` has its path.

        Such a link comes from the base, or from the change set of a needed task.
        """
        paths = [path for path, row in start.rows.items() if stat.S_ISLNK(row.stat.mode)]
        if not paths:
            return
        project = work_tree_around(self._batch_root) or self._batch_root
        if links := ProjectDirectories(project, self._batch_root).find_leading_links(bytes(tree), paths):
            raise TreeNotMade(
                f"its links lead to your own files, or to other trees: {leading_links_text(links)}\n"
                "make the links relative, so that they stay in the tree; or name them in `link` of [trees]",
                is_final=True,
            )

    def _write_needed(self, tree: WritableTree, needed: Iterable[NeededChanges], note: Note) -> frozenset[bytes]:
        """Apply the change sets of needed tasks. Return the paths of all changes. Raises NeededChangesConflict."""
        writer = NeededChangesWriter(tree, self._objects.read, self._merge)
        for each in needed:
            try:
                changes = decode_change_set(self._objects.read(each.changes))
            except DocumentError as error:
                raise TreeNotMade(f"the change set of {each.task} is damaged: {error}") from error
            if changes.lost:
                note(f"the changes of {each.task} lack {unrecorded_text(changes.lost)}")
            writer.apply(each.task, changes.changes)
        writer.check()
        return writer.paths

    @staticmethod
    def _merge(ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
        git = find_git()
        return None if git is None else merge_contents(git, ours, base, theirs)

    def _read_start(self, base: TreeBase, name: TreeName, changed: frozenset[bytes]) -> TreeContents:
        """Read the contents of a new tree. If their files are not known yet, other workers wait meanwhile."""
        if base.known():
            return self._read(base, name, changed)
        with self._trees.locking("base"):
            start = self._read(base, name, changed)
            base.learn(start, changed)
            return start

    def _read(self, base: TreeBase, name: TreeName, changed: frozenset[bytes]) -> TreeContents:
        known = base.known()
        stamp_ns = self._trees.make_stamp(name)
        with PackWriter(self._objects) as writer:
            return read_tree(
                bytes(self._trees.path(name)),
                self._objects,
                writer,
                stamp_ns=stamp_ns,
                known={path: known[path] for path in known.keys() - changed} if changed else known,
                unlisted=changed,
                links=self._link_paths(base),
                submodules=base.submodules,
                uses_git=base.has_git,
                ignored_above=self._ignored_above(base),
            ).contents

    def _ignored_above(self, base: TreeBase) -> tuple[PatternList, ...]:
        """Return the ignore files above the user's directory, which a copy of it does not contain.

        They do not apply to a directory that they exclude completely.
        """
        root = self._batch_root
        if base.has_git or ignored_by(root, root, is_directory=True) is not None:
            return ()
        return ignore_files_above(root, b"")

    def _remove(self, name: TreeName, lock: FileLock) -> None:
        with contextlib.suppress(OSError, StoreError):
            self._trees.remove(name)
        lock.release()

    def end(self, tree: AttemptTree, result: AttemptResult) -> None:
        """Record that an attempt has ended. Its tree is kept or removed by `remove_ended`."""
        self._ended.append(_EndedAttempt(tree, result))

    def remove_ended(self) -> None:
        """Remove the trees of ended attempts, unless they are kept. The outcomes of the attempts are committed.

        A tree that an attempt continued is kept if the attempt was stopped, because it will be continued again. After a
        successful attempt, and if the tree is kept, the trees of earlier attempts of the task are removed too. What
        cannot be removed now is left to later processes.
        """
        for tree, result in self._ended:
            own, is_kept = {tree.name, tree.origin}, tree.is_kept(result)
            if is_kept or (result.type is None and tree.name != tree.origin):
                tree.lock.release()
            else:
                self._remove(tree.origin, tree.lock)
                self._trees.remove_unlocked(own - {tree.origin})
            if is_kept or result.type == "result":
                names = self._trees.names()
                self._trees.remove_unlocked(each for each in names if each.task == tree.name.task and each not in own)
        self._ended.clear()


def _as_pattern(path: bytes) -> bytes:
    """Return the pattern of an ignore file that matches only a path, which has no newline."""
    return re.sub(rb"([\\*?\[\] ])", rb"\\\1", path)


def make_tree_or_result(
    maker: TreeMaker,
    isolation: Isolation,
    assign: Assign,
    task: str,
    log: AttemptLogWriter,
    early_result: Callable[[], AttemptResult | None],
) -> AttemptTree | AttemptResult:
    """Make the tree of an attempt. If this is not possible, return the result of the attempt, which is over.

    `early_result` returns the result if a request ends the attempt, or None.
    """
    try:
        given = assign.brief.tree or TreeInput()
        tree = maker.make(isolation, task, assign.unit.round, given, log.report, lambda: early_result() is None)
        if early_result() is None:
            return tree
        maker.end(tree, AttemptResult(type=None))
    except NeededChangesConflict as error:
        log.write_note(f"not started: {error}")
        return AttemptResult(type="failed", reason="conflict", is_final=True)
    except TreeNotMade as error:
        if early_result() is None:
            log.write_note(f"not started: its tree cannot be made: {error}")
            return AttemptResult(type="failed", reason="start", is_final=error.is_final)
    ended = early_result()
    assert ended is not None, "otherwise there is a tree or an error"
    return ended
