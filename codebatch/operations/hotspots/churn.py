"""The change frequency of the files of a batch: how often each file was changed in the last year."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from codebatch.model.text.quantities import count_text
from codebatch.operations.history.function_history import count_file_changes
from codebatch.operations.history.history_cache import CommitHistory, GitError, find_history
from codebatch.operations.queries.batch_query import BatchQuery


class FileChurn(msgspec.Struct, frozen=True):
    """The number of commits that changed each file in the year before the newest commit.

    Files that were not changed have no entry. Renamed files are followed. If there is no history, `changes` and
    `history` are None and `note` has the reason. If the history is incomplete, `note` describes which part of the year
    it covers. Otherwise, `note` is empty.
    """

    changes: Mapping[bytes, int] | None
    note: str = ""
    history: CommitHistory | None = None

    @property
    def is_cut(self) -> bool:
        """Whether a part of the history has not been read yet. The next query continues to read."""
        return self.history is not None and self.history.is_cut


def read_churn(question: BatchQuery) -> FileChurn:
    """Return the number of changes of each file of a batch, according to its work tree."""
    head = question.newest_commit
    if isinstance(head, str):
        return FileChurn(None, head)
    try:
        directory = os.path.commonpath(question.batch.about.sources)
        history = find_history(question.store, directory, head, question.on_phase)
    except GitError as error:
        return FileChurn(None, f"change frequency unknown: {error}")
    note = ""
    commits = count_text(history.changed_commits, "commit")
    if history.is_cut:
        note = f"change frequency covers only the last {commits} instead of a year; the next query reads more"
    elif head.is_shallow:
        note = f"change frequency covers only {commits}: the clone is shallow"
    return FileChurn(count_file_changes(history.commits), note, history)
