"""What a unit need not do: the lines that older batches hold of its items (SPEC.md "Reuse")."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from codebatch.model.analysis.record_counting import count_lines
from codebatch.model.record_counts import Counts, add_counts, subtract_counts
from codebatch.protocol.messages import Served
from codebatch.store.batches.store import StoreDir
from codebatch.store.damage import treating_damage_as_missing

if TYPE_CHECKING:
    from codebatch.store.results.bases import ReuseBase


class ReusedLines(msgspec.Struct, frozen=True):
    """By task and item of a shard, record lines as they are to be committed.

    `counts`: of each task how many items these are of, and the counts of all of them.
    """

    lines: dict[tuple[str, int], bytes]
    counts: dict[str, tuple[int, Counts]]

    def wanted(self, tasks: Sequence[str], start: int, end: int) -> dict[int, Sequence[str]]:
        """Of items [start, end) the tasks that nothing is served of; no item of which everything is."""
        items = range(start, end)
        if not self.lines:
            return dict.fromkeys(items, tasks)
        return {item: rest for item in items if (rest := [name for name in tasks if (name, item) not in self.lines])}


class Bases:
    """The older batches that a worker was told of, each opened once."""

    def __init__(self, store: StoreDir) -> None:
        self._store = store
        self._bases: dict[str, ReuseBase | None] = {}

    def find(self, served: Sequence[Served], start: int, end: int) -> ReusedLines:
        """All that is served of items [start, end). What cannot be read, or is not what was written, is not served."""
        found = ReusedLines({}, {})
        items: dict[str, dict[str, set[int]]] = {}
        for run in served:
            first, last = max(run.start, start), min(run.end, end)
            base = self.base(run.base)
            if base is None or first >= last:
                continue
            skipped = run.first + first - run.start
            with treating_damage_as_missing():
                lines = base.lines(run.task, skipped, skipped + last - first)
                found.lines.update(((run.task, first + place), each) for place, each in enumerate(lines))
                of_bases = items.setdefault(run.task, {})
                of_bases.setdefault(run.base, set()).update(range(skipped, skipped + last - first))
        for task, of_bases in items.items():
            with treating_damage_as_missing():
                counts = [_counts(base, task, taken) for id_, taken in of_bases.items() if (base := self.base(id_))]
                found.counts[task] = (sum(map(len, of_bases.values())), add_counts(counts))
        return found

    def base(self, batch_id: str) -> ReuseBase | None:
        """An older batch; None where it is gone or cannot be read."""
        if batch_id not in self._bases:
            from codebatch.store.results.bases import open_base  # 4 ms of a worker that is told of none

            self._bases[batch_id] = None
            with treating_damage_as_missing():
                self._bases[batch_id] = open_base(self._store, batch_id)
        return self._bases[batch_id]


def _counts(base: ReuseBase, task: str, items: Collection[int]) -> Counts:
    """The counts of what a task says of some items of a base, which has results of them. Raises StoreCorrupt.

    Counted are the items, or the others of their results, whichever are fewer.
    """

    def counted(some: Iterable[int]) -> Counts:
        return count_lines(b"".join(line for item in some for line in base.lines(task, item, item + 1)))

    found: list[Counts] = []
    for held in base.held(task):
        every = range(held.start, held.end)
        inside = [item for item in every if item in items]
        others = [item for item in every if item not in items] if inside else []
        if len(others) < len(inside):
            found.append(subtract_counts(held.counts, counted(others)))
        elif inside:
            found.append(counted(inside))
    return add_counts(found)
