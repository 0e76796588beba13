"""Taking over what older batches found: before any work begins, what need not be done again is committed or promised.

A shard of which an older batch holds just the same items is committed here, by a further name of the old file. Of one
that differs in some items the rest is promised: its worker serves them from the older batch, does the others, and
commits once.
"""

from __future__ import annotations

import bisect
import contextlib
import operator
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, islice, pairwise, product
from pathlib import Path

import msgspec
from msgspec.structs import replace

from codebatch.engine.ledger import Ledger
from codebatch.errors import NotInStore, StoreError, StoreUnwritable
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.outcome import Outcome, Unit, add_counts
from codebatch.model.plan import Plan, PlannedTask, contexts_seen
from codebatch.model.result_key import Items, result_key, same_items
from codebatch.model.shard import ProjectWork, Shard, ShardId
from codebatch.protocol.messages import Served
from codebatch.store import layout
from codebatch.store.adoption import share
from codebatch.store.bases import Base, Beside, Held, ShardPlace, open_base
from codebatch.store.batches import Batch
from codebatch.store.ledgers import load_ledger
from codebatch.store.outcomes import Committer, Outcomes
from codebatch.store.shard_files import Trailer, split_shard_file
from codebatch.store.snapshots import Snapshot
from codebatch.store.store import Store
from codebatch.system.task_catalogue import TaskCatalogue

_OUTCOMES_A_COMMIT = 10_000
# A further base is looked at where so much of the work still misses: it takes reading a plan and a snapshot.
_MISSES_WORTH_A_BASE = 1 / 256
# Of what doing it would cost.
_COST_OF_SERVING = 0.05


class Promised(msgspec.Struct):
    """What workers need not do: of each shard and task the runs of items that an older batch has results of."""

    runs: dict[tuple[ShardId, str], list[Served]] = msgspec.field(default_factory=dict)

    def of(self, unit: Unit) -> tuple[Served, ...]:
        """What of it concerns a unit. A unit of a later round does again what was done before."""
        if unit.round > 1:
            return ()
        return tuple(
            run
            for task in unit.tasks
            for run in self.runs.get((unit.shard, task), ())
            if run.start < unit.end and unit.start < run.end
        )

    def lessen(self, costs: Mapping[ShardId, Sequence[float]], tasks: int) -> dict[ShardId, Sequence[float]]:
        """Cumulative estimates of all work, of so many tasks a file, without what need not be done."""
        lessened = dict(costs)
        shares: dict[ShardId, list[float]] = {}
        for (shard, _), runs in self.runs.items():
            of_items = shares.setdefault(shard, [1.0] * (len(costs[shard]) - 1))
            for run in runs:
                for item in range(run.start, run.end):
                    of_items[item] -= (1 - _COST_OF_SERVING) / tasks
        for shard, of_items in shares.items():
            each = (after - before for before, after in pairwise(costs[shard]))
            lessened[shard] = list(accumulate(map(operator.mul, each, of_items), initial=0.0))
        return lessened


class Reuse(msgspec.Struct, frozen=True):
    """The older batches that a batch may take results from. Without any, all is done anew.

    None is taken of the result keys that are `untrusted`. `snapshot` is the batch's.
    """

    store: Store
    catalogue: TaskCatalogue
    bases: tuple[str, ...]
    untrusted: frozenset[Digest] = frozenset()
    snapshot: Snapshot | None = None

    def take_over(
        self,
        batch: Batch,
        plan: Plan,
        items: Items,
        committer: Committer,
        *,
        tasks: frozenset[str] | None,
        shards: frozenset[ShardId] | None,
    ) -> Promised:
        """Commit every shard that an older batch has whole; returns what else need not be done.

        That is of all tasks and shards, or of these. What is committed is on disk on return. A base that is gone or
        damaged has nothing. Raises StoreUnwritable.
        """
        if not self.bases:
            return Promised()
        usable = [task for task in plan.tasks if self._is_usable(plan, task) and (tasks is None or task.name in tasks)]
        beside = Beside(self.snapshot, items.entries) if self.snapshot is not None and not plan.paths else None
        taking = _Taking(batch, plan, items, beside, shards)
        bases = self._opened()
        for base in bases:
            if not taking.is_worth_a_base:
                break
            with _missing_where_unsound():
                taking.look_at(base, [task for task in usable if task.scope == "file"])
        taking.commit(committer)
        alike = [base for base in bases if shards is None and base.snapshot_id == plan.snapshot_id]
        for base, task in product(alike, usable):
            if task.scope == "project":
                with _missing_where_unsound():
                    taking.look_for_project(base, task)
                taking.commit(committer)
        return taking.promised

    def _is_usable(self, plan: Plan, task: PlannedTask) -> bool:
        """Whether a task's results may be taken over: it is not set otherwise, and it is trusted, as is all that a
        project task needs.
        """
        needed = plan.needed_for(task.name) if task.scope == "project" else {task.name}
        keys = {result_key(each) for each in plan.tasks if each.name in needed}
        place = self.catalogue.own_places.get(task.name)
        return (place is None or place.reuse) and keys.isdisjoint(self.untrusted)

    def _opened(self) -> list[Base]:
        bases: list[Base] = []
        for batch_id in self.bases:
            with _missing_where_unsound():
                bases.append(open_base(self.store, batch_id))
        return bases


