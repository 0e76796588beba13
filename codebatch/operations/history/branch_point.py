"""The commit at which a change begins: the point where its branch left the branch that it will be merged into."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from codebatch.git.ancestry import Repository, is_commit
from codebatch.git.repository import GitError
from codebatch.store.batches.batch_directory import BatchDir

_GITHUB_MERGE_REF = re.compile(r"refs/pull/\d+/merge\Z", re.ASCII)
_DEFAULT_BRANCH = "origin/HEAD"


class BranchPoint(NamedTuple):
    """The commit at which a change begins, with a description such as "the merge base with origin/main"."""

    commit: str
    description: str


def find_branch_point(head: BatchDir, repository: Repository, environment: Mapping[str, str]) -> BranchPoint:
    """Return the commit at which the change in a batch begins.

    In a GitHub job, variables in `environment` name the branch that the change will be merged into. Raises GitError if
    the commit is unknown. For a shallow clone, the message says what to fetch.
    """
    commit = head.about.commit
    if not is_commit(commit):
        raise GitError(f"the commit of batch {head.id} is unknown")
    parents = repository.parents(commit)
    is_merge = _GITHUB_MERGE_REF.match(environment.get("GITHUB_REF", "")) and environment.get("GITHUB_SHA") == commit
    if is_merge and len(parents) == 2:
        return BranchPoint(parents[0], "the first parent of GitHub's merge commit")
    branch = environment.get("GITHUB_BASE_REF", "")
    name = f"origin/{branch}" if branch else _DEFAULT_BRANCH
    branch_head = repository.find(f"refs/remotes/{name}")
    if branch_head is None and branch:
        raise GitError(f"{name} is not in this clone; fetch it: {_fetch_command(repository, branch)}")
    if branch_head is not None:
        try:
            base = repository.merge_base(branch_head, commit)
        except GitError as error:
            raise GitError(f"no merge base with {name}: {error}; fetch more: {_fetch_command(repository)}") from error
        if base != commit:
            return BranchPoint(base, f"the merge base with {name}")
    if not head.about.is_clean:
        return BranchPoint(commit, "HEAD, because there may be uncommitted changes")
    if not parents:
        raise GitError(f"commit {commit[:12]} has no parent")
    why = f"{name} contains HEAD" if branch_head is not None else f"{name} does not exist"
    return BranchPoint(parents[0], f"the commit before HEAD, because {why}")


def _fetch_command(repository: Repository, branch: str = "") -> str:
    """Return the git command that fetches the missing commits.

    `branch` must be named in the command, because a single-branch clone would not fetch it otherwise.
    """
    refspec = shlex.join([f"{branch}:refs/remotes/origin/{branch}"]) if branch else ""
    if repository.is_shallow:
        return f"{f'git fetch --unshallow origin {refspec}'.rstrip()}, or in actions/checkout set `fetch-depth: 0`"
    return f"git fetch origin {refspec}".rstrip()
