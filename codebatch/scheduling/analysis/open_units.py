"""What is open and free: what the ledger lacks, less what runs here, what others hold and what is being failed.

1. Units wait in a queue, the costliest first (unit_queue.py).
2. Open work is always computed anew from the ledger, a shard at a time; what is queued is only believed after a look.
3. An item that killed a worker, and one that alone is a good part of a worker's share, is a unit of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from codebatch.model.outcome import Commit, Register, Unit
from codebatch.model.record import FailureReason
from codebatch.model.shard import Shard, ShardId
from codebatch.scheduling.actions import Action, Fail
from codebatch.scheduling.analysis.ledger import Ledger
from codebatch.scheduling.analysis.unit_queue import Place, UnitQueue
from codebatch.scheduling.analysis.worker_pool import WorkerPool
from codebatch.scheduling.events import UnitKey


class OpenUnits:
    """The open units of one session's scope."""

    def __init__(
        self,
        ledger: Ledger,
        pool: WorkerPool,
        *,
        costs: Mapping[ShardId, Sequence[float]],
        critical: Mapping[ShardId, Sequence[int]],
        tasks: frozenset[str] | None,
        shards: frozenset[ShardId] | None,
    ) -> None:
        """As of Session; `critical` items are units of their own."""
        self._ledger = ledger
        self._pool = pool
        self._critical = critical
        self._tasks = tasks
        self._shards = shards
        self.queue = UnitQueue(tuple(ledger.work), costs)
        """The units that wait for a worker."""
        self._open: set[ShardId] = set()
        self._open_of_files = 0
        self._alone: dict[ShardId, set[int]] = {}
        self._failing: dict[ShardId, set[tuple[int, str]]] = {}
        self._foreign: dict[ShardId, set[int]] = {}

    def __bool__(self) -> bool:
        """Whether anything is open, whoever is at it."""
        return bool(self._open)

    @property
    def foreign(self) -> frozenset[UnitKey]:
        """Open units that others hold."""
        return frozenset((shard, start) for shard, starts in self._foreign.items() for start in starts)

    def learn(self, commits: Sequence[Commit], unreadable: Sequence[Register]) -> list[Action]:
        """Take note of commits, by whomever, and of names that are taken by nothing, and of what they leave open."""
        touched: dict[ShardId, None] = {}
        for commit in commits:
            touched.update(dict.fromkeys(self._ledger.add(commit)))
            for outcome in commit.outcomes:
                self._failing.get(outcome.shard, set()).discard((outcome.start, outcome.task))
        for register in unreadable:
            self._ledger.mark_unreadable(register)
            if register.shard in self._ledger.work:
                touched[register.shard] = None
                self._failing.get(register.shard, set()).discard((register.start, register.task))
        actions: list[Action] = []
        for shard in touched:
            self._release_settled(shard)
            actions += self.reopen(shard)
        return actions

    def hold(self, key: UnitKey) -> None:
        """Others have a unit: it is not queued until it is released."""
        self._foreign.setdefault(key[0], set()).add(key[1])

    def release(self, key: UnitKey) -> None:
        """Others do not have a unit any more."""
        starts = self._foreign.get(key[0], set())
        starts.discard(key[1])
        if not starts:
            self._foreign.pop(key[0], None)

    def set_apart(self, shard: ShardId, first: int, end: int) -> None:
        """Have each of some items tried alone."""
        self._alone.setdefault(shard, set()).update(range(first, end))

    def fail(self, shard: ShardId, item: int, tasks: Sequence[str], reason: FailureReason) -> list[Action]:
        """Have tasks fail at an item, once, in the round in which they are open there now, if they still are."""
        units = [unit for unit in self._units(shard) if unit.start <= item < unit.end]
        return [action for unit in units for action in self._fail(unit, item, tasks, reason)]

    def reopen_projects(self) -> list[Action]:
        """Queue the project tasks that have become open, once no work on files is."""
        if self._open_of_files:
            return []
        return [action for work in self._ledger.changed_projects() for action in self.reopen(work.id)]

    def reopen(self, shard: ShardId) -> list[Action]:
        """Queue what is open in a shard and neither running nor held by others."""
        units = self._units(shard)
        if isinstance(self._ledger.work[shard], Shard):
            self._open_of_files += bool(units) - (shard in self._open)
            self._release_settled(shard)  # A project task that is not open may wait for what it needs.
        self._open.discard(shard)
        if units:
            self._open.add(shard)
        actions: list[Action] = []
        for unit in units:
            for item, tasks in self._ledger.doomed(unit):
                actions += self._fail(unit, item, tasks, "needs")
        self.queue.replace(shard, self._free_parts(shard, units))
        return actions

    def pop(self) -> tuple[Place, Unit] | None:
        """Take the costliest unit that is still free; None where none is."""
        while (popped := self.queue.pop()) is not None:
            unit = popped[1]
            # What became of its shard since it was queued may have changed it.
            if unit in self._free_parts(unit.shard, self._units(unit.shard)):
                return popped
        return None

    def is_open(self, unit: Unit, first: int) -> bool:
        """Whether the tail of a unit from an item on is still all to be done; others may have committed it."""
        return any(
            one.start <= first and unit.end <= one.end and one.round == unit.round and set(unit.tasks) <= set(one.tasks)
            for one in self._units(unit.shard)
        )

    def _fail(self, unit: Unit, item: int, tasks: Sequence[str], reason: FailureReason) -> list[Action]:
        failing = self._failing.setdefault(unit.shard, set())
        new = tuple(task for task in unit.tasks if task in tasks and (item, task) not in failing)
        failing.update((item, task) for task in new)
        return [Fail(unit.shard, item, new, unit.round, reason)] if new else []

    def _units(self, shard: ShardId) -> list[Unit]:
        """The open work of a shard within this session's scope, whoever is at it."""
        if self._shards is not None and shard not in self._shards:
            return []
        units = self._ledger.open_units(shard)
        if self._tasks is None:
            return units
        narrowed = ((unit, tuple(task for task in unit.tasks if task in self._tasks)) for unit in units)
        return [unit.part(unit.start, unit.end, tasks) for unit, tasks in narrowed if tasks]

    def _free_parts(self, shard: ShardId, units: Sequence[Unit]) -> Iterator[Unit]:
        """Open work cut so that what runs, what others hold, what is being failed and what needs that is left out."""
        busy = self._pool.busy_in(shard)
        alone = self._alone.get(shard, set())
        failing = self._failing.get(shard, set())
        foreign = self._foreign.get(shard, set())
        critical = self._critical.get(shard, ())
        if not (busy or alone or failing or foreign or critical):
            yield from units
            return
        cuts = {bound for b in busy for bound in (b.start, b.end)} | foreign
        single = alone.union((item for item, _ in failing), critical)
        cuts |= {bound for item in single for bound in (item, item + 1)}
        for unit in units:
            bounds = sorted({unit.start, unit.end, *(cut for cut in cuts if unit.start < cut < unit.end)})
            for start, end in pairwise(bounds):
                if start in foreign or any(b.start <= start < b.end for b in busy):
                    continue
                lacking = {task for item, task in failing if item == start}
                tasks = tuple(task for task in unit.tasks if lacking.isdisjoint((task, *self._ledger.needs[task])))
                if tasks:
                    yield unit.part(start, end, tasks)

    def _release_settled(self, shard: ShardId) -> None:
        """What is settled is nobody's any more."""
        if starts := self._foreign.get(shard):
            units = self._units(shard)
            for start in [s for s in starts if not any(u.start <= s < u.end for u in units)]:
                self.release((shard, start))
