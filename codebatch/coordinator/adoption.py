"""Taking over what older batches found: before any work begins, what need not be done again is committed or promised.

A shard of which an older batch holds just the same items is committed here, by a further name of the old file. Of one
that differs in some items the rest is promised: its worker serves them from the older batch, does the others, and
commits once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from codebatch.errors import NotInStore, StoreError, StoreUnwritable
from codebatch.model.digest import digest_bytes
from codebatch.model.outcome import Outcome, Unit
from codebatch.model.plan import Plan, PlannedTask, contexts_seen
from codebatch.model.result_key import Items, result_key, same_items
from codebatch.model.shard import Shard, ShardId
from codebatch.protocol.messages import Served
from codebatch.store import layout
from codebatch.store.adoption import share
from codebatch.store.bases import Base, Held, ShardPlace, open_base
from codebatch.store.batches import Batch
from codebatch.store.ledgers import load_ledger
from codebatch.store.outcomes import Committer, Outcomes
from codebatch.store.shard_files import split_shard_file
from codebatch.store.store import Store
from codebatch.system.task_catalogue import TaskCatalogue

_OUTCOMES_A_COMMIT = 10_000
# A further base is looked at where so much of the work still misses: it takes reading a plan and a snapshot.
_MISSES_WORTH_A_BASE = 1 / 256


@dataclass(slots=True)
class Promised:
    """What workers need not do: of each shard and task the runs of items that an older batch has results of."""

    runs: dict[tuple[ShardId, str], list[Served]] = field(default_factory=dict)

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


@dataclass(frozen=True, slots=True)
class Reuse:
    """The older batches that a batch may take results from. Without any, all is done anew."""

    store: Store
    catalogue: TaskCatalogue
    bases: tuple[str, ...]

    def take_over(self, batch: Batch, plan: Plan, items: Items, committer: Committer) -> Promised:
        """Commit every shard that an older batch has whole; returns what else need not be done.

        What is committed is on disk on return. A base that is gone or damaged has nothing. Raises StoreUnwritable.
        """
        if not self.bases:
            return Promised()
        taking = _Taking(batch, plan, items)
        for batch_id in self.bases:
            if not taking.is_worth_a_base:
                break
            try:
                taking.look_at(open_base(self.store, batch_id), self._usable(plan))
            except StoreUnwritable:
                raise
            except (NotInStore, StoreError):
                continue
        taking.commit(committer)
        return taking.promised

    def _usable(self, plan: Plan) -> list[PlannedTask]:
        """The file tasks whose results depend on nothing but what is in the key: not those of the project's own."""
        own = self.catalogue.own_task
        return [task for task in plan.tasks if task.scope == "file" and own(task.name) is None]


class _Taking:
    """What was found in the bases so far."""

    def __init__(self, batch: Batch, plan: Plan, items: Items) -> None:
        self._batch = batch
        self._plan = plan
        self._items = items
        self._seen = contexts_seen(plan.tasks)
        self._outcomes = Outcomes(batch.files, batch.root)
        ledger = load_ledger(plan, self._outcomes)
        self._adopted: list[Outcome] = []
        self.promised = Promised()
        self._open = {
            (shard, task): work.items
            for shard, task in ledger.chains
            if isinstance(work := ledger.work[shard], Shard) and ledger.holes(shard, task) == [(0, work.items)]
        }
        self._pairs = sum(self._open.values())

    @property
    def is_worth_a_base(self) -> bool:
        """Whether so much still misses that another base is worth reading."""
        missing = sum(self._open.values())
        return missing > 0 and missing >= self._pairs * _MISSES_WORTH_A_BASE

    def look_at(self, base: Base, tasks: Sequence[PlannedTask]) -> None:
        """Take all that a base has of what still misses. Raises StoreError where it cannot be read."""
        keys = {task.name: result_key(task) for task in base.plan.tasks}
        same: dict[frozenset[str], list[int]] = {}
        for task in tasks:
            if keys.get(task.name) != result_key(task):
                continue
            contexts = self._seen[task.name]
            if contexts not in same:
                same[contexts] = same_items(self._items, base.items, contexts)
            held = base.held(task.name)
            for shard in self._plan.shards:
                if (shard.id, task.name) in self._open:
                    self._take(base, task.name, shard, same[contexts][shard.start : shard.end], held)

    def _take(self, base: Base, task: str, shard: Shard, places: Sequence[int], held: Sequence[Held]) -> None:
        key = (shard.id, task)
        runs = list(_runs(places, held, base.id, task))
        known = self.promised.runs.get(key, [])
        if len(runs) == 1 and runs[0].end - runs[0].start == shard.items:
            whole = next((each.file for each in held if each.start == runs[0].first), None)
            if whole is not None and self._adopt(shard, task, whole):
                self.promised.runs.pop(key, None)
                del self._open[key]
                return
        taken = {item for run in known for item in range(run.start, run.end)}
        fresh = [run for run in runs if taken.isdisjoint(range(run.start, run.end))]
        self.promised.runs[key] = sorted([*known, *fresh], key=lambda run: run.start)
        self._open[key] -= sum(run.end - run.start for run in fresh)

    def _adopt(self, shard: Shard, task: str, place: ShardPlace) -> bool:
        """Give a sound shard file a further name among our results; False where it is not what it was."""
        files = self._batch.files
        try:
            frames, trailer = split_shard_file(files.read(place.path))
        except (FileNotFoundError, StoreError, ValueError):
            return False
        if trailer.digest != place.digest or len(frames) != place.length or trailer.items != shard.items:
            return False
        share(files, place.path, self._outcomes.adopted_path(place.digest))
        self._adopted.append(
            Outcome(
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
                served=shard.items,
            )
        )
        return True

    def commit(self, committer: Committer) -> None:
        """Make what was adopted ours. On return it is on disk."""
        if not self._adopted:
            return
        self._batch.files.sync_directory(self._batch.root / layout.RESULTS)
        more = iter(self._adopted)
        while some := list(islice(more, _OUTCOMES_A_COMMIT)):
            committer.adopt(some)


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
