"""Bases: older batches from which results are reused. The cache consists of these batches (SPEC.md "Reuse")."""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, takewhile
from pathlib import Path

import msgspec

from codebatch.errors import StoreCorrupt, StoreError, UnknownId
from codebatch.model.analysis.result_key import PlanItems, result_key
from codebatch.model.digest import DIGEST_PATTERN, Digest
from codebatch.model.entry import Entry, SnapshotId
from codebatch.model.outcome import OutcomeType, TaskOutcome
from codebatch.model.plan import Plan, PlannedTask, plan_items
from codebatch.model.record_counts import RecordCounts
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir, BatchId, iter_batches, load_batch_snapshot, open_batch
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.objects.referenced_objects import may_name_objects, objects_named_in
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.results.outputs import TaskOutput, current_outputs
from codebatch.store.snapshots.snapshots import Snapshot

BASES_MAX = 4
"""Maximum number of bases of a batch."""


class ShardPlace(msgspec.Struct, frozen=True):
    """A shard file: `length` bytes of frames, which contain `bytes` bytes of records, and the digest of its trailer."""

    path: Path
    length: int
    bytes: int
    digest: Digest
    counts: RecordCounts


class SnapshotItems(msgspec.Struct, frozen=True):
    """A snapshot with all its items, in path order."""

    snapshot: Snapshot
    items: Sequence[Entry]


class BaseResults(msgspec.Struct, frozen=True):
    """The results of a task for the items [start, end) of the plan of a base.

    - `file`: the shard file that has the results of exactly these items, or None if there is no such file.
    - `read()` yields the record lines of each item. Raises StoreCorrupt.
    - `uncovered_inputs`: a description of inputs that the cache key does not cover. If it is not empty, the results
      must not be reused.
    """

    start: int
    end: int
    counts: RecordCounts
    file: ShardPlace | None
    read: Callable[[], Iterator[bytes]]
    uncovered_inputs: str


class ReuseBase:
    """A batch from which other batches reuse results. It may be unmerged, incomplete or failed."""

    def __init__(self, store: StoreDir, batch: BatchDir) -> None:
        """Open the outputs of the batch. Raises StoreError."""
        self._store = store
        self._batch = batch
        self._outputs = current_outputs(batch)
        self._plan: Plan | None = None
        self._outcomes = OutcomeRegisters(batch.files, batch.root)
        self._ledger: OutcomeLedger | None = None
        self._objects: ObjectStore | None = None
        self._cached_results: dict[str, list[BaseResults]] = {}
        self._last_lines: dict[str, tuple[int, list[bytes]]] = {}

    @property
    def id(self) -> BatchId:
        """The ID of the batch."""
        return self._batch.id

    @property
    def snapshot_id(self) -> SnapshotId:
        """The ID of the snapshot of the batch."""
        return self._batch.about.snapshot_id

    @property
    def programs(self) -> Mapping[str, Digest]:
        """For each task that calls a program, the digest of the files outside of the project (BatchFile)."""
        return self._batch.about.programs

    @property
    def plan(self) -> Plan:
        """The plan of the batch. Raises StoreError."""
        if self._plan is None:
            self._plan = self._batch.plan()
        return self._plan

    def items(self, shared_items: SnapshotItems | None = None) -> PlanItems:
        """Return the items of the plan with their contexts. Raises StoreError.

        `shared_items` is another snapshot with its items. Entries that both snapshots have are taken from there and not
        decoded again.
        """
        snapshot = load_batch_snapshot(self._store, self._batch)
        if shared_items is None or self.plan.paths:
            return PlanItems(plan_items(snapshot.entries, self.plan.paths), self.plan.contexts)
        return PlanItems(snapshot.items_sharing_frames(shared_items.snapshot, shared_items.items), self.plan.contexts)

    def task_results(self, task: str) -> list[BaseResults]:
        """Return all results of a task, in path order, grouped by ranges of items. Raises StoreError."""
        if task not in self._cached_results:
            self._cached_results[task] = list(self._iter_results(task))
        return self._cached_results[task]

    def find_shard_file(self, task: str, start: int, end: int) -> ShardPlace | None:
        """Return the shard file with a task's results for exactly the items [start, end), or None.

        Raises StoreError.
        """
        result = self.results_at(task, start)
        return result.file if result is not None and (result.start, result.end) == (start, end) else None

    def items_with_missing_objects(self, task: str) -> set[int]:
        """Return the items whose records of a task name an object that is not in the store. Raises StoreError."""
        items: set[int] = set()
        for result in self.task_results(task):
            if may_name_objects(result.counts):
                # If the results are damaged, the caller that reuses them gets the same error.
                with contextlib.suppress(StoreCorrupt, ValueError):
                    lines = enumerate(result.read(), result.start)
                    items.update(item for item, line in lines if not all(map(self._has_object, objects_named_in(line))))
        return items

    def _has_object(self, name: str) -> bool:
        if self._objects is None:
            self._objects = self._store.objects()
        return DIGEST_PATTERN.match(name) is not None and self._objects.has_key(bytes.fromhex(name))

    def has_all_results(self, task: str) -> bool:
        """Return whether every item has a result of a task. Raises StoreError."""
        return sum(results.end - results.start for results in self.task_results(task)) == self.plan.item_count

    def item_state(self, task: str, item: int) -> OutcomeType | None:
        """Return how a task ended for an item of this batch's plan, or None if it has no outcome. Raises StoreError."""
        if self.results_at(task, item) is not None:
            return "result"
        shards = self.plan.shards
        shard = shards[bisect.bisect_right(shards, item, key=lambda candidate: candidate.start) - 1]
        links = self._read_ledger().iter_links(shard.id, task)
        return next((link.type for link in links if link.start <= item - shard.start < link.end), None)

    def read_lines(self, task: str, start: int, end: int) -> list[bytes]:
        """Return the verified record lines of a task for each of the items [start, end).

        Raises StoreCorrupt if lines are damaged or an item has no result.
        """
        result: list[bytes] = []
        while start < end:
            base_result = self.results_at(task, start)
            if base_result is None:
                raise StoreCorrupt(f"batch {self.id} has no result of task {task} for item {start} of its plan")
            last_start, lines = self._last_lines.get(task, (-1, []))
            if last_start != base_result.start:
                lines = list(base_result.read())
                self._last_lines[task] = (base_result.start, lines)
            last = min(end, base_result.end)
            result += lines[start - base_result.start : last - base_result.start]
            start = last
        return result

    def results_at(self, task: str, item: int) -> BaseResults | None:
        """Return the results of a task that include an item of this batch's plan, or None. Raises StoreError."""
        results = self.task_results(task)
        place = bisect.bisect_right(results, item, key=lambda each: each.start) - 1
        return results[place] if place >= 0 and item < results[place].end else None

    def _read_ledger(self) -> OutcomeLedger:
        if self._ledger is None:
            self._ledger = load_ledger(self.plan, self._outcomes)
        return self._ledger

    def _iter_results(self, task: str) -> Iterator[BaseResults]:
        output = self._outputs.manifest.task_output(task) if self._outputs is not None else None
        complete = self._complete_shards(output) if output is not None else set()
        for place, shard in enumerate(self.plan.shards):
            if output is not None and place in complete:
                yield self._results_from_merged_output(output, place, shard.start, shard.end)
                continue
            for link in self._read_ledger().iter_links(shard.id, task):
                if link.type == "result":
                    read = partial(self._outcomes.iter_items, link.segment, link.outcome)
                    file = self._adopted_file(link.outcome) if link.outcome.file else None
                    start, end, counts = shard.start + link.start, shard.start + link.end, link.outcome.counts
                    yield BaseResults(start, end, counts, file, read, link.outcome.inputs_outside_key)

    def _complete_shards(self, output: TaskOutput) -> set[int]:
        """Return the indexes of the shards whose output file exists and has a result for every item.

        If the output file of a shard is missing, the registers may still have the results of the shard.
        """
        assert self._outputs is not None
        missing = self._outputs.missing_shards(output)
        with_results_only = {place for place, shard in enumerate(output.shards) if not shard.failed + shard.cancelled}
        return with_results_only.difference(missing)

    def _results_from_merged_output(self, output: TaskOutput, place: int, start: int, end: int) -> BaseResults:
        assert self._outputs is not None
        shard = output.shards[place]
        path = self._outputs.shard_path(output, place)
        file = ShardPlace(path, shard.length, shard.bytes, shard.digest, shard.counts)
        return BaseResults(
            start, end, shard.counts, file, partial(self._outputs.iter_items, output, place), shard.inputs_outside_key
        )

    def _adopted_file(self, outcome: TaskOutcome) -> ShardPlace:
        path = self._outcomes.adopted_path(outcome.file)
        return ShardPlace(path, outcome.length, outcome.bytes, outcome.file, outcome.counts)