@contextlib.contextmanager
def _missing_where_unsound() -> Iterator[None]:
    """What of a base cannot be read is not there. Raises StoreUnwritable."""
    try:
        yield
    except StoreUnwritable:
        raise
    except (NotInStore, StoreError):
        pass


class _Taking:
    """What was found in the bases so far."""

    def __init__(
        self, batch: Batch, plan: Plan, items: Items, beside: Beside | None, shards: frozenset[ShardId] | None
    ) -> None:
        self._batch = batch
        self._plan = plan
        self._items = items
        self._beside = beside
        self._seen = contexts_seen(plan.tasks)
        self._outcomes = Outcomes(batch.files, batch.root)
        ledger = self._ledger()
        self._adopted: list[Outcome] = []
        self.promised = Promised()
        holes = {
            (shard, task): ledger.holes(shard, task)
            for shard, task in ledger.chains
            if isinstance(ledger.work[shard], Shard) and (shards is None or shard in shards)
        }
        self._open = {pair: sum(end - start for start, end in each) for pair, each in holes.items() if each}
        self._untouched = {pair for pair, each in holes.items() if each == [(0, ledger.work[pair[0]].items)]}
        self._pairs = sum(self._open.values())

    def _ledger(self) -> Ledger:
        return load_ledger(self._plan, Outcomes(self._batch.files, self._batch.root))

    @property
    def is_worth_a_base(self) -> bool:
        """Whether so much still misses that another base is worth reading."""
        missing = sum(self._open.values())
        return missing > 0 and missing >= self._pairs * _MISSES_WORTH_A_BASE

    def look_at(self, base: Base, tasks: Sequence[PlannedTask]) -> None:
        """Take all that a base has of what still misses. Raises StoreError where it cannot be read."""
        keys = {task.name: result_key(task) for task in base.plan.tasks}
        same: dict[frozenset[str], list[int]] = {}
        items = base.items(self._beside)
        for task in tasks:
            if keys.get(task.name) != result_key(task):
                continue
            contexts = self._seen[task.name]
            if contexts not in same:
                same[contexts] = same_items(self._items, items, contexts)
            held = [each for each in base.held(task.name) if not each.unkeyed]
            for shard in self._plan.shards:
                if (shard.id, task.name) in self._open:
                    self._take(base, task.name, shard, same[contexts][shard.start : shard.end], held)

    def _take(self, base: Base, task: str, shard: Shard, places: Sequence[int], held: Sequence[Held]) -> None:
        key = (shard.id, task)
        first = bisect.bisect_right(held, next((place for place in places if place >= 0), 0), key=_start) - 1
        runs = list(_runs(places, held[max(first, 0) :], base.id, task))
        known = self.promised.runs.get(key, [])
        if key in self._untouched and len(runs) == 1 and runs[0].end - runs[0].start == shard.items:
            each = held[max(first, 0)]
            if each.file is not None and (each.start, each.end - each.start) == (runs[0].first, shard.items):
                if self._adopt(shard, task, each.file):
                    self.promised.runs.pop(key, None)
                    del self._open[key]
                return  # Else it is damaged: another base may have it.
        taken = {item for run in known for item in range(run.start, run.end)}
        fresh = [run for run in runs if taken.isdisjoint(range(run.start, run.end))]
        self.promised.runs[key] = sorted([*known, *fresh], key=lambda run: run.start)
        self._open[key] = max(0, self._open[key] - sum(run.end - run.start for run in fresh))

    def look_for_project(self, base: Base, task: PlannedTask) -> None:
        """Take a project task's result where it was made of the very same: the snapshot, and results of every file."""
        work = ProjectWork(task.name)
        ledger = self._ledger()
        needed = [name for name in self._plan.needed_for(task.name) if name != task.name]
        known = {each.name: each.key for each in base.plan.tasks}
        if (
            not self._plan.shards
            or not ledger.open_units(work.id)
            or (base.plan.snapshot_digest, base.plan.paths) != (self._plan.snapshot_digest, self._plan.paths)
            or base.plan.shards != self._plan.shards
            or known.get(task.name) != task.key
            or any(not base.has_all(name) for name in (task.name, *needed))
            or any(held.unkeyed for name in (task.name, *needed) for held in base.held(name))
            or any(
                link.type != "result" or link.outcome.unkeyed
                for shard in self._plan.shards
                for name in needed
                for link in ledger.walk(shard.id, name)
            )
        ):
            return
        parts: list[Outcome] = []
        tables = bytearray()
        for shard, held in zip(self._plan.shards, base.held(task.name), strict=True):
            shared = self._shared(shard, task.name, held.file) if held.file is not None else None
            if shared is None:
                return
            parts.append(shared[0])
            tables += shared[1]
        self._adopted.append(
            Outcome(
                shard=work.id,
                task=task.name,
                start=0,
                end=1,
                type="result",
                bytes=sum(part.bytes for part in parts),
                digest=digest_bytes(tables),
                counts=add_counts(part.counts for part in parts),
                inputs=ledger.inputs(task.name),
                parts=tuple(parts),
            )
        )

    def _adopt(self, shard: Shard, task: str, place: ShardPlace) -> bool:
        shared = self._shared(shard, task, place)
        if shared is not None:
            self._adopted.append(replace(shared[0], served=shard.items))
        return shared is not None

    def _shared(self, shard: Shard, task: str, place: ShardPlace) -> tuple[Outcome, bytes] | None:
        """The outcome and the item table of a sound shard file, which has a further name now; None where it is not what
        it was.
        """
        files, path = self._batch.files, self._outcomes.adopted_path(place.digest)
        trailer = self._sound(place.path, place)
        if trailer is None or trailer.items != shard.items:
            return None
        if not share(files, place.path, path) and self._sound(path, place) is None:
            files.write_atomic(path, files.read(place.path))
        outcome = Outcome(
            shard=shard.id,
            task=task,
            start=0,
            end=shard.items,
            type="result",
            length=place.length,
            bytes=place.bytes,
            digest=digest_bytes(trailer.table),
            counts=place.counts,
            file=place.digest,
        )
        return outcome, trailer.table

    def _sound(self, path: Path, place: ShardPlace) -> Trailer | None:
        """What a shard file says of itself; None where it is not what it was."""
        try:
            frames, trailer = split_shard_file(self._batch.files.read(path))
        except StoreUnwritable:
            raise
        except (FileNotFoundError, StoreError, ValueError):
            return None
        return trailer if trailer.digest == place.digest and len(frames) == place.length else None

    def commit(self, committer: Committer) -> None:
        """Make what was adopted ours. On return it is on disk."""
        if not self._adopted:
            return
        self._batch.files.sync_directory(self._batch.root / layout.RESULTS)
        more = iter(self._adopted)
        while some := list(islice(more, _OUTCOMES_A_COMMIT)):
            committer.adopt(some)
        self._adopted.clear()


def _start(held: Held) -> int:
    return held.start


def _runs(places: Sequence[int], held: Sequence[Held], base: str, task: str) -> Iterator[Served]:
    """The runs of items that are one behind the other in the base, all of them with results there."""
    ranges = iter(held)
    at = next(ranges, None)
    start = 0
    while start < len(places):
        first = places[start]
        while at is not None and first >= at.end:
            at = next(ranges, None)
        if first < 0 or at is None or first < at.start:
            start += 1
            continue
        end = start + 1
        while end < len(places) and places[end] == first + end - start and places[end] < at.end:
            end += 1
        yield Served(task=task, start=start, end=end, base=base, first=first)
        start = end
