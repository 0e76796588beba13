"""How often the files of a batch were changed in the last year."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from codebatch.model.text.quantities import count_of
from codebatch.operations.queries.batch_query import BatchQuery

if TYPE_CHECKING:
    from codebatch.operations.history.history_cache import KeptHistory


class Churn(msgspec.Struct, frozen=True):
    """How often files were changed in the year before the newest commit, those not named not at all.

    A file that was renamed is followed. `changes` and `history` are None where there is no history; `told` says why,
    or how much of the year it lacks, and is empty where it is whole.
    """

    changes: Mapping[bytes, int] | None
    told: str = ""
    history: KeptHistory | None = None

    @property
    def is_cut(self) -> bool:
        """Whether the next question reads more of the history."""
        return self.history is not None and self.history.is_cut


def churn(question: BatchQuery) -> Churn:
    """How often each file of a batch was changed, as the work tree that it was taken of has it now."""
    head = question.newest_commit
    if isinstance(head, str):
        return Churn(None, head)
    from codebatch.operations.history.function_history import count_file_changes
    from codebatch.operations.history.history_cache import GitError, find_history

    try:
        directory = os.path.commonpath(question.batch.about.sources)
        history = find_history(question.store, directory, head, question.tell_phase)
    except GitError as error:
        return Churn(None, f"change frequency unknown: {error}")
    told = ""
    commits = count_of(history.changed_commits, "commit")
    if history.is_cut:
        told = f"change frequency covers only the last {commits} instead of a year; the next query reads more"
    elif head.is_shallow:
        told = f"change frequency covers only {commits}: the clone is shallow"
    return Churn(count_file_changes(history.commits), told, history)
