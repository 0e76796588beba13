"""The gates `parse` and `findings` of the changes that isolated tasks made in their trees (SPEC.md "Changes").

The changes of a file that build on each other are judged by their contents after each task, compared with the content
before the first one: a later task can repair what an earlier one broke. A file that was moved is compared with the
deleted file that it resembles.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.errors import CodebatchError, ObjectMissing, StoreUnwritable
from codebatch.git.linked_trees import read_commit_tree, read_link_targets
from codebatch.git.repository import GitError, find_git
from codebatch.model.change import ChangeRefusal, ProposedChange
from codebatch.model.digest import Digest
from codebatch.model.entry import Entry, EntryKind, display_path
from codebatch.model.task import SnapshotView
from codebatch.model.work.trees import TreeSettings
from codebatch.operations.changes.task_changes import BatchChanges
from codebatch.plugins.worker_services import TreeGateRunner, language_services
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.snapshots.snapshots import load_snapshot
from codebatch.system.files.locked_directories import VERIFY_PREFIX, locked_directory

_JUDGED_BYTES_MAX = 8 << 20
"""Size of the largest content that is judged. Larger files are not parsed."""
_FILES_AT_ONCE_MAX = 100
_MOVED_FROM_MAX = 20
_ATTRIBUTES_NAME = b".gitattributes"


def refuse_tree_changes(store: StoreDir, trees: TreeSettings | UnsetType, changes: BatchChanges) -> BatchChanges:
    """Return the changes of isolated tasks, each with the gate that refuses it, if any.

    Links, deletions, and contents that are missing or larger than 8 MiB pass. If a moved file is refused, so
    is its deletion at the old path.

    Raises EnvironmentBroken if the parser of Python cannot run, and StoreUnwritable if it gets no directory.
    """
    pending = [(each, chain[0].change.before) for chain in changes.chains() for each in chain]
    pending = [(each, before) for each, before in pending if each.change.kind == "file" and each.change.after]
    if trees is UNSET or not pending:
        return changes
    try:
        with locked_directory(VERIFY_PREFIX) as scratch:
            gates = language_services().tree_gates(_tree_files(store, trees), scratch)
            judge = _TreeJudge(store, gates, changes)
            judge.judge(pending)
    except OSError as error:
        raise StoreUnwritable(f"changes cannot be checked in $TMPDIR: {error.strerror}") from error
    refusals = judge.refusals
    for chain in changes.chains():
        kept = next((place for place in range(len(chain), 0, -1) if _key(chain[place - 1]) not in refusals), 0)
        for each in chain[:kept]:
            refusals.pop(_key(each), None)
    return changes.map_changes(lambda each: msgspec.structs.replace(each, refusal=refusals.get(_key(each))))


def _key(proposed: ProposedChange) -> tuple[str, bytes]:
    return proposed.task, proposed.change.path


class _TreeJudge:
    """Reads contents, and collects the refusals of changes by task and path."""

    def __init__(self, store: StoreDir, gates: TreeGateRunner, changes: BatchChanges) -> None:
        self.refusals: dict[tuple[str, bytes], ChangeRefusal] = {}
        self._objects = store.objects()
        self._gates = gates
        self._deleted = [each for each in changes.proposed() if each.change.after is None]

    def judge(self, compared: Iterable[tuple[ProposedChange, Digest | None]]) -> None:
        """Judge changes, each given with the digest of the content that it is compared with."""
        moved = {each.change.before for each in self._deleted}
        contents: list[tuple[ProposedChange, Digest | None, bytes]] = []
        size = 0
        for each, before in compared:
            after = None if before is None and each.change.after in moved else self._read(each.change.after)
            if after is None:
                continue
            contents.append((each, before, after))
            size += len(after)
            if len(contents) >= _FILES_AT_ONCE_MAX or size > _JUDGED_BYTES_MAX:
                self._judge_contents(contents)
                contents, size = [], 0
        self._judge_contents(contents)

    def _judge_contents(self, contents: Sequence[tuple[ProposedChange, Digest | None, bytes]]) -> None:
        found = self._gates.find_refusals(
            [(each.change.path, self._read(before) or b"", after) for each, before, after in contents]
        )
        for (each, before, after), refusal in zip(contents, found, strict=True):
            if refusal is not None and (before is not None or not self._compare_moved(each, after)):
                self.refusals[_key(each)] = refusal

    def _compare_moved(self, created: ProposedChange, after: bytes) -> bool:
        """Return whether a new file resembles one that its task deleted. If so, compare the new file with it."""
        name, extension = _name_and_extension(created)
        deleted = [each for each in self._deleted if each.task == created.task]
        similar = [each for each in deleted if _name_and_extension(each)[1] == extension]
        lines = set(after.splitlines())
        for each in sorted(similar, key=lambda each: _name_and_extension(each)[0] != name)[:_MOVED_FROM_MAX]:
            before = self._read(each.change.before) or b""
            if 2 * len(lines.intersection(before.splitlines())) >= len(lines):
                path = created.change.path
                (refusal,) = self._gates.find_refusals([(path, before, after)])
                if refusal is not None:
                    evidence = f"{display_path(path)}, to which it was moved, is refused: {refusal.evidence}"
                    self.refusals[_key(created)] = refusal
                    self.refusals[_key(each)] = ChangeRefusal(gate=refusal.gate, evidence=evidence)
                return True
        return False

    def _read(self, digest: Digest | None) -> bytes | None:
        """Return a content, or None if it is missing or too large."""
        location = None if digest is None else self._objects.find_location(digest)
        if digest is None or location is None or location.frame.size > _JUDGED_BYTES_MAX:
            return None
        with contextlib.suppress(ObjectMissing):
            return self._objects.read(digest)
        return None


def _name_and_extension(proposed: ProposedChange) -> tuple[bytes, bytes]:
    name = os.path.basename(proposed.change.path)
    return name, os.path.splitext(name)[1]


class _AttributeFiles(NamedTuple):
    """The files with which trees begin. Only files with attributes of git can be read."""

    entries: Sequence[Entry] = ()
    contents: Mapping[bytes, bytes] = {}

    def read(self, path: bytes, kind: EntryKind = "file") -> bytes | None:
        """Return the content of a file with attributes."""
        return self.contents.get(path) if kind == "file" else None


def _tree_files(store: StoreDir, trees: TreeSettings) -> SnapshotView:
    """Return the files with which the trees of a batch begin, or none if they cannot be read."""
    git = find_git()
    try:
        if not trees.base:
            snapshot = load_snapshot(store.files, store.root, trees.snapshot)
            return snapshot if snapshot.entries else _AttributeFiles()
        if git is None:
            return _AttributeFiles()
        tree = read_commit_tree(git, trees.repository, trees.base)
        files = [path for path in sorted(tree.paths) if path not in tree.links and path not in tree.submodules]
        named = [path for path in files if os.path.basename(path) == _ATTRIBUTES_NAME and b"\n" not in path]
        commit = trees.base.encode()
        contents = read_link_targets(git, trees.repository, {path: commit + b":" + path for path in named})
        return _AttributeFiles([Entry(path, "file", False, 0, Digest("")) for path in files], contents)
    except (CodebatchError, GitError):
        return _AttributeFiles()
