"""The commit at which a change begins (SPEC.md "Quality gate"). A CI service or the default branch names it."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from codebatch.git.ancestry import Repository, is_commit
from codebatch.git.repository import GitError
from codebatch.operations.history.ci_services import CiChange
from codebatch.store.batches.batch_directory import BatchDir

_USUAL_DEFAULT_BRANCHES = ("main", "master", "trunk", "develop")


class BranchPoint(NamedTuple):
    """The commit at which a change begins, with a description such as "the merge base with origin/main".

    The commit may be missing from the clone. `advice` then says how to fetch it; otherwise it is empty.
    """

    commit: str
    description: str
    advice: str = ""


class NoBranchPoint(GitError):
    """No base exists, or nothing names it. Any other GitError means that a base exists but is missing."""


class _Branch(NamedTuple):
    """A branch of the clone: its name, such as "origin/main", and the commit at its head."""

    name: str
    commit: str


def find_branch_point(
    head: BatchDir, repository: Repository, change: CiChange, analysed: Collection[str] = ()
) -> BranchPoint:
    """Return the commit at which the change in a batch begins.

    `change` has the statements of the CI service. `analysed` are the commits of earlier runs. On the default branch, if
    the service does not state the head before the push, the nearest of these commits is used. Raises NoBranchPoint if
    there is no such commit, otherwise GitError; the message says what to fetch.
    """
    commit = head.about.commit
    if not is_commit(commit):
        raise NoBranchPoint(f"the commit of batch {head.id} is unknown")
    finder = _BranchPointFinder(repository, change, commit, repository.parents(commit), repository.remote)
    if change.built_merge == commit and len(finder.parents) == 2:
        return finder.point(finder.parents[0], f"the first parent of {change.service}'s merge commit", depth=2)
    if change.target_commit or change.target_branch or change.base:
        return finder.find_start_of_request()
    branch = finder.find_default_branch()
    if branch is not None:
        base = finder.merge_base(branch)
        if base != commit:
            return BranchPoint(base, f"the merge base with {branch.name}")
        if change.pushed_before not in ("", commit):
            return finder.point(change.pushed_before, f"the head before this push, which {change.service} states")
    if not change.is_in_ci and not head.about.is_clean:
        return BranchPoint(commit, "HEAD, because there may be uncommitted changes")
    if not finder.parents:
        raise NoBranchPoint(f"commit {commit[:12]} is the first commit")
    if branch is None:
        ask = f"; to ask the remote: git remote set-head {finder.remote} --auto" if finder.remote else ""
        message = "neither a CI service nor the clone names the branch into which the change will be merged"
        raise NoBranchPoint(message + ask)
    return finder.find_last_analysed(branch, analysed)


def find_needed_commits(
    head: BatchDir, repository: Repository, change: CiChange, analysed: Collection[str]
) -> set[str]:
    """Return the base commit of `head`, and the last analysed commit of the default branch, without unknown ones."""
    needed: set[str] = set()
    with suppress(GitError):
        needed.add(find_branch_point(head, repository, change, analysed).commit)
    with suppress(GitError):
        branch = _BranchPointFinder(repository, change, "", [], repository.remote).find_default_branch()
        ancestors = () if branch is None else repository.ancestors(branch.commit, first_parents=True)
        needed |= set(islice(filter(analysed.__contains__, ancestors), 1))
    return needed


class _BranchPointFinder(NamedTuple):
    """The facts about HEAD that all rules need. `remote` is empty if the clone has no remote."""

    repository: Repository
    change: CiChange
    head: str
    parents: list[str]
    remote: str

    def point(self, commit: str, description: str, *, depth: int = 0) -> BranchPoint:
        """Return a stated commit as a branch point, with the advice that fetches it if it is missing."""
        known = self.repository.find(commit)
        if known is None and not is_commit(commit):
            raise GitError(f"commit {commit} is not in this clone; fetch the history: {self.fetch_advice()}")
        advice = "" if known is not None else self.fetch_advice(commit=commit, depth=depth)
        return BranchPoint(known or commit, description, advice)

    def find_start_of_request(self) -> BranchPoint:
        """Return the start of a change that a CI service builds for a pull request or a merge queue."""
        change = self.change
        for branch in self._iter_targets():
            if branch.commit in self.parents:
                return BranchPoint(branch.commit, f"the head of {branch.name}, which HEAD merges")
            base = self.merge_base(branch)
            if base == self.head:
                raise GitError(f"{branch.name} contains HEAD, so the change itself is not checked out")
            return BranchPoint(base, f"the merge base with {branch.name}")
        if change.base:
            return self.point(change.base, f"the start of the change, which {change.service} states")
        name = f"branch {change.target_branch}" if change.target_branch else f"commit {change.target_commit[:12]}"
        advice = self.fetch_advice(branch=change.target_branch, commit=change.target_commit)
        raise GitError(f"{name}, into which the change will be merged, is not in this clone; fetch it: {advice}")

    def _iter_targets(self) -> Iterator[_Branch]:
        """Yield the heads of the target branch that the clone has, the most precise first."""
        stated = self.repository.find(self.change.target_commit)
        if stated is not None:
            yield _Branch(self.change.target_branch or f"commit {stated[:12]}", stated)
        fetched = self._find_branch(self.change.target_branch)
        if fetched is not None:
            yield fetched

    def find_default_branch(self) -> _Branch | None:
        """Return the default branch: as the CI service states it, as the remote names it, or the only usual one."""
        stated = self.change.default_branch
        if stated:
            branch = self._find_branch(stated)
            if branch is None:
                advice = self.fetch_advice(branch=stated)
                raise GitError(f"the default branch {stated} is not in this clone; fetch it: {advice}")
            return branch
        named = self._find_branch("HEAD") if self.remote else None
        if named is not None:
            return named
        usual = [branch for name in _USUAL_DEFAULT_BRANCHES if (branch := self._find_branch(name)) is not None]
        return usual[0] if len(usual) == 1 else None

    def _find_branch(self, name: str) -> _Branch | None:
        """Return a branch of the remote or, without a remote, a local branch. If there is none, return None."""
        prefix, shown = (f"refs/remotes/{self.remote}/", f"{self.remote}/") if self.remote else ("refs/heads/", "")
        commit = self.repository.find(f"{prefix}{name}") if name else None
        return None if commit is None else _Branch(f"{shown}{name}", commit)

    def merge_base(self, branch: _Branch) -> str:
        """Return the merge base of HEAD and a branch. Raises GitError with the advice that fetches more history."""
        try:
            return self.repository.merge_base(branch.commit, self.head)
        except GitError as error:
            raise GitError(f"no merge base with {branch.name}: {error}; fetch more: {self.fetch_advice()}") from error

    def find_last_analysed(self, branch: _Branch, analysed: Collection[str]) -> BranchPoint:
        """Return the base of a commit of the default branch: the nearest earlier head that was analysed.

        Without one, it is the previous commit. In CI, a push can have several commits, so the base is unknown then.
        """
        ancestors = self.repository.ancestors(self.head, first_parents=True)[1:] if analysed else ()
        last = next((ancestor for ancestor in ancestors if ancestor in analysed), None)
        if last is not None:
            return BranchPoint(last, f"the last analysed commit before HEAD, because {branch.name} contains HEAD")
        if self.change.is_in_ci:
            service = self.change.service or "the CI service"
            raise NoBranchPoint(f"{branch.name} contains HEAD, and {service} does not state the head before the push")
        return self.point(self.parents[0], f"the commit before HEAD, because {branch.name} contains HEAD", depth=2)

    def fetch_advice(self, *, branch: str = "", commit: str = "", depth: int = 0) -> str:
        """Return the git command that fetches a branch, a commit or the history, and the setting of the CI service.

        `depth` is the number of commits that the setting must request; 0 means all.
        """
        remote, is_shallow = self.remote or "origin", self.repository.is_shallow
        # A single-branch clone fetches a branch only if the command names it.
        what = [f"+refs/heads/{branch}:refs/remotes/{remote}/{branch}"] if branch else [commit] if commit else []
        limit = [] if not is_shallow else ["--depth=1"] if commit and not branch else ["--unshallow"]
        command = shlex.join(["git", "fetch", *limit, remote, *what])
        setting = self.change.clone_setting.format(depth) if is_shallow or branch else ""
        return f"{command}, or {setting}" if setting else command
