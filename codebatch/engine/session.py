"""The scheduler of one coordinator: events in, actions out. No clock, no files, no processes.

The rules:
1. Pending units lie in a heap, the costliest first (longest processing time first, Graham 1969); ties by path order.
2. A worker has one unit at a time. It links the unit's lease when it begins; where that link is refused another
   process has the unit, which becomes `foreign`: it is watched and taken only when its holder is dead.
3. A commit is true whoever made it: the ledger only ever grows, and open work is always computed from the ledger.
4. When a worker dies, what it had not committed is open again. The item it died on is tried alone; dead again there, it
   is failed. Only a death that this living coordinator saw is charged to an item.
5. Deaths in a row with no commit between mean that the machine, not an item, is at fault: the session breaks.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NewType

from codebatch.engine.ledger import Ledger
from codebatch.model.outcome import Commit, Unit
from codebatch.model.record import FailureReason
from codebatch.model.shard import ShardId

WorkerId = NewType("WorkerId", int)
UnitKey = tuple[ShardId, int]
"""A unit's identity for leases: its shard and first item. Its end may shrink while it runs."""

CHARGES_MAX = 2


@dataclass(frozen=True, slots=True)
class Started:
    """The session begins; leases of other live processes are known by now."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker can take its first unit."""

    worker: WorkerId


@dataclass(frozen=True, slots=True)
class Refused:
    """A worker could not lease its unit: epoch `epoch` of it was taken by another process."""

    worker: WorkerId
    epoch: int


@dataclass(frozen=True, slots=True)
class Finished:
    """A worker has no unit any more; its commits were reported before."""

    worker: WorkerId


@dataclass(frozen=True, slots=True)
class Committed:
    """Outcomes became durable: by our worker, by ourselves, or by another process (found on disk)."""

    commit: Commit


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker is dead. `items` are what it worked on, shard-relative; None where nothing was begun."""

    worker: WorkerId
    items: tuple[int, int] | None
    reason: FailureReason


@dataclass(frozen=True, slots=True)
class Released:
    """The holder of a foreign unit is dead; `epoch` was its last."""

    key: UnitKey
    epoch: int


@dataclass(frozen=True, slots=True)
class DrainRequested:
    """Begin nothing new; units that run may finish their item and commit."""


Event = Started | Ready | Refused | Finished | Committed | Lost | Released | DrainRequested


@dataclass(frozen=True, slots=True)
class Spawn:
    """Start a worker."""


@dataclass(frozen=True, slots=True)
class Assign:
    """Give a unit to an idle worker, to be leased under this epoch."""

    worker: WorkerId
    unit: Unit
    epoch: int


@dataclass(frozen=True, slots=True)
class Fail:
    """Commit `failed` outcomes for one item, under this coordinator's own name, then report them as Committed."""

    shard: ShardId
    item: int
    tasks: tuple[str, ...]
    round: int
    reason: FailureReason


@dataclass(frozen=True, slots=True)
class Retire:
    """Tell an idle worker to end."""

    worker: WorkerId


@dataclass(frozen=True, slots=True)
class Complete:
    """Every item has an outcome of every task: merge."""


@dataclass(frozen=True, slots=True)
class Drained:
    """Nothing runs any more and work is left."""


@dataclass(frozen=True, slots=True)
class Break:
    """Give up: `deaths` workers died in a row with no commit between."""

    deaths: int


Action = Spawn | Assign | Fail | Retire | Complete | Drained | Break


@dataclass(slots=True)
class _Running:
    unit: Unit
    epoch: int


@dataclass(slots=True)
class _Pool:
    spawning: int = 0
    idle: set[WorkerId] = field(default_factory=set)
    running: dict[WorkerId, _Running] = field(default_factory=dict)
    retired: set[WorkerId] = field(default_factory=set)

    def retire_idle(self) -> list[Action]:
        retired = sorted(self.idle)
        self.idle.clear()
        self.retired.update(retired)
        return [Retire(worker) for worker in retired]

    @property
    def size(self) -> int:
        return self.spawning + len(self.idle) + len(self.running)