def open_base(store: StoreDir, batch_id: str) -> ReuseBase:
    """Open a batch as a base. Raises UnknownId or StoreError."""
    return ReuseBase(store, open_batch(store, batch_id))


def find_bases(
    store: StoreDir, sources: Sequence[bytes], pipeline: str, tasks: Iterable[PlannedTask]
) -> tuple[BatchId, ...]:
    """Return the batches from which a new batch with these sources and this pipeline reuses results, best first.

    Batches with equal sources and equal pipeline come first, then batches with equal sources, then all others. Within
    each of these groups, the latest batch comes first. Batches without any outcome are omitted. At most BASES_MAX are
    returned. `tasks` are the tasks of the new batch.

    A newer batch of another pipeline has results of changed files that older batches of this pipeline do not have. If
    all returned batches were of this pipeline, the last is replaced by the latest newer batch that shares a task.
    """
    scope = (tuple(sources), pipeline)
    batches = list(iter_batches(store))
    candidates = sorted(
        batches,
        key=lambda batch: (_scope(batch) != scope, batch.about.sources != scope[0]),
    )
    chosen = list(islice(filter(_has_results, candidates), BASES_MAX))
    if len(chosen) == BASES_MAX and all(_scope(batch) == scope for batch in chosen):
        newer = takewhile(lambda batch: batch.id != chosen[0].id, batches)
        others = (batch for batch in newer if batch.about.sources == scope[0] and _has_results(batch))
        keys = {result_key(task) for task in tasks}
        sharing = (batch for batch in islice(others, BASES_MAX) if _shares_task(batch, keys))
        chosen[-1] = next(sharing, chosen[-1])
    return tuple(batch.id for batch in chosen)


def _scope(batch: BatchDir) -> tuple[tuple[bytes, ...], str]:
    return batch.about.sources, batch.about.pipeline


def _shares_task(batch: BatchDir, keys: Collection[Digest]) -> bool:
    """Return whether a task of a batch has one of the result keys. False if the plan cannot be read."""
    try:
        return any(result_key(task) in keys for task in batch.plan().tasks)
    except (StoreError, UnknownId):
        return False


def _has_results(batch: BatchDir) -> bool:
    merged = any(DIGEST_PATTERN.match(name) for name in batch.files.listing(batch.root / layout.OUTPUTS))
    return merged or bool(batch.files.listing(batch.root / layout.OUTCOMES))
