"""How often the files of a batch were changed in the last year."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from codebatch.application.asking import Question
from codebatch.model.quantities import count_of


class Churn(NamedTuple):
    """How often files were changed in the year before the newest commit, those not named not at all.

    `changes` is None where there is no history; `told` says why, or how much of the year it lacks, and is empty where
    it is whole.
    """

    changes: Mapping[bytes, int] | None
    told: str = ""


def churn(question: Question) -> Churn:
    """How often each file of a batch was changed, as the work tree that it was taken of has it now."""
    sources = question.batch.about.sources
    if not sources:
        return Churn(None, "changes are not known: nor is the tree that the batch is of")
    directory = sources[0] if len(sources) == 1 else os.path.commonpath(sources)
    if not os.path.isdir(directory):
        return Churn(None, "changes are not known: the tree that the batch is of is not there")
    if not is_in_repository(directory):
        return Churn(None, "changes are not known: the tree is in no git repository")
    from codebatch.application.kept_history import GitError, find_history  # 8 ms, with `subprocess`

    try:
        head, history = find_history(question.store, directory)
    except GitError as error:
        return Churn(None, f"changes are not known: {error}")
    told = ""
    if history.is_cut:
        told = f"changes are those of the last {count_of(history.commits, 'commit')} alone, and not of a year"
    elif head.is_shallow:
        told = f"changes are those of {count_of(history.commits, 'commit')} alone: the repository is shallow"
    return Churn(history.changes, told)


def is_in_repository(directory: bytes) -> bool:
    """Whether there is a `.git` in a directory or above it."""
    while not os.path.lexists(os.path.join(directory, b".git")):
        if directory == (directory := os.path.dirname(directory)):
            return False
    return True
