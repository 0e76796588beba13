"""The commit of a batch's tree, and whether the tree equals that commit."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from codebatch.git.checkout import CheckoutComparison
from codebatch.git.history import find_head, is_repository_top
from codebatch.git.repository import GitError, find_git
from codebatch.operations import NoteCallback
from codebatch.snapshotting.walk import work_tree_around
from codebatch.store.batches.batch_directory import NO_CHECKOUT, Checkout

if TYPE_CHECKING:
    from codebatch.operations.project.project_snapshot import ProjectSnapshot


def find_source_repository(sources: Sequence[bytes]) -> tuple[str, bytes] | None:
    """Return the path of the git executable and the source directory of a batch.

    Return None if the batch has several sources, if git is not installed, or if the source is not in a work tree.
    """
    directory = sources[0] if len(sources) == 1 else b""
    if not (directory and os.path.isdir(directory) and work_tree_around(directory) is not None):
        return None
    git = find_git()
    return None if git is None else (git, directory)


def find_commit(sources: Sequence[bytes]) -> str:
    """Return the commit at HEAD of a work tree, or an empty string if it is unknown."""
    repository_and_directory = find_source_repository(sources)
    with contextlib.suppress(GitError):
        return "" if repository_and_directory is None else find_head(*repository_and_directory).commit
    return ""


@contextlib.contextmanager
def comparing_checkout(frozen: ProjectSnapshot, commit: str, note: NoteCallback) -> Iterator[Callable[[], Checkout]]:
    """Start to compare a snapshot with a commit. Yield a function that waits for git and returns the result.

    If git fails, the result is a checkout that is not clean, and a note has the reason.
    """
    repository_and_directory = find_source_repository(frozen.sources) if commit else None
    if repository_and_directory is None:
        yield lambda: NO_CHECKOUT
        return
    git, directory = repository_and_directory
    checkout_query: CheckoutComparison | None = None

    def answer() -> Checkout:
        if checkout_query is None:
            return Checkout(commit, False)
        try:
            is_clean = checkout_query.is_clean(entry.path for entry in frozen.snapshot.entries)
            return Checkout(commit, is_clean and find_head(git, directory).commit == commit)
        except GitError as error:
            note(f"cannot tell whether the working tree is clean: {error}")
            return Checkout(commit, False)

    try:
        checkout_query = CheckoutComparison(git, directory, is_top=is_repository_top(directory))
    except GitError as error:
        note(f"cannot tell whether the working tree is clean: {error}")
    try:
        yield answer
    finally:
        if checkout_query is not None:
            checkout_query.close()
