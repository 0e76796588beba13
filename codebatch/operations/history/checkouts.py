"""Of which commit the tree of a batch is, and whether it is that commit's and nothing else."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence

from codebatch.git.checkout import AskedCheckout
from codebatch.git.history import begins_in, find_head
from codebatch.git.repository import GitError, find_git
from codebatch.operations import Note
from codebatch.operations.history.newest_commit import is_in_repository
from codebatch.operations.project.project_snapshot import ProjectSnapshot
from codebatch.store.batches.batches import NO_CHECKOUT, Checkout


def repository_of(sources: Sequence[bytes]) -> tuple[str, bytes] | None:
    """git, and the directory that a batch is of, where that is one and in a work tree; else None."""
    directory = sources[0] if len(sources) == 1 else b""
    if not (directory and os.path.isdir(directory) and is_in_repository(directory)):
        return None
    git = find_git()
    return None if git is None else (git, directory)


def find_commit(sources: Sequence[bytes]) -> str:
    """The newest commit of a work tree; empty where there is none, or git cannot tell."""
    found = repository_of(sources)
    with contextlib.suppress(GitError):
        return "" if found is None else find_head(*found).commit
    return ""


@contextlib.contextmanager
def asking_checkout(frozen: ProjectSnapshot, commit: str, note: Note) -> Iterator[Callable[[], Checkout]]:
    """What tells, when it is called, whether what was frozen is what a commit has: git is at work on that meanwhile.

    What git cannot tell is not clean, and a note says why.
    """
    found = repository_of(frozen.sources) if commit else None
    if found is None:
        yield lambda: NO_CHECKOUT
        return
    git, directory = found
    asked: AskedCheckout | None = None

    def answer() -> Checkout:
        if asked is None:
            return Checkout(commit, False)
        try:
            is_clean = asked.is_clean(entry.path for entry in frozen.snapshot.entries)
            return Checkout(commit, is_clean and find_head(git, directory).commit == commit)
        except GitError as error:
            note(f"cannot tell whether the working tree is clean: {error}")
            return Checkout(commit, False)

    try:
        asked = AskedCheckout(git, directory, is_top=begins_in(directory))
    except GitError as error:
        note(f"cannot tell whether the working tree is clean: {error}")
    try:
        yield answer
    finally:
        if asked is not None:
            asked.close()
