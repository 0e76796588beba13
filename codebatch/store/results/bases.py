"""Older batches as what results are taken from: the cache is the batches themselves (SPEC.md "Reuse")."""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec

from codebatch.errors import StoreCorrupt
from codebatch.model.analysis.result_key import Items
from codebatch.model.digest import DIGEST_PATTERN, Digest
from codebatch.model.entry import Entry, SnapshotId
from codebatch.model.outcome import Outcome, OutcomeType
from codebatch.model.plan import Plan, items_of
from codebatch.model.record_counts import Counts
from codebatch.scheduling.analysis.ledger import Ledger
from codebatch.store import layout
from codebatch.store.batches.batches import BatchDir, BatchId, iter_batches, open_batch, snapshot_of
from codebatch.store.batches.store import StoreDir
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.objects.referenced_objects import may_name_objects, objects_named_in
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import Outcomes
from codebatch.store.results.outputs import TaskOutput, current_outputs
from codebatch.store.snapshots.snapshots import Snapshot

BASES_MAX = 4
"""How many a batch has."""


class ShardPlace(msgspec.Struct, frozen=True):
    """A shard file of `length` bytes of frames, which hold `bytes` of records; `digest` is its trailer's."""

    path: Path
    length: int
    bytes: int
    digest: Digest
    counts: Counts


class SnapshotItems(msgspec.Struct, frozen=True):
    """A snapshot, and all items of it."""

    snapshot: Snapshot
    items: Sequence[Entry]


class Held(msgspec.Struct, frozen=True):
    """Results of items [start, end) of a base's plan. `file` holds just these, where one does.

    `read` gives the record lines of each. Raises StoreCorrupt. What is `unkeyed` is not to be taken over.
    """

    start: int
    end: int
    counts: Counts
    file: ShardPlace | None
    read: Callable[[], Iterator[bytes]]
    unkeyed: str


