"""What a question was asked of, for who is told that nothing was found."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from codebatch.model.record_counts import add_counts
from codebatch.operations.queries.batch_query import BatchQuery


class SearchedVolume(msgspec.Struct, frozen=True):
    """So many records, by now, of so many files; None where nobody has come to all of these yet."""

    records: int
    files: int | None


def searched_volume(question: BatchQuery, kinds: Collection[str], task: str | None = None) -> SearchedVolume:
    """How many records there are of some kinds, of one task where one is named; from counts. Raises StoreCorrupt."""
    records = question.records
    total = add_counts(records.counts(name) for name in records.choose_tasks(task)).kinds
    is_running = records.source.files_done(()) is not None
    return SearchedVolume(sum(total.get(kind, 0) for kind in kinds), None if is_running else question.batch.about.items)
