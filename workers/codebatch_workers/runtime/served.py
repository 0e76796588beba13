"""What a unit need not do: the lines that older batches hold of its items (SPEC.md "Reuse")."""

from __future__ import annotations

from collections.abc import Sequence

from codebatch.protocol.messages import Served
from codebatch.store.bases import Base, missing_where_unsound, open_base
from codebatch.store.store import Store

Lines = dict[tuple[str, int], bytes]
"""By task and item of a shard: record lines as they are to be committed."""


class Bases:
    """The older batches that a worker was told of, each opened once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bases: dict[str, Base | None] = {}

    def lines(self, served: Sequence[Served], start: int, end: int) -> Lines:
        """All that is served of items [start, end). What cannot be read, or is not what was written, is not served."""
        found: Lines = {}
        for run in served:
            first, last = max(run.start, start), min(run.end, end)
            base = self.base(run.base)
            if base is None or first >= last:
                continue
            skipped = run.first + first - run.start
            with missing_where_unsound():
                lines = base.lines(run.task, skipped, skipped + last - first)
                found.update(((run.task, first + place), each) for place, each in enumerate(lines))
        return found

    def base(self, batch_id: str) -> Base | None:
        """An older batch; None where it is gone or cannot be read."""
        if batch_id not in self._bases:
            self._bases[batch_id] = None
            with missing_where_unsound():
                self._bases[batch_id] = open_base(self._store, batch_id)
        return self._bases[batch_id]
