"""Plan of the commits that changes make on a tree in git: what each commit contains, and which changes do not fit.

A change fits if the tree has exactly the content that the change was made for. The tree is the one of the parent
commit with the commits before. So commits may change the same file one after the other. If a change does not fit, its
whole commit is left out, together with the commits that need its task.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from codebatch.errors import ObjectMissing
from codebatch.git.new_commits import LINK_MODE, SUBMODULE_MODE, CommitFile, TreeBlob, blob_id
from codebatch.model.change import ListedChange, TreeChange
from codebatch.model.digest import Digest
from codebatch.model.entry import display_path, is_safe_path
from codebatch.operations.changes.checks import ContentReader, missing_content_reason
from codebatch.operations.changes.directories import has_reserved_name
from codebatch.operations.changes.link_targets import LINK_TARGET_BYTES_MAX, link_target_reason

_SHA1_DIGITS = 40
_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:%b\nsize %d\n"


class CommitGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Changes that belong into one commit.

    - `task`: the task that proposes them. `needs`: the tasks on whose commits this one is based.
    - `title`: the message of the commit. If it is empty, the message names the task and the number of files.
    - `label`: what the changes share, if the changes of a task are in several commits. Otherwise it is empty.
    - `changes`: at most one for each path.
    """

    task: str
    needs: tuple[str, ...] = ()
    title: str = ""
    label: str = ""
    changes: tuple[ListedChange, ...]


class RefusedCommitChange(NamedTuple):
    """A change that does not fit on the tree of its commit, and the reason."""

    path: bytes
    task: str
    reason: str


class FileVersionPlan(NamedTuple):
    """The new version of a file in a commit: its mode and content. If the content is None, the file is deleted."""

    path: bytes
    mode: str
    content: Digest | None


class PlannedCommit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit to be made. In `files`, deletions come first. `group` has only the changes that are in the commit."""

    group: CommitGroup
    files: tuple[FileVersionPlan, ...]


class CommitPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The commits that changes make.

    - `refused`: the changes that do not fit, sorted by path.
    - `left_out`: the groups without a commit, because one of their changes was refused, or because they need such a
      group.
    - `applied`: the number of changes whose result the tree already has.
    """

    commits: tuple[PlannedCommit, ...]
    refused: tuple[RefusedCommitChange, ...]
    left_out: tuple[CommitGroup, ...]
    applied: int


class _ChangeRefused(Exception):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _NewVersion(NamedTuple):
    mode: str
    content: Digest


class _PlannedTree:
    """The tree of a commit, with the changes of the commits after it. Paths are relative to `prefix` in the tree."""

    def __init__(self, tree: Mapping[bytes, TreeBlob], prefix: bytes, name: str) -> None:
        self._tree = tree
        self._prefix = prefix
        self.name = name
        self._new: dict[bytes, _NewVersion | None] = {}
        self._directories_of_new: set[bytes] = set()
        self._sorted_paths: list[bytes] | None = None

    def copy(self) -> _PlannedTree:
        copy = _PlannedTree(self._tree, self._prefix, self.name)
        copy._new = dict(self._new)
        copy._directories_of_new = set(self._directories_of_new)
        copy._sorted_paths = self._sorted_paths
        return copy

    def find(self, path: bytes) -> TreeBlob | _NewVersion | None:
        full = self._prefix + path
        return self._new[full] if full in self._new else self._tree.get(full)

    def put(self, path: bytes, version: _NewVersion | None) -> None:
        path = self._prefix + path
        self._new[path] = version
        while version is not None and (path := path.rpartition(b"/")[0]) not in self._directories_of_new:
            self._directories_of_new.add(path)

    def find_obstacle(self, path: bytes) -> str | None:
        """Return the reason why no file can be created at a path whose entry does not exist."""
        above = path
        while above := above.rpartition(b"/")[0]:
            entry = self.find(above)
            if entry is not None:
                return f"{display_path(above)} is {_kind_name(entry.mode)} there"
        below = self._prefix + path + b"/"
        if self._sorted_paths is None:
            self._sorted_paths = sorted(self._tree)
        start = bisect.bisect_left(self._sorted_paths, below)
        for place in range(start, len(self._sorted_paths)):
            if not self._sorted_paths[place].startswith(below):
                break
            if self._new.get(self._sorted_paths[place], True) is not None:
                return "it is a directory there"
        if below[:-1] in self._directories_of_new and any(
            version is not None and full.startswith(below) for full, version in self._new.items()
        ):
            return "it is a directory there"
        return None

    def submodule_above(self, path: bytes) -> bytes | None:
        while path := path.rpartition(b"/")[0]:
            entry = self.find(path)
            if entry is not None and entry.mode == SUBMODULE_MODE:
                return path
        return None


