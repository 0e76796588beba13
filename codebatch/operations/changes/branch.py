"""Changes as commits on a new branch (SPEC.md "Changes"). Neither the work tree nor the index of the user is used.

All changes are checked against the tree of the parent commit first (commit_plan.py). Then all commits are made, and at
last the branch, which must not exist. So a branch has all its commits or does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple

import msgspec

from codebatch.errors import InvalidInput, StoreUnwritable
from codebatch.git.ancestry import Repository
from codebatch.git.new_commits import (
    Identities,
    NewCommit,
    TreeBlob,
    create_branch,
    current_branch,
    find_checked_out_branches,
    find_prefix,
    is_branch_name,
    read_blob,
    read_identities,
    read_tree,
    write_commits,
)
from codebatch.git.repository import GitError
from codebatch.model.change import encode_change_set
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_text
from codebatch.operations.changes.checks import ContentReader
from codebatch.operations.changes.commit_plan import (
    CommitGroup,
    CommitPlan,
    PlannedCommit,
    RefusedCommitChange,
    iter_commit_files,
    plan_commits,
)

OnRefusal = Literal["stop", "leave_out_commits", "leave_out_files"]
"""The effect of a change that does not fit.

- `stop`: no commit is made.
- `leave_out_commits`: the other commits are made, except those that need one that is left out.
- `leave_out_files`: all commits are made, without the changes that do not fit.
"""

_PATH_SHOWN_MAX = 50
_TRAILER = re.compile(r"[A-Za-z0-9-]+: \S")
_IDENTITY_HINT = "set them with: git config --global user.name NAME; git config --global user.email ADDRESS"


class BranchCommit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit of a new branch. `id` is None if it was only planned."""

    id: str | None
    task: str
    subject: str
    files: int


class NewBranch(msgspec.Struct, frozen=True, kw_only=True):
    """The result of changes as a branch.

    - `name`: the branch. It exists if `is_created`, and can be created if `is_possible`.
    - `parent`: the commit on which its first commit is based. `parent_name`: a short name for it.
    - `commits`: its commits, oldest first.
    - `refused`: the changes that do not fit, sorted by path. `left_out`: the tasks without a commit because of them.
    - `applied`: the number of changes that the parent commit has already.
    - `remote`: the remote repository to which the branch can be pushed, `origin` or the only one, or None.
    """

    name: str
    is_possible: bool
    is_created: bool
    parent: str
    parent_name: str
    commits: tuple[BranchCommit, ...]
    refused: tuple[RefusedCommitChange, ...]
    left_out: tuple[str, ...]
    applied: int
    remote: str | None


class BranchStart(NamedTuple):
    """A branch that can be created: its repository and name, and the commit on which it is based.

    `prefix` is the path of the directory of the repository in the work tree, `tree` has the files of the commit.
    """

    repository: Repository
    name: str
    parent: str
    prefix: bytes
    tree: Mapping[bytes, TreeBlob]
    identities: Identities


def prepare_branch(repository: Repository, name: str, parent: str) -> BranchStart:
    """Check that a branch with this name can be created on the commit `parent`. Nothing is written.

    Raises InvalidInput if the directory is in no work tree, if the parent commit is missing, if the name is invalid or
    exists, or if git has no author.
    """
    try:
        prefix = find_prefix(repository)
    except GitError as error:
        raise InvalidInput(f"cannot use {display_path(repository.directory)} as a git repository: {error}") from error
    _check_name(repository, name)
    try:
        tree = read_tree(repository, parent)
    except GitError as error:
        raise InvalidInput(
            f"cannot read commit {parent[:12]} in {display_path(repository.directory)}: {error}",
            hint="name a directory in a clone that has this commit with --root DIR, or fetch it",
        ) from error
    return BranchStart(repository, name, parent, prefix, tree, _read_identities(repository))


