"""The changes of a batch as commits on a new branch: its repository, its parent and the groups of changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, get_args

import msgspec

from codebatch.errors import InvalidInput
from codebatch.git.ancestry import Repository
from codebatch.git.repository import find_git
from codebatch.model.change import ListedChange, ProposedChange
from codebatch.model.entry import display_path
from codebatch.model.owners import CodeOwners
from codebatch.operations.changes.applicable_changes import record_branch
from codebatch.operations.changes.application import (
    ApplyOptions,
    ChosenChanges,
    StoredContents,
    choose_changes,
    leave_out_refused,
)
from codebatch.operations.changes.branch import NewBranch, make_branch, prepare_branch
from codebatch.operations.changes.commit_plan import CommitGroup
from codebatch.operations.changes.groups import (
    NO_OWNER,
    ChangeGroup,
    GroupedBy,
    group_changes,
    read_code_owners,
    split_changes,
)
from codebatch.operations.changes.task_changes import BatchChanges
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.snapshotting.walk import work_tree_around
from codebatch.store.batches.batch_directory import is_work

_FILES_SPLIT = re.compile(r"files:([1-9][0-9]{0,8})\Z", re.ASCII)


class CommitSplit(msgspec.Struct, frozen=True, kw_only=True):
    """A split of the changes of a task into commits. If it is by files, a commit has at most `files_max` files."""

    by: GroupedBy | Literal["files"] = "task"
    files_max: int = 0


class BranchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of changes as a branch. If `message` is empty, each commit names its task and number of files."""

    name: str
    split: CommitSplit = CommitSplit()
    message: str = ""


def parse_commit_split(text: str) -> CommitSplit:
    """Return the split that a text names. Raises InvalidInput."""
    match = _FILES_SPLIT.match(text)
    if match is not None:
        return CommitSplit(by="files", files_max=int(match[1]))
    by = next((by for by in get_args(GroupedBy) if by == text), None)
    if by is None:
        raise InvalidInput(
            f"--commit-per {text!r} is unknown", hint="use task, owner, directory, or a number of files as in files:100"
        )
    return CommitSplit(by=by)


def apply_to_branch(
    question: BatchQuery, options: ApplyOptions, branch: BranchOptions, on_root: Callable[[bytes], None]
) -> tuple[ChosenChanges, NewBranch]:
    """Make commits of the changes of a batch, on the commit that they were made for, and a branch.

    Return the changes with the directory of the repository, and the branch. `on_root` is called with the directory
    before anything is written. If a change of an analysis does not fit, no commit is made. Of a task list, the tasks
    with such a change and those that need them are left out.

    Raises the errors of `choose_changes`, `prepare_branch`, `leave_out_refused` and `make_branch`, and InvalidInput if
    there is neither git nor a commit.
    """
    chosen = choose_changes(question, options)
    root, is_list = chosen.root, is_work(question.batch)
    repository = _find_repository(question, root, chosen.changes.commit)
    start = prepare_branch(repository, branch.name, chosen.changes.commit)
    chosen = leave_out_refused(question, chosen, options)
    changes = chosen.changes
    on_root(root)
    new_branch = make_branch(
        start,
        _commit_groups(question, changes, branch),
        StoredContents(question.store.objects()),
        plan_digest=question.batch.plan().digest,
        on_refusal="leave_out_files" if options.is_partial else "leave_out_commits" if is_list else "stop",
        is_dry=options.is_dry,
    )
    if new_branch.is_created:
        record_branch(question, changes, new_branch, root=root)
    return chosen, new_branch


def _find_repository(question: BatchQuery, root: bytes, commit: str) -> Repository:
    git = find_git()
    if git is None:
        raise InvalidInput("--branch needs git, which is not installed", hint="apply the changes without --branch")
    if work_tree_around(root) is None:
        raise InvalidInput(
            f"{display_path(root)} is not in a git repository", hint="apply the changes without --branch"
        )
    if not commit:
        is_list = is_work(question.batch)
        reason = (
            "its tasks worked in copies of the files"
            if is_list
            else "its files were in no git repository with a commit"
        )
        raise InvalidInput(
            f"batch {question.batch.id} has no commit: {reason}",
            hint="apply the changes without --branch, or commit the files and make a new batch",
        )
    return Repository(git, root)


def _commit_groups(question: BatchQuery, changes: BatchChanges, branch: BranchOptions) -> list[CommitGroup]:
    """Return the groups of changes, in the order of the tasks, which is one in which needed tasks come first."""
    owners = read_code_owners(question, question.note) if branch.split.by == "owner" else CodeOwners()
    groups: list[CommitGroup] = []
    for task in changes.tasks:
        groups += (
            CommitGroup(
                task=task.task,
                needs=tuple(sorted(task.needs)),
                title=branch.message,
                label="" if branch.split.by == "task" else group.label or NO_OWNER,
                changes=tuple(
                    ListedChange(change=each.change, added=each.added, removed=each.removed) for each in group.changes
                ),
            )
            for group in _split(task.changes, branch.split, owners)
        )
    return groups


def _split(changes: Sequence[ProposedChange], split: CommitSplit, owners: CodeOwners) -> list[ChangeGroup]:
    if split.by == "files":
        return split_changes(changes, split.files_max)
    return group_changes(changes, split.by, owners)