class ReuseBase:
    """A batch that is read for its results, merged or not, whatever became of the rest of it."""

    def __init__(self, store: StoreDir, batch: BatchDir) -> None:
        """Raises StoreError."""
        self._store = store
        self._batch = batch
        self._outputs = current_outputs(batch)
        self._plan: Plan | None = None
        self._outcomes = Outcomes(batch.files, batch.root)
        self._ledger: Ledger | None = None
        self._objects: ObjectStore | None = None
        self._held: dict[str, list[Held]] = {}
        self._at_hand: dict[str, tuple[int, list[bytes]]] = {}

    @property
    def id(self) -> BatchId:
        """The batch's id."""
        return self._batch.id

    @property
    def snapshot_id(self) -> SnapshotId:
        """The id of the snapshot that it is of."""
        return self._batch.about.snapshot_id

    @property
    def plan(self) -> Plan:
        """Its plan. Raises StoreError."""
        if self._plan is None:
            self._plan = self._batch.plan()
        return self._plan

    def items(self, beside: SnapshotItems | None = None) -> Items:
        """What it worked on; what it has in common with another snapshot is not read again. Raises StoreError."""
        snapshot = snapshot_of(self._store, self._batch)
        if beside is None or self.plan.paths:
            return Items(items_of(snapshot.entries, self.plan.paths), self.plan.contexts)
        return Items(snapshot.items_beside(beside.snapshot, beside.items), self.plan.contexts)

    def held(self, task: str) -> list[Held]:
        """All results of a task that there are, in path order. Raises StoreError."""
        if task not in self._held:
            self._held[task] = list(self._find(task))
        return self._held[task]

    def file(self, task: str, start: int, end: int) -> ShardPlace | None:
        """The file of a task's results of just the items [start, end); None where none is. Raises StoreError."""
        found = self._held_at(task, start)
        return found.file if found is not None and (found.start, found.end) == (start, end) else None

    def without_objects(self, task: str) -> set[int]:
        """The items of which a task's records name an object that is not in the store. Raises StoreError."""
        found: set[int] = set()
        for held in self.held(task):
            if may_name_objects(held.counts):
                with contextlib.suppress(StoreCorrupt, ValueError):  # What is damaged is met again by who takes it.
                    lines = enumerate(held.read(), held.start)
                    found.update(item for item, each in lines if not all(map(self._has_object, objects_named_in(each))))
        return found

    def _has_object(self, name: str) -> bool:
        if self._objects is None:
            self._objects = self._store.objects()
        return DIGEST_PATTERN.match(name) is not None and self._objects.has_key(bytes.fromhex(name))

    def has_all(self, task: str) -> bool:
        """Whether it has a result of every item. Raises StoreError."""
        return sum(held.end - held.start for held in self.held(task)) == self.plan.items

    def unkeyed(self, task: str, item: int) -> str:
        """What besides its key a task's result of an item rests on; empty where nothing. Raises StoreError."""
        found = self._held_at(task, item)
        return "" if found is None else found.unkeyed

    def state(self, task: str, item: int) -> OutcomeType | None:
        """How a task ended of an item of its plan; None where it has not. Raises StoreError."""
        if self._held_at(task, item) is not None:
            return "result"
        shards = self.plan.shards
        shard = shards[bisect.bisect_right(shards, item, key=lambda each: each.start) - 1]
        links = self._registers().walk(shard.id, task)
        return next((link.type for link in links if link.start <= item - shard.start < link.end), None)

    def lines(self, task: str, start: int, end: int) -> list[bytes]:
        """The record lines of each of some items, checked. Raises StoreCorrupt, also where it does not hold them."""
        found: list[bytes] = []
        while start < end:
            each = self._held_at(task, start)
            if each is None:
                raise StoreCorrupt(f"{self.id} has no result of {task} for item {start} of its plan")
            known, lines = self._at_hand.get(task, (-1, []))
            if known != each.start:
                lines = list(each.read())
                self._at_hand[task] = (each.start, lines)
            last = min(end, each.end)
            found += lines[start - each.start : last - each.start]
            start = last
        return found

    def _held_at(self, task: str, item: int) -> Held | None:
        held = self.held(task)
        place = bisect.bisect_right(held, item, key=lambda each: each.start) - 1
        return held[place] if place >= 0 and item < held[place].end else None

    def _registers(self) -> Ledger:
        if self._ledger is None:
            self._ledger = load_ledger(self.plan, self._outcomes)
        return self._ledger

    def _find(self, task: str) -> Iterator[Held]:
        output = self._outputs.manifest.task(task) if self._outputs is not None else None
        whole = self._whole(output) if output is not None else set()
        for place, shard in enumerate(self.plan.shards):
            if output is not None and place in whole:
                yield self._merged(output, place, shard.start, shard.end)
                continue
            for link in self._registers().walk(shard.id, task):
                if link.type == "result":
                    read = partial(self._outcomes.iter_items, link.segment, link.outcome)
                    file = self._adopted(link.outcome) if link.outcome.file else None
                    start, end, counts = shard.start + link.start, shard.start + link.end, link.outcome.counts
                    yield Held(start, end, counts, file, read, link.outcome.inputs_outside_key)

    def _whole(self, output: TaskOutput) -> set[int]:
        """The shards whose file is there and holds results alone; where it is lost the registers may know."""
        assert self._outputs is not None
        lacking = self._outputs.lacking(output)
        of_results = {place for place, shard in enumerate(output.shards) if not shard.failed + shard.cancelled}
        return of_results.difference(lacking)

    def _merged(self, output: TaskOutput, place: int, start: int, end: int) -> Held:
        assert self._outputs is not None
        shard = output.shards[place]
        path = self._outputs.path_of(output, place)
        file = ShardPlace(path, shard.length, shard.bytes, shard.digest, shard.counts)
        return Held(
            start, end, shard.counts, file, partial(self._outputs.iter_items, output, place), shard.inputs_outside_key
        )

    def _adopted(self, outcome: Outcome) -> ShardPlace:
        path = self._outcomes.adopted_path(outcome.file)
        return ShardPlace(path, outcome.length, outcome.bytes, outcome.file, outcome.counts)


def open_base(store: StoreDir, batch_id: str) -> ReuseBase:
    """A batch as a base. Raises UnknownId or StoreError."""
    return ReuseBase(store, open_batch(store, batch_id))


def find_bases(store: StoreDir, sources: Sequence[bytes], pipeline: str) -> tuple[BatchId, ...]:
    """The batches that a new one of these sources and this pipeline takes results from, likeliest first.

    Those of both, then of the sources, then any; of each the latest first. Nothing was ever done in a batch without
    outcomes.
    """
    wanted = (tuple(sources), pipeline)
    likeliest = sorted(
        iter_batches(store),
        key=lambda batch: ((batch.about.sources, batch.about.pipeline) != wanted, batch.about.sources != wanted[0]),
    )
    return tuple(batch.id for batch in islice(filter(_has_results, likeliest), BASES_MAX))


def _has_results(batch: BatchDir) -> bool:
    merged = any(DIGEST_PATTERN.match(name) for name in batch.files.listing(batch.root / layout.OUTPUTS))
    return merged or bool(batch.files.listing(batch.root / layout.OUTCOMES))