def plan_commits(
    groups: Sequence[CommitGroup],
    tree: Mapping[bytes, TreeBlob],
    contents: ContentReader,
    *,
    tree_name: str,
    prefix: bytes = b"",
    is_partial: bool = False,
) -> CommitPlan:
    """Return the commits that groups of changes make on a tree, in the order of the groups.

    The paths of changes are relative to the directory `prefix` of the tree, which is empty or ends with a slash.
    `tree_name` names the tree in reasons. If `is_partial` is set, a commit has the changes that fit, and nothing is
    left out. A group whose changes the tree already has makes no commit.
    """
    planned = _PlannedTree(tree, prefix, tree_name)
    commits: list[PlannedCommit] = []
    refused: list[RefusedCommitChange] = []
    left_out: list[CommitGroup] = []
    applied = 0
    for group in groups:
        missing_tasks = {other.task for other in left_out}
        if missing_tasks.intersection(group.needs):
            left_out.append(group)
            continue
        trial = _GroupPlanner(planned.copy(), group.task, contents)
        trial.plan(group.changes)
        refused += trial.refused
        if trial.refused and not is_partial:
            left_out.append(group)
            continue
        planned = trial.tree
        applied += len(group.changes) - len(trial.refused) - len(trial.files)
        if trial.files:
            changes = tuple(listed for listed in group.changes if listed.change.path in trial.files)
            own = msgspec.structs.replace(group, changes=changes)
            files = sorted(trial.files.values(), key=lambda file: (file.content is not None, file.path))
            commits.append(PlannedCommit(group=own, files=tuple(files)))
    return CommitPlan(commits=tuple(commits), refused=tuple(sorted(refused)), left_out=tuple(left_out), applied=applied)


def iter_commit_files(planned: PlannedCommit, prefix: bytes, contents: ContentReader) -> Iterator[CommitFile]:
    """Yield the files of a commit for git. Contents are read one at a time. Raises ObjectMissing."""
    for path, mode, content in planned.files:
        yield CommitFile(prefix + path, mode, None if content is None else contents.read(content))


