"""Plan of the commits that changes make on a tree in git: what each commit contains, and which changes do not fit.

A change fits if the tree has exactly the content that the change was made for. The tree is the one of the parent
commit with the commits before. So commits may change the same file one after the other. If a change does not fit, its
whole commit is left out, together with the commits that need its task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from codebatch.errors import ObjectMissing
from codebatch.git.new_commits import (
    EXECUTABLE_MODE,
    FILE_MODE,
    LINK_MODE,
    SUBMODULE_MODE,
    CommitFile,
    TreeBlob,
    blob_id,
)
from codebatch.git.repository import GitError
from codebatch.model.change import ListedChange
from codebatch.model.digest import Digest
from codebatch.model.entry import display_path
from codebatch.model.nearest_directories import directories_above
from codebatch.operations.changes.checks import ContentReader, missing_content_reason
from codebatch.operations.changes.file_writes import FileWrite, order_writes, plan_write
from codebatch.operations.changes.judgement import (
    PathRefused,
    PresentFile,
    check_path,
    joint_reasons,
    judge_file,
)
from codebatch.operations.changes.link_targets import LINK_TARGET_BYTES_MAX, link_target_reason
from codebatch.operations.changes.planned_tree import NewVersion, PlannedTree

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


def plan_commits(
    groups: Sequence[CommitGroup],
    tree: Mapping[bytes, TreeBlob],
    contents: ContentReader,
    *,
    tree_name: str,
    read_blob: Callable[[str], bytes],
    prefix: bytes = b"",
    is_partial: bool = False,
) -> CommitPlan:
    """Return the commits that groups of changes make on a tree, in the order of the groups.

    The paths of changes are relative to the directory `prefix` of the tree, which is empty or ends with a slash.
    `tree_name` names the tree in reasons. `read_blob` returns the content of an object of the tree, or raises GitError.
    If `is_partial` is set, a commit has the changes that fit, and nothing is left out. A group whose changes the tree
    already has makes no commit.
    """
    planned = PlannedTree(tree, tree_name, prefix)
    commits: list[PlannedCommit] = []
    refused: list[RefusedCommitChange] = []
    left_out: list[CommitGroup] = []
    applied = 0
    for group in groups:
        missing_tasks = {other.task for other in left_out}
        if missing_tasks.intersection(group.needs):
            left_out.append(group)
            continue
        trial = _GroupPlanner(planned.copy(), group.task, contents, read_blob)
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

    def __init__(
        self, tree: PlannedTree, task: str, contents: ContentReader, read_blob: Callable[[str], bytes]
    ) -> None:
        self.tree = tree
        self.files: dict[bytes, FileVersionPlan] = {}
        self.refused: list[RefusedCommitChange] = []
        self._task = task
        self._contents = contents
        self._read_blob = read_blob
        self._new: set[bytes] = set()
        self._above_new: set[bytes] = set()
        self._place = f" in {tree.name}"

    def plan(self, changes: Sequence[ListedChange]) -> None:
        """Plan all changes. Deletions come first, since a directory may take the place of a deleted file."""
        writes = order_writes(plan_write(listed.change, self._task) for listed in changes)
        # A file that is deleted already may have made place for a new one, or for its directory.
        self._new = {write.path for write in writes if write.after is not None}
        self._above_new = directories_above(self._new)
        reasons = joint_reasons(writes, self.tree.exists)
        for write in writes:
            try:
                if write.path in reasons:
                    raise PathRefused(reasons[write.path])
                version = self._new_version(write)
            except PathRefused as error:
                self.refused.append(RefusedCommitChange(write.path, self._task, error.reason))
                continue
            if version is not None:
                self.files[write.path] = version
                content = version.content
                self.tree.put(write.path, None if content is None else NewVersion(version.mode, content))

    def _new_version(self, write: FileWrite) -> FileVersionPlan | None:
        """Return the new version of a file, or None if the tree already has it. Raises PathRefused."""
        check_path(write.path)
        self.tree.check_submodules(write.path)
        entry = self.tree.find(write.path)
        if entry is not None and entry.mode == SUBMODULE_MODE:
            raise PathRefused(f"it is a submodule{self._place}")
        if entry is None and write.after is None:
            self.tree.check_free(write.path, files=self._new, directories=self._above_new)
        elif entry is None:
            self.tree.check_free(write.path)
        present = None if entry is None else self._present_file(entry)
        match judge_file(write, present, self._place):
            case "done":
                return None
            case "differs" if entry is not None:
                raise PathRefused(self._difference(entry, write))
        self._check_content(write)
        return FileVersionPlan(write.path, _new_mode(entry, write), write.after)

    def _present_file(self, entry: TreeBlob | NewVersion) -> PresentFile:
        def has_content(digest: Digest) -> bool:
            if isinstance(entry, NewVersion):
                return entry.content == digest
            return blob_id(self._read(digest), len(entry.object_id)) == entry.object_id

        return PresentFile(
            kind="link" if entry.mode == LINK_MODE else "file",
            is_executable=entry.mode == EXECUTABLE_MODE,
            has_content=has_content,
        )

    def _check_content(self, write: FileWrite) -> None:
        """Raise PathRefused if the new content is missing, or is a target out of the tree."""
        if write.after is None:
            return
        try:
            size = self._contents.size(write.after)
            if write.is_link:
                target = self._contents.read(write.after) if size <= LINK_TARGET_BYTES_MAX else b""
                reason = link_target_reason(write.path, target, self._read_link)
                if reason is not None:
                    raise PathRefused(reason)
        except ObjectMissing as error:
            raise PathRefused(missing_content_reason(write.after)) from error

    def _read_link(self, path: bytes) -> bytes | None:
        """Return the target of a link of the tree, or None if another entry is at its path."""
        entry = self.tree.find(path)
        if entry is None or entry.mode != LINK_MODE:
            return None
        if isinstance(entry, NewVersion):
            return self._read(entry.content)
        try:
            return self._read_blob(entry.object_id)
        except GitError as error:
            raise PathRefused(f"link {display_path(path)} on the way of its target cannot be read: {error}") from error

    def _difference(self, entry: TreeBlob | NewVersion, write: FileWrite) -> str:
        """Return the reason why the tree does not have the old content of a change."""
        assert write.before is not None
        if isinstance(entry, NewVersion):
            return "another task changes it"
        content, digits = self._read(write.before), len(entry.object_id)
        pointer = _LFS_POINTER % (write.before.encode("ascii"), len(content))
        if blob_id(pointer, digits) == entry.object_id:
            return "it is stored with Git LFS"
        if blob_id(content.replace(b"\r\n", b"\n"), digits) == entry.object_id:
            return "git converts its line endings (core.autocrlf or .gitattributes)"
        name = self.tree.name
        return f"its old content is not the one in {name}: it was not committed, or a filter of git converts it"

    def _read(self, digest: Digest) -> bytes:
        try:
            return self._contents.read(digest)
        except ObjectMissing as error:
            reason = f"its content, object {digest[:12]}, is missing or damaged in the store"
            raise PathRefused(reason) from error


def _new_mode(entry: TreeBlob | NewVersion | None, write: FileWrite) -> str:
    """Return the mode of a file. That of an existing file only changes if it is a part of the change."""
    if write.is_link:
        return LINK_MODE
    if entry is not None and write.executable is None:
        return entry.mode
    return EXECUTABLE_MODE if write.executable else FILE_MODE
