"""The records of a batch, merged or not: from the outputs where they are merged, else from the outcomes so far."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from itertools import chain
from typing import NamedTuple

from codebatch.engine.ledger import Ledger, Link
from codebatch.errors import InvalidInput
from codebatch.model.entry import Entry
from codebatch.model.outcome import Counts, add_counts
from codebatch.model.plan import Plan, items_of
from codebatch.model.task import task_name
from codebatch.query.filters import JsonRecord, RecordFilter, decode_records
from codebatch.store.batches import Batch, snapshot_of
from codebatch.store.ledgers import load_ledger
from codebatch.store.outcomes import Outcomes
from codebatch.store.outputs import Outputs, TaskOutput, current_outputs
from codebatch.store.snapshots import Snapshot
from codebatch.store.store import Store


class ShardSoFar(NamedTuple):
    """What a task said of a shard by now: how many items have an outcome, how many of them failed, its counts."""

    items: int
    failed: int
    counts: Counts


class BatchRecords:
    """Reads one batch."""

    def __init__(self, store: Store, batch: Batch) -> None:
        self.store = store
        self.batch = batch
        self.outputs: Outputs | None = current_outputs(batch)
        self._outcomes = Outcomes(batch.files, batch.root)

    @cached_property
    def plan(self) -> Plan:
        """The batch's plan."""
        return self.batch.plan()

    @cached_property
    def snapshot(self) -> Snapshot:
        """The batch's snapshot."""
        return snapshot_of(self.store, self.batch)

    @cached_property
    def items(self) -> list[Entry]:
        """What the batch works on, in path order."""
        return items_of(self.snapshot.entries, self.batch.about.paths)

    @cached_property
    def ledger(self) -> Ledger:
        """What the registers say; read only where nothing is merged yet."""
        return load_ledger(self.plan, self._outcomes)

    @property
    def is_done(self) -> bool:
        """Whether every task has a result of every item. False also where that would have to be looked for."""
        return self.outputs is not None and not any(t.failed + t.cancelled for t in self.outputs.manifest.tasks)

    @property
    def task_names(self) -> tuple[str, ...]:
        """The batch's tasks, in plan order."""
        return tuple(task.task for task in self.outputs.manifest.tasks) if self.outputs else self.plan.task_names

    @property
    def project_tasks(self) -> tuple[str, ...]:
        """Those of project scope."""
        if self.outputs is None:
            return self.plan.project_tasks
        return tuple(task.task for task in self.outputs.manifest.tasks if task.scope == "project")

    def choose_tasks(self, asked: str | None) -> tuple[str, ...]:
        """The tasks to read: the one asked for, or all. Raises InvalidInput for one that the batch has not."""
        if asked is None:
            return self.task_names
        if task_name(asked) not in self.task_names:
            raise InvalidInput(f"the batch has no task {asked!r}", hint=f"one of: {', '.join(self.task_names)}")
        return (task_name(asked),)

    def counts(self, task: str) -> Counts:
        """The counts of a task's records so far."""
        return add_counts(counts for counts, _ in self._pieces(task))

    def iter_records(self, task: str, asked: RecordFilter) -> Iterator[JsonRecord]:
        """The records of a task that are asked for, in output order. Raises StoreCorrupt."""
        for counts, read in self._pieces(task):
            if asked.may_match(counts):
                yield from asked.iter_matching(read())

    def iter_shards(self, task: str) -> Iterator[ShardSoFar]:
        """How far a task is with each shard of files, in path order; from the manifest where the outputs are merged."""
        if (output := self._output(task)) is not None:
            for planned, shard in zip(self.plan.shards, output.shards, strict=False):
                yield ShardSoFar(planned.items, shard.failed, shard.counts)
            return
        for planned in self.plan.shards:
            links = list(self.ledger.walk(planned.id, task))
            yield ShardSoFar(
                sum(link.end - link.start for link in links),
                sum(link.type == "failed" for link in links),
                add_counts(link.outcome.counts for link in links),
            )

    def item_records(self, task: str, item: int) -> list[JsonRecord] | None:
        """The records of one item; None where the task has not come to it yet. Raises StoreCorrupt."""
        index = bisect.bisect_right(self._shard_starts, item) - 1
        shard = self.plan.shards[index]
        if self.outputs is not None and (output := self._output(task)) is not None:
            lines = self.outputs.item_records(output, item, self._shard_starts)
        else:
            place = item - shard.start
            link = next((link for link in self.ledger.walk(shard.id, task) if link.start <= place < link.end), None)
            if link is None:
                return None
            lines = self._outcomes.read_item(link.segment, link.outcome, place - link.start)
        return decode_records(lines)

    def find_item(self, path: bytes) -> int | None:
        """The item at a path."""
        if not self.batch.about.paths:
            return self.snapshot.find_item(path)
        place = bisect.bisect_left(self.items, path, key=lambda entry: entry.path)
        return place if place < len(self.items) and self.items[place].path == path else None

    @cached_property
    def _shard_starts(self) -> list[int]:
        return [shard.start for shard in self.plan.shards]

    def _output(self, task: str) -> TaskOutput | None:
        """The merged output of a task; None where nothing is merged yet."""
        if self.outputs is None:
            return None
        output = self.outputs.manifest.task(task)
        assert output is not None, "the manifest names the tasks that there are"
        return output

    def _pieces(self, task: str) -> Iterator[tuple[Counts, Callable[[], Iterator[bytes]]]]:
        """The counts of a task's records and how to read them in blocks of whole lines, shard by shard."""
        if self.outputs is not None and (output := self._output(task)) is not None:
            for index, shard in enumerate(output.shards):
                yield shard.counts, partial(self.outputs.iter_shard, output, index)
            return
        for _, links in self.ledger.pieces(task):
            yield add_counts(link.outcome.counts for link in links), partial(self._read, links)

    def _read(self, links: Iterable[Link]) -> Iterator[bytes]:
        return chain.from_iterable(self._outcomes.iter_items(link.segment, link.outcome) for link in links)
