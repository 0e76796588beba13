"""Which commits came before one, as git tells it. Asked as `git.py` asks.

What is asked for comes from a store or an environment, and what git answers from a repository that anyone may have
made: a commit is one by its form alone, and whatever else is said is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from codebatch.git.history import begins_in, find_head
from codebatch.git.repository import GitError, ask_git

ANCESTORS_MAX = 100_000

_SECONDS = 30.0
_COMMIT = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z", re.ASCII)


class Repository(NamedTuple):
    """A git work tree: the program, and a directory in it."""

    git: str
    directory: bytes

    @property
    def is_shallow(self) -> bool:
        """Tell whether the clone lacks what was before some commit. False if git does not say."""
        try:
            return find_head(self.git, self.directory).is_shallow
        except GitError:
            return False

    def parents(self, commit: str) -> list[str]:
        """The commits that one names as those before it, be they there or not. Raises GitError."""
        head = self._ask("cat-file", "commit", _checked(commit)).partition(b"\n\n")[0]
        named = (line.removeprefix(b"parent ") for line in head.split(b"\n") if line.startswith(b"parent "))
        return [_checked(name.decode("ascii", "replace")) for name in named]

    def find(self, reference: str) -> str | None:
        """Return the full hash of the one commit that a reference resolves to, None if there is none.

        What could be an option, or cannot be printed, is not given to git.
        """
        if not reference or reference.startswith("-") or not reference.isprintable():
            return None
        try:
            return _one(self._ask("rev-parse", "--verify", "--quiet", f"{reference}^{{commit}}"))
        except GitError:
            return None

    def merge_base(self, one: str, other: str) -> str:
        """The best common ancestor of two commits. Raises GitError where there is none, or it is not known."""
        try:
            return _one(self._ask("merge-base", _checked(one), _checked(other)))
        except GitError as error:
            raise GitError("they have no common commit in this clone") from error

    def ancestors(self, commit: str) -> Sequence[str]:
        """A commit and those before it, the nearest first, at most ANCESTORS_MAX. Raises GitError."""
        told = self._ask("rev-list", f"--max-count={ANCESTORS_MAX}", _checked(commit), "--")
        return told.decode("ascii", "replace").split()

    def _ask(self, *arguments: str) -> bytes:
        return ask_git(self.git, self.directory, arguments, _SECONDS, is_top=begins_in(self.directory))


def is_commit(text: str) -> bool:
    """Whether a text can be the full name of a commit."""
    return _COMMIT.match(text) is not None


def _checked(commit: str) -> str:
    if not is_commit(commit):
        raise GitError(f"{commit[:80]!r} is not a commit")
    return commit


def _one(told: bytes) -> str:
    return _checked(told.decode("ascii", "replace").partition("\n")[0])