class _GroupPlanner:
    """Plan of one commit on a tree, which it changes."""

    def __init__(self, tree: _PlannedTree, task: str, contents: ContentReader) -> None:
        self.tree = tree
        self.files: dict[bytes, FileVersionPlan] = {}
        self.refused: list[RefusedCommitChange] = []
        self._task = task
        self._contents = contents

    def plan(self, changes: Sequence[ListedChange]) -> None:
        """Plan all changes. Deletions come first, since a directory may take the place of a deleted file."""
        for change in sorted((listed.change for listed in changes), key=_deletions_first):
            try:
                if change.path in self.files:
                    raise _ChangeRefused("several changes of this file are in one commit")
                version = self._new_version(change)
            except _ChangeRefused as error:
                self.refused.append(RefusedCommitChange(change.path, self._task, error.reason))
                continue
            if version is not None:
                self.files[change.path] = version
                content = version.content
                self.tree.put(change.path, None if content is None else _NewVersion(version.mode, content))

    def _new_version(self, change: TreeChange) -> FileVersionPlan | None:
        """Return the new version of a file, or None if the tree already has it. Raises _ChangeRefused."""
        if not is_safe_path(change.path):
            raise _ChangeRefused("the path leads out of the tree")
        if has_reserved_name(change.path):
            raise _ChangeRefused("the path belongs to git or codebatch")
        entry = self.tree.find(change.path)
        if entry is None:
            return self._create(change)
        if entry.mode == SUBMODULE_MODE:
            raise _ChangeRefused(f"it is a submodule in {self.tree.name}")
        if (entry.mode == LINK_MODE) != (change.kind == "link"):
            raise _ChangeRefused(f"it is {_kind_name(entry.mode)} in {self.tree.name}")
        mode = _new_mode(entry.mode, change)
        if not self._has_content(entry, change.before):
            if self._has_content(entry, change.after) and mode == entry.mode:
                return None
            raise _ChangeRefused(self._difference(entry, change))
        self._check_content(change)
        return FileVersionPlan(change.path, mode, change.after)

    def _create(self, change: TreeChange) -> FileVersionPlan | None:
        submodule = self.tree.submodule_above(change.path)
        if submodule is not None:
            raise _ChangeRefused(f"it is in the submodule {display_path(submodule)}")
        if change.after is None:
            return None
        if change.before is not None:
            raise _ChangeRefused(f"it does not exist in {self.tree.name}")
        obstacle = self.tree.find_obstacle(change.path)
        if obstacle is not None:
            raise _ChangeRefused(f"it cannot be created in {self.tree.name}: {obstacle}")
        self._check_content(change)
        mode = LINK_MODE if change.kind == "link" else "100755" if change.executable else "100644"
        return FileVersionPlan(change.path, mode, change.after)

    def _check_content(self, change: TreeChange) -> None:
        """Raise _ChangeRefused if the new content is missing, or is a target out of the tree."""
        if change.after is None:
            return
        try:
            size = self._contents.size(change.after)
            if change.kind == "link":
                target = self._contents.read(change.after) if size <= LINK_TARGET_BYTES_MAX else b""
                reason = link_target_reason(change.path, target)
                if reason is not None:
                    raise _ChangeRefused(reason)
        except ObjectMissing as error:
            raise _ChangeRefused(missing_content_reason(change.after)) from error

    def _has_content(self, entry: TreeBlob | _NewVersion, digest: Digest | None) -> bool:
        if digest is None:
            return False
        if isinstance(entry, _NewVersion):
            return entry.content == digest
        return blob_id(self._read(digest), len(entry.object_id)) == entry.object_id

    def _difference(self, entry: TreeBlob | _NewVersion, change: TreeChange) -> str:
        """Return the reason why the tree does not have the old content of a change."""
        name = self.tree.name
        if change.before is None:
            return f"it already exists in {name}"
        if isinstance(entry, _NewVersion):
            return "another task changes it"
        content, digits = self._read(change.before), len(entry.object_id)
        pointer = _LFS_POINTER % (change.before.encode("ascii"), len(content))
        if blob_id(pointer, digits) == entry.object_id:
            return "it is stored with Git LFS"
        if blob_id(content.replace(b"\r\n", b"\n"), digits) == entry.object_id:
            return "git converts its line endings (core.autocrlf or .gitattributes)"
        return f"its old content is not the one in {name}: it was not committed, or a filter of git converts it"

    def _read(self, digest: Digest) -> bytes:
        try:
            return self._contents.read(digest)
        except ObjectMissing as error:
            reason = f"its content, object {digest[:12]}, is missing or damaged in the store"
            raise _ChangeRefused(reason) from error


def _deletions_first(change: TreeChange) -> tuple[bool, bytes]:
    return change.after is not None, change.path


def _new_mode(mode: str, change: TreeChange) -> str:
    """Return the mode of an existing file. Its executable bit only changes if it is a part of the change."""
    if mode == LINK_MODE or change.executable == change.was_executable:
        return mode
    return "100755" if change.executable else "100644"


def _kind_name(mode: str) -> str:
    return {SUBMODULE_MODE: "a submodule", LINK_MODE: "a symbolic link"}.get(mode, "a file")
