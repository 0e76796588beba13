"""The number of records and files that a query searched. It is shown if nothing was found."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from codebatch.model.record_counts import add_counts
from codebatch.operations.queries.batch_query import BatchQuery


class SearchVolume(msgspec.Struct, frozen=True):
    """The number of records and files that a query searched.

    `files` is None while the batch is running, because not all files have results yet.
    """

    records: int
    files: int | None


def count_searched(question: BatchQuery, kinds: Collection[str], task: str | None = None) -> SearchVolume:
    """Return the number of records of some types, for one task or all tasks, from stored counts.

    Raises StoreCorrupt.
    """
    records = question.records
    total = add_counts(records.counts(name) for name in records.choose_tasks(task)).kinds
    is_running = records.source.files_done(()) is not None
    return SearchVolume(sum(total.get(kind, 0) for kind in kinds), None if is_running else question.batch.about.items)