class Session:
    """One coordinator's run over one batch, until Complete, Drained or Break is returned."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        costs: Mapping[ShardId, Sequence[float]],
        jobs: int,
        retry_below: int = 0,
        tasks: frozenset[str] | None = None,
        shards: frozenset[ShardId] | None = None,
        leased: Mapping[UnitKey, int] | None = None,
        epochs: Mapping[UnitKey, int] | None = None,
    ) -> None:
        """`costs[shard]` are cumulative, one more than items. `leased` are units that live others hold, `epochs` the
        last epoch of every unit ever leased. `tasks` and `shards` narrow the work to do."""
        self.ledger = ledger
        self._costs = costs
        self._jobs = jobs
        self._retry_below = retry_below
        self._tasks = tasks
        self._shards = shards
        self._order = {shard: index for index, shard in enumerate(ledger.shards)}
        self._epochs = dict(epochs or {})
        self._foreign: set[UnitKey] = set(leased or {})
        self._epochs.update(leased or {})
        self._heap: list[tuple[float, int, int, Unit]] = []
        self._queued: set[UnitKey] = set()
        self._open: set[ShardId] = set()
        self._alone: set[tuple[ShardId, int]] = set()
        self._charges: dict[tuple[ShardId, int], int] = {}
        self._failing: set[tuple[ShardId, int, str]] = set()
        self._pool = _Pool()
        self._deaths = 0
        self._draining = False
        self._ended = False

    @property
    def foreign(self) -> frozenset[UnitKey]:
        """Units that others hold and that are still open here: the coordinator watches them."""
        return frozenset(self._foreign)

    @property
    def is_waiting_for_others(self) -> bool:
        """Whether nothing is left for this coordinator's workers but what others hold."""
        return not self._heap and not self._pool.running and bool(self._foreign)

    def running_unit(self, worker: WorkerId) -> Unit | None:
        """The unit a worker has now."""
        running = self._pool.running.get(worker)
        return running.unit if running else None

    def handle(self, event: Event) -> list[Action]:
        """Take an event, return what to do, in order."""
        actions: list[Action] = []
        match event:
            case Started():
                for shard in self.ledger.shards:
                    actions += self._reopen(shard)
            case Ready(worker):
                self._pool.spawning -= 1
                self._pool.idle.add(worker)
            case Refused(worker, epoch):
                running = self._pool.running.pop(worker)
                key = (running.unit.shard, running.unit.start)
                self._epochs[key] = max(epoch, self._epochs.get(key, 0))
                self._foreign.add(key)
                self._pool.idle.add(worker)
            case Finished(worker):
                running = self._pool.running.pop(worker)
                self._pool.idle.add(worker)
                actions += self._reopen(running.unit.shard)
            case Committed(commit):
                self._deaths = 0
                actions += self._take(commit)
            case Lost(worker, items, reason):
                actions += self._bury(worker, items, reason)
            case Released(key, epoch):
                self._foreign.discard(key)
                self._epochs[key] = max(epoch, self._epochs.get(key, 0))
                actions += self._reopen(key[0])
            case DrainRequested():
                self._draining = True
        return actions + self._settle()

    def _take(self, commit: Commit) -> list[Action]:
        touched = self.ledger.add(commit)
        actions: list[Action] = []
        for shard in touched:
            covered = {
                key for key in self._foreign if key[0] == shard and all(u.start != key[1] for u in self._units(shard))
            }
            self._foreign -= covered
            actions += self._reopen(shard)
        return actions

    def _bury(self, worker: WorkerId, items: tuple[int, int] | None, reason: FailureReason) -> list[Action]:
        if worker in self._pool.retired:
            return []
        self._deaths += 1
        running = self._pool.running.pop(worker, None)
        if running is None:
            if worker in self._pool.idle:
                self._pool.idle.discard(worker)
            else:
                self._pool.spawning -= 1
            return []
        shard = running.unit.shard
        if items is not None:
            first, end = items
            self._alone.update((shard, item) for item in range(first, end))
            if end == first + 1:
                charges = self._charges[shard, first] = self._charges.get((shard, first), 0) + 1
                if charges >= CHARGES_MAX:
                    return self._fail(running.unit, first, running.unit.tasks, reason) + self._reopen(shard)
        return self._reopen(shard)

    def _fail(self, unit: Unit, item: int, tasks: Sequence[str], reason: FailureReason) -> list[Action]:
        new = tuple(task for task in tasks if (unit.shard, item, task) not in self._failing)
        self._failing.update((unit.shard, item, task) for task in new)
        return [Fail(unit.shard, item, new, unit.round, reason)] if new else []

    def _units(self, shard: ShardId) -> list[Unit]:
        if self._shards is not None and shard not in self._shards:
            return []
        units = self.ledger.open_units(shard, retry_below=self._retry_below)
        if self._tasks is None:
            return units
        narrowed = (tuple(task for task in unit.tasks if task in self._tasks) for unit in units)
        return [
            Unit(shard=unit.shard, start=unit.start, end=unit.end, tasks=tasks, round=unit.round)
            for unit, tasks in zip(units, narrowed, strict=True)
            if tasks
        ]

    def _reopen(self, shard: ShardId) -> list[Action]:
        """Queue what is open in a shard and neither queued, running nor held by others."""
        actions: list[Action] = []
        units = self._units(shard)
        if units:
            self._open.add(shard)
        else:
            self._open.discard(shard)
        busy = [r.unit for r in self._pool.running.values() if r.unit.shard == shard]
        for unit in units:
            for item, tasks in self.ledger.doomed(unit):
                actions += self._fail(unit, item, tasks, "needs")
            for part in self._parts(unit):
                key = (shard, part.start)
                is_busy = any(b.start <= part.start < b.end for b in busy)
                if not is_busy and key not in self._queued and key not in self._foreign:
                    self._queued.add(key)
                    heapq.heappush(self._heap, (-self._cost(part), self._order[shard], part.start, part))
        return actions

    def _parts(self, unit: Unit) -> list[Unit]:
        """A unit cut so that items that killed a worker, and items about to be failed, stand alone."""
        special = {item for shard, item in self._alone if shard == unit.shard and unit.start <= item < unit.end}
        failing = {item for shard, item, _ in self._failing if shard == unit.shard and unit.start <= item < unit.end}
        if not special and not failing:
            return [unit]
        bounds = sorted({unit.start, unit.end, *(bound for item in special | failing for bound in (item, item + 1))})
        parts: list[Unit] = []
        for start, end in pairwise(bounds):
            tasks = unit.tasks
            if start in failing:
                tasks = tuple(task for task in tasks if (unit.shard, start, task) not in self._failing)
            if tasks:
                parts.append(Unit(shard=unit.shard, start=start, end=end, tasks=tasks, round=unit.round))
        return parts

    def _cost(self, unit: Unit) -> float:
        costs = self._costs[unit.shard]
        return costs[unit.end] - costs[unit.start]

    def _settle(self) -> list[Action]:
        """Hand out work, ask for workers, and see whether the session is over."""
        if self._ended:
            return []
        actions: list[Action] = []
        if self._deaths >= max(6, 3 * self._jobs):
            self._ended = True
            return [Break(self._deaths)]
        if self._draining:
            actions += self._pool.retire_idle()
            if not self._pool.running:
                self._ended = True
                actions.append(Drained() if self._open else Complete())
            return actions
        if not self._open:
            self._ended = True
            return [*self._pool.retire_idle(), Complete()]
        while self._pool.idle and (unit := self._next()) is not None:
            worker = min(self._pool.idle)
            self._pool.idle.remove(worker)
            key = (unit.shard, unit.start)
            epoch = self._epochs[key] = self._epochs.get(key, 0) + 1
            self._pool.running[worker] = _Running(unit, epoch)
            actions.append(Assign(worker, unit, epoch))
        wanted = min(self._jobs, len(self._pool.running) + len(self._heap))
        missing = max(0, wanted - self._pool.size)
        self._pool.spawning += missing
        return actions + [Spawn()] * missing

    def _next(self) -> Unit | None:
        while self._heap:
            _, _, _, queued = heapq.heappop(self._heap)
            key = (queued.shard, queued.start)
            self._queued.discard(key)
            for unit in self._units(queued.shard):
                for part in self._parts(unit):
                    if part.start == queued.start and key not in self._foreign:
                        return part
        return None
