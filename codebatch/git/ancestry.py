"""Ancestors of commits in a git work tree. git is run as repository.py describes.

Commits in queries come from a store or the environment, and results come from an untrusted repository. So only texts
with the form of a full commit hash are accepted as commits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from codebatch.git.history import find_head, is_repository_top
from codebatch.git.repository import GitError, query_git

ANCESTORS_MAX = 100_000

_GIT_SECONDS_MAX = 30.0
_COMMIT_HASH = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z", re.ASCII)


class Repository(NamedTuple):
    """A git work tree: the path of the git program, and a directory in the work tree."""

    git_program: str
    directory: bytes

    @property
    def is_shallow(self) -> bool:
        """True if the clone lacks the history before some commit. False if git does not report this."""
        try:
            return find_head(self.git_program, self.directory).is_shallow
        except GitError:
            return False

    def parents(self, commit: str) -> list[str]:
        """Return the parents of a commit, even if they are missing from the repository. Raises GitError."""
        head = self.query("cat-file", "commit", _check_commit(commit)).partition(b"\n\n")[0]
        names = (line.removeprefix(b"parent ") for line in head.split(b"\n") if line.startswith(b"parent "))
        return [_check_commit(name.decode("ascii", "replace")) for name in names]

    def find(self, reference: str) -> str | None:
        """Return the full hash of the commit that a reference names, or None.

        A reference that looks like an option or contains unprintable characters is not passed to git; the result is
        None.
        """
        if not reference or reference.startswith("-") or not reference.isprintable():
            return None
        try:
            return _first_commit(self.query("rev-parse", "--verify", "--quiet", f"{reference}^{{commit}}"))
        except GitError:
            return None

    def merge_base(self, one: str, other: str) -> str:
        """Return the best common ancestor of two commits. Raises GitError if there is none."""
        try:
            return _first_commit(self.query("merge-base", _check_commit(one), _check_commit(other)))
        except GitError as error:
            raise GitError("they have no common commit in this clone") from error

    @property
    def remote(self) -> str:
        """The remote: `origin`, or the only one. Empty if there is none, or if several have other names."""
        try:
            references = self.query("for-each-ref", "--format=%(refname:lstrip=2)", "refs/remotes").split(b"\n")
            names = {*self.query("remote").split(b"\n"), *(name.partition(b"/")[0] for name in references)} - {b""}
        except GitError:
            return ""
        return os.fsdecode(b"origin" if b"origin" in names else names.pop() if len(names) == 1 else b"")

    def ancestors(self, commit: str, *, first_parents: bool = False) -> Sequence[str]:
        """Return a commit and its ancestors, nearest first, at most ANCESTORS_MAX. Raises GitError.

        With `first_parents`, only the first parent of a merge is followed.
        """
        options = [f"--max-count={ANCESTORS_MAX}", *["--first-parent"] * first_parents]
        output = self.query("rev-list", *options, _check_commit(commit), "--")
        return output.decode("ascii", "replace").split()

    def query(self, *arguments: str | bytes) -> bytes:
        """Return the output of a git command. Raises GitError."""
        return query_git(
            self.git_program, self.directory, arguments, _GIT_SECONDS_MAX, is_top=is_repository_top(self.directory)
        )


def is_commit(text: str) -> bool:
    """Return whether a text has the form of a full commit hash."""
    return _COMMIT_HASH.match(text) is not None


def _check_commit(commit: str) -> str:
    if not is_commit(commit):
        raise GitError(f"{commit[:80]!r} is not a commit")
    return commit


def _first_commit(output: bytes) -> str:
    return _check_commit(output.decode("ascii", "replace").partition("\n")[0])
