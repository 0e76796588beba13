"""Reused results of a unit: record lines from older batches for the items of this unit (SPEC.md "Reuse")."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from codebatch.model.analysis.record_counting import count_lines
from codebatch.model.record_counts import RecordCounts, add_counts, subtract_counts
from codebatch.protocol.messages import ReusedRange
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.damage import treating_damage_as_missing
from codebatch.store.results.bases import ReuseBase, open_base


class ReusedLines(msgspec.Struct, frozen=True):
    """Record lines to commit without executing a task, by task and item of a shard.

    `counts` has two values for each task: the number of its reused items, and the counts of all their records.
    """

    lines: dict[tuple[str, int], bytes]
    counts: dict[str, tuple[int, RecordCounts]]

    def missing_tasks(self, tasks: Sequence[str], start: int, end: int) -> dict[int, Sequence[str]]:
        """Map each item in [start, end) to the tasks that must be executed, because they have no reused result for it.

        Items for which every task has a reused result are left out.
        """
        items = range(start, end)
        if not self.lines:
            return dict.fromkeys(items, tasks)
        return {
            item: missing for item in items if (missing := [name for name in tasks if (name, item) not in self.lines])
        }


class ReusedBatches:
    """The older batches whose results units may reuse. The coordinator chooses them. Each is opened once."""

    def __init__(self, store: StoreDir) -> None:
        self._store = store
        self._bases: dict[str, ReuseBase | None] = {}

    def find(self, served: Sequence[ReusedRange], start: int, end: int) -> ReusedLines:
        """Return the reused results of items [start, end). Missing and damaged results are left out.

        `served` names the older batches, and the items for which each has results.
        """
        reused = ReusedLines({}, {})
        items: dict[str, dict[str, set[int]]] = {}
        for run in served:
            first, last = max(run.start, start), min(run.end, end)
            base = self.base(run.base)
            if base is None or first >= last:
                continue
            first_old_item = run.first + first - run.start
            with treating_damage_as_missing():
                lines = base.read_lines(run.task, first_old_item, first_old_item + last - first)
                reused.lines.update(((run.task, first + place), item_lines) for place, item_lines in enumerate(lines))
                items_by_base = items.setdefault(run.task, {})
                items_by_base.setdefault(run.base, set()).update(range(first_old_item, first_old_item + last - first))
        for task, items_by_base in items.items():
            with treating_damage_as_missing():
                counts = [
                    _count_records(base, task, base_items)
                    for id_, base_items in items_by_base.items()
                    if (base := self.base(id_))
                ]
                reused.counts[task] = (sum(map(len, items_by_base.values())), add_counts(counts))
        return reused

    def base(self, batch_id: str) -> ReuseBase | None:
        """Return the older batch with the ID `batch_id`, or None if this batch is missing or damaged."""
        if batch_id not in self._bases:
            self._bases[batch_id] = None
            with treating_damage_as_missing():
                self._bases[batch_id] = open_base(self._store, batch_id)
        return self._bases[batch_id]


def _count_records(base: ReuseBase, task: str, items: Collection[int]) -> RecordCounts:
    """Return the counts of all records that an older batch has for some of its items. Raises StoreCorrupt.

    A stored result covers several items, and its total counts are known. To decode fewer lines, the smaller part of
    these items is counted. If this part is the items that are not in `items`, its counts are subtracted from the total.
    """

    def count_items(some_items: Iterable[int]) -> RecordCounts:
        return count_lines(b"".join(line for item in some_items for line in base.read_lines(task, item, item + 1)))

    parts: list[RecordCounts] = []
    for base_result in base.task_results(task):
        held_items = range(base_result.start, base_result.end)
        reused_items = [item for item in held_items if item in items]
        other_items = [item for item in held_items if item not in items] if reused_items else []
        if len(other_items) < len(reused_items):
            parts.append(subtract_counts(base_result.counts, count_items(other_items)))
        elif reused_items:
            parts.append(count_items(reused_items))
    return add_counts(parts)
