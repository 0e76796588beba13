"""The commit at HEAD of a batch's work tree."""

from __future__ import annotations

import os
from collections.abc import Sequence

from codebatch.git.history import HeadCommit
from codebatch.snapshotting.walk import work_tree_around


def find_newest_commit(sources: Sequence[bytes]) -> HeadCommit | str:
    """Return the commit at HEAD of the work tree with a batch's sources, or the reason why it is unknown."""
    if not sources:
        return "change frequency unknown: the files of the batch are not in a git work tree"
    directory = os.path.commonpath(sources)
    if not os.path.isdir(directory):
        return "change frequency unknown: the directory of the batch does not exist"
    if work_tree_around(directory) is None:
        return "change frequency unknown: the directory is not in a git repository"
    from codebatch.operations.history.history_cache import (
        GitError,
        find_newest,
    )  # Deferred: rarely needed.

    try:
        return find_newest(directory)
    except GitError as error:
        return f"change frequency unknown: {error}"