def make_branch(
    start: BranchStart,
    groups: Sequence[CommitGroup],
    contents: ContentReader,
    *,
    plan_digest: Digest,
    on_refusal: OnRefusal = "stop",
    is_dry: bool = False,
) -> NewBranch:
    """Make one commit from each group of changes, in order, and the branch.

    The paths of changes are relative to the directory of the repository. With `is_dry`, nothing is written. Without a
    commit to make, no branch is created. On return, the branch is complete.

    Raises InvalidInput if the branch exists by now, ObjectMissing, and StoreUnwritable if git cannot write. Then no
    branch was created.
    """
    repository, parent = start.repository, start.parent
    is_partial = on_refusal == "leave_out_files"
    tree_name = f"commit {parent[:12]}"
    plan = plan_commits(
        groups,
        start.tree,
        contents,
        tree_name=tree_name,
        read_blob=partial(read_blob, repository),
        prefix=start.prefix,
        is_partial=is_partial,
    )
    is_possible = bool(plan.commits) and not (plan.refused and on_refusal == "stop")
    is_written = is_possible and not is_dry
    messages = [_message(planned, plan_digest) for planned in plan.commits]
    ids = _write_branch(start, plan, messages, contents) if is_written else None
    commits = [
        BranchCommit(
            id=None if ids is None else ids[at],
            task=planned.group.task,
            subject=message.partition("\n")[0],
            files=len(planned.files),
        )
        for at, (planned, message) in enumerate(zip(plan.commits, messages, strict=True))
    ]
    branch = current_branch(repository) if repository.find("HEAD") == parent else None
    return NewBranch(
        name=start.name,
        is_possible=is_possible,
        is_created=is_written,
        parent=parent,
        parent_name=branch or parent[:12],
        commits=tuple(commits),
        refused=plan.refused,
        left_out=tuple(dict.fromkeys(group.task for group in plan.left_out)),
        applied=plan.applied,
        remote=repository.remote or None,
    )


def _check_name(repository: Repository, name: str) -> None:
    if not name.isprintable() or not is_branch_name(repository, name):
        raise InvalidInput(f"{name!r} cannot be the name of a branch", hint="see: git help check-ref-format")
    if repository.find(f"refs/heads/{name}") is not None:
        raise _branch_exists(name)
    if name in find_checked_out_branches(repository):
        raise InvalidInput(f"branch {name} has no commit, and is checked out", hint="choose another name")


def _branch_exists(name: str) -> InvalidInput:
    return InvalidInput(
        f"branch {name} exists", hint=f"choose another name, or delete the branch with: git branch -D {name}"
    )


def _read_identities(repository: Repository) -> Identities:
    try:
        return read_identities(repository)
    except GitError as error:
        raise InvalidInput("git has no name and address for the author of commits", hint=_IDENTITY_HINT) from error


def _write_branch(start: BranchStart, plan: CommitPlan, messages: Sequence[str], contents: ContentReader) -> list[str]:
    """Make the commits and the branch. Return the ids of the commits."""
    repository, name = start.repository, start.name
    new_commits = (
        NewCommit(message.encode("utf-8"), iter_commit_files(planned, start.prefix, contents))
        for planned, message in zip(plan.commits, messages, strict=True)
    )
    try:
        ids = write_commits(repository, start.parent, new_commits, start.identities)
        create_branch(repository, name, ids[-1], start.identities)
    except GitError as error:
        if repository.find(f"refs/heads/{name}") is not None:
            raise _branch_exists(name) from error
        reason = str(error).removeprefix(f"update_ref failed for ref 'refs/heads/{name}': ")
        message = f"cannot create branch {name}: {reason}"
        if "exists; cannot create" in str(error):
            raise InvalidInput(message, hint="choose another name") from error
        raise StoreUnwritable(message, hint="remove the cause, then run the same command again") from error
    return ids


def _message(planned: PlannedCommit, plan_digest: Digest) -> str:
    """Return the message of a commit, with its trailers."""
    group = planned.group
    subject, _, body = group.title.strip().partition("\n")
    subject = subject or f"{group.task}: Change {_files_text(planned)}"
    if group.label:
        subject = f"{subject} ({group.label})"
    trailers = [
        f"Codebatch-Plan: {plan_digest}",
        f"Codebatch-Change: {digest_bytes(encode_change_set(group.changes))}",
    ]
    paragraphs = [subject, *filter(None, [body.strip()]), "\n".join(trailers)]
    if body and all(map(_TRAILER.match, body.strip().rpartition("\n\n")[2].split("\n"))):
        # git reads trailers in the last paragraph only, so they follow those of the user directly.
        paragraphs[-2:] = ["\n".join(paragraphs[-2:])]
    return "\n\n".join(paragraphs) + "\n"


def _files_text(planned: PlannedCommit) -> str:
    path = display_path(planned.files[0].path)
    if len(planned.files) == 1 and path.isprintable() and len(path) <= _PATH_SHOWN_MAX:
        return path
    return count_text(len(planned.files), "file")
