"""The scheduler of one coordinator: events in, actions out. No clock, no files, no processes.

The rules:
1. Pending units lie in a heap, the costliest first (longest processing time first, Graham 1969); ties by path order.
   An item that alone is a good part of a worker's share is a unit of its own: it must not wait for its neighbours.
2. A worker has one unit at a time. It links the unit's lease when it begins; where that link is refused another
   process has the unit, which becomes `foreign`: it is watched and taken only when its holder is dead or stuck.
3. A commit is true whoever made it: the ledger only ever grows, and open work is always computed from the ledger.
4. When nothing is queued, an idle worker steals: the running unit with the most work left is surveyed, its owner is
   told a smaller end, and the thief gets the tail half. An owner that did not hear in time does some items twice.
5. A project task is a unit of one item. It is offered when no work on files is open, if what it needs is all there.
6. When a worker dies, what it had not committed is open again. The item it died on is charged and tried alone in a
   fresh worker; when it kills again the task that ran fails there. A kill from outside weighs less than a crash, for
   it is hardly the item's fault. Where several items were at hand each is tried alone, uncharged. Only a death that
   this living coordinator saw is charged.
7. Deaths in a row with no commit between mean that the machine, not an item, is at fault: the session breaks. Kills
   from outside weigh less here too.
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from codebatch.engine.events import (
    Action,
    Assign,
    Break,
    Committed,
    Complete,
    Drained,
    DrainRequested,
    Event,
    Fail,
    Finished,
    Lost,
    Ready,
    Refused,
    Released,
    Retire,
    Shrink,
    Spawn,
    Started,
    Survey,
    Surveyed,
    UnitKey,
    WorkerId,
)
from codebatch.engine.ledger import Ledger
from codebatch.model.outcome import Commit, Unit
from codebatch.model.record import FailureReason
from codebatch.model.shard import ShardId

CHARGE_MAX = 10
CHARGE_OF_CRASH = 5
CHARGE_OF_KILL = 1

CRITICAL_SHARE = 0.5

CRASHES_IN_A_ROW_MAX = 6
CRASHES_IN_A_ROW_PER_JOB_MAX = 3


@dataclass(slots=True)
class _Pool:
    """Our workers by what they do."""

    spawning: int = 0
    idle: set[WorkerId] = field(default_factory=set)
    fresh: set[WorkerId] = field(default_factory=set)
    running: dict[WorkerId, Unit] = field(default_factory=dict)
    by_shard: dict[ShardId, set[WorkerId]] = field(default_factory=dict)
    retired: set[WorkerId] = field(default_factory=set)

    @property
    def size(self) -> int:
        return self.spawning + len(self.idle) + len(self.running)

    def assign(self, worker: WorkerId, unit: Unit) -> None:
        self.idle.discard(worker)
        self.fresh.discard(worker)
        self.running[worker] = unit
        self.by_shard.setdefault(unit.shard, set()).add(worker)

    def end(self, worker: WorkerId) -> Unit | None:
        unit = self.running.pop(worker, None)
        if unit is not None:
            self.by_shard[unit.shard].discard(worker)
        return unit

    def retire(self, workers: set[WorkerId]) -> list[Action]:
        self.idle -= workers
        self.retired |= workers
        return [Retire(worker) for worker in sorted(workers)]

    def busy_in(self, shard: ShardId) -> list[Unit]:
        return [self.running[worker] for worker in self.by_shard.get(shard, ())]


class Session:
    """One coordinator's run over one batch, until Complete, Drained or Break is returned."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        costs: Mapping[ShardId, Sequence[float]],
        jobs: int,
        cost_per_worker: float = 0.0,
        tasks: frozenset[str] | None = None,
        shards: frozenset[ShardId] | None = None,
        leased: Mapping[UnitKey, int] | None = None,
        epochs: Mapping[UnitKey, int] | None = None,
    ) -> None:
        """`costs[shard]` are cumulative estimates, one more than items.

        A worker is worth starting for `cost_per_worker` of open work. `leased` are units that live others hold,
        `epochs` the last epoch of every unit ever leased. `tasks` and `shards` narrow the work to do.
        """
        self.ledger = ledger
        self._costs = costs
        self._jobs = jobs
        self._cost_per_worker = cost_per_worker
        self._tasks = tasks
        self._shards = shards
        self._names = tuple(ledger.shards)
        self._project = frozenset(ledger.project_shards)
        self._critical = _critical_items(costs, jobs, cost_per_worker)
        self._order = {shard: index for index, shard in enumerate(self._names)}
        self._epochs = {**(epochs or {}), **(leased or {})}
        self._foreign: dict[ShardId, set[int]] = {}
        for shard, start in leased or {}:
            self._foreign.setdefault(shard, set()).add(start)
        self._heap: list[tuple[float, int, int]] = []
        self._queued: dict[UnitKey, Unit] = {}
        self._open: dict[ShardId, float] = {}
        self._open_cost = 0.0
        self._open_of_files = 0
        self._alone: dict[ShardId, set[int]] = {}
        self._charges: dict[tuple[ShardId, int], int] = {}
        self._failing: dict[ShardId, set[tuple[int, str]]] = {}
        self._pool = _Pool()
        self._victims: list[tuple[float, int, WorkerId, Unit]] = []
        self._surveyed: WorkerId | None = None
        self._assignments = 0
        self._deaths = self._deaths_weight = 0
        self._draining = False
        self._ended = False

    @property
    def foreign(self) -> frozenset[UnitKey]:
        """Units that others hold and that are still open here: the coordinator watches them."""
        return frozenset((shard, start) for shard, starts in self._foreign.items() for start in starts)

    @property
    def is_waiting_for_others(self) -> bool:
        """Whether a worker could do more than there is here, and others hold open units."""
        return not self._heap and len(self._pool.running) < self._jobs and bool(self._foreign)

    @property
    def is_working(self) -> bool:
        """Whether a worker of ours has a unit, or begins to live."""
        return bool(self._pool.running or self._pool.spawning)

    def running_unit(self, worker: WorkerId) -> Unit | None:
        """The unit a worker has now."""
        return self._pool.running.get(worker)

    def handle(self, event: Event) -> list[Action]:
        """Take an event, return what to do, in order."""
        actions: list[Action] = []
        match event:
            case Started():
                for shard in self._names:
                    actions += self._reopen(shard)
            case Ready(worker):
                self._pool.spawning -= 1
                self._pool.idle.add(worker)
                self._pool.fresh.add(worker)
            case Refused(worker, epoch):
                actions += self._refuse(worker, epoch)
            case Finished(worker, is_worn):
                unit = self._pool.end(worker)
                self._pool.idle.add(worker)
                actions += self._pool.retire({worker}) if is_worn else []
                actions += self._reopen(unit.shard) if unit else []
            case Committed(commits):
                actions += self._take(commits)
            case Lost():
                actions += self._bury(event)
            case Released(key, epoch):
                self._release(key)
                self._epochs[key] = max(epoch, self._epochs.get(key, 0))
                actions += self._reopen(key[0])
            case Surveyed(worker, position):
                actions += self._steal(worker, position)
            case DrainRequested():
                self._draining = True
        return actions + self._settle()

    # -- What is open ---------------------------------------------------------------------------------------------

    def _take(self, commits: Sequence[Commit]) -> list[Action]:
        if any(commit.outcomes for commit in commits):
            self._deaths = self._deaths_weight = 0
        for commit in commits:
            for outcome in commit.outcomes:
                self._failing.get(outcome.shard, set()).discard((outcome.start, outcome.task))
        actions: list[Action] = []
        for shard in dict.fromkeys(shard for commit in commits for shard in self.ledger.add(commit)):
            starts = self._foreign.get(shard)
            if starts:
                units = self._units(shard)
                for start in [s for s in starts if not any(u.start <= s < u.end for u in units)]:
                    self._release((shard, start))
            actions += self._reopen(shard)
        return actions

    def _release(self, key: UnitKey) -> None:
        starts = self._foreign.get(key[0], set())
        starts.discard(key[1])
        if not starts:
            self._foreign.pop(key[0], None)

    def _refuse(self, worker: WorkerId, epoch: int) -> list[Action]:
        unit = self._pool.end(worker)
        assert unit is not None
        self._pool.idle.add(worker)
        key = (unit.shard, unit.start)
        self._epochs[key] = max(epoch, self._epochs.get(key, 0))
        self._foreign.setdefault(unit.shard, set()).add(unit.start)
        return []

    def _units(self, shard: ShardId) -> list[Unit]:
        """The open work of a shard within this session's scope, whoever is at it."""
        if self._shards is not None and shard not in self._shards:
            return []
        units = self.ledger.open_units(shard)
        if self._tasks is None:
            return units
        narrowed = ((unit, tuple(task for task in unit.tasks if task in self._tasks)) for unit in units)
        return [_part(unit, unit.start, unit.end, tasks) for unit, tasks in narrowed if tasks]

    def _reopen(self, shard: ShardId) -> list[Action]:
        """Queue what is open in a shard and neither running nor held by others."""
        units = self._units(shard)
        if shard not in self._project:
            self._open_of_files += bool(units) - (shard in self._open)
        self._open_cost -= self._open.pop(shard, 0.0)
        if not units:
            return []
        self._open[shard] = sum(map(self._cost, units))
        self._open_cost += self._open[shard]
        actions: list[Action] = []
        for unit in units:
            for item, tasks in self.ledger.doomed(unit):
                actions += self._fail(unit, item, tasks, "needs")
        for part in self._free_parts(shard, units):
            key = (shard, part.start)
            if key not in self._queued:
                heapq.heappush(self._heap, (-self._cost(part), self._order[shard], part.start))
            self._queued[key] = part
        return actions

    def _free_parts(self, shard: ShardId, units: Sequence[Unit]) -> Iterator[Unit]:
        """Open work cut so that what runs, what others hold and what is being failed is left out.

        Items that killed a worker and critical ones stand alone.
        """
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
                tasks = tuple(task for task in unit.tasks if (start, task) not in failing)
                if tasks:
                    yield _part(unit, start, end, tasks)

    def _cost(self, unit: Unit) -> float:
        costs = self._costs[unit.shard]
        return costs[unit.end] - costs[unit.start]

    def _fail(self, unit: Unit, item: int, tasks: Sequence[str], reason: FailureReason) -> list[Action]:
        failing = self._failing.setdefault(unit.shard, set())
        new = tuple(task for task in tasks if (item, task) not in failing)
        failing.update((item, task) for task in new)
        return [Fail(unit.shard, item, new, unit.round, reason)] if new else []

    def _bury(self, lost: Lost) -> list[Action]:
        worker = lost.worker
        if worker in self._pool.retired:
            return []
        charge = CHARGE_OF_KILL if lost.is_from_outside else CHARGE_OF_CRASH
        self._deaths += 1
        self._deaths_weight += charge
        unit = self._pool.end(worker)
        if unit is None:
            if worker in self._pool.idle:
                self._pool.idle.discard(worker)
                self._pool.fresh.discard(worker)
            else:
                self._pool.spawning -= 1
            return []
        actions: list[Action] = []
        if lost.items is not None:
            first, end = lost.items
            self._alone.setdefault(unit.shard, set()).update(range(first, end))
            if end == first + 1:
                key = (unit.shard, first)
                self._charges[key] = self._charges.get(key, 0) + charge
                if self._charges[key] >= CHARGE_MAX:
                    tasks = (lost.task,) if lost.task in unit.tasks else self.ledger.first_of(unit.tasks)
                    actions += self._fail(unit, first, tasks, lost.reason)
                    self._charges[key] = 0  # The tasks that are left there are innocent.
        return actions + self._reopen(unit.shard)

    # -- Who does it ----------------------------------------------------------------------------------------------

    def _settle(self) -> list[Action]:
        """Hand out work, ask for workers, and see whether the session is over."""
        if self._ended:
            return []
        actions: list[Action] = []
        if self._project and not self._open_of_files:
            for shard in self.ledger.changed_projects():
                actions += self._reopen(shard)
        crashes_max = max(CRASHES_IN_A_ROW_MAX, CRASHES_IN_A_ROW_PER_JOB_MAX * self._jobs)
        if self._deaths_weight >= CHARGE_OF_CRASH * crashes_max:
            self._ended = True
            return [*actions, Break(self._deaths)]
        if self._draining:
            actions += self._pool.retire(set(self._pool.idle))
            if not self._pool.running:
                self._ended = True
                actions.append(Drained() if self._open else Complete())
            return actions
        if not self._open:
            self._ended = True
            return [*actions, *self._pool.retire(set(self._pool.idle)), Complete()]
        actions += self._hand_out()
        if self._pool.idle and not self._heap:
            actions += self._survey()
        return actions + self._ask_for_workers()

    def _ask_for_workers(self) -> list[Action]:
        """Idle workers that could not take what is queued, for it wants fresh ones, make room for these."""
        idle = 0 if self._heap else len(self._pool.idle)
        missing = self._workers_wanted() - len(self._pool.running) - self._pool.spawning - idle
        if missing <= 0:
            return []
        excess = max(0, self._pool.size + missing - self._jobs)
        actions = self._pool.retire(set(sorted(self._pool.idle)[:excess]))
        self._pool.spawning += missing
        return actions + [Spawn()] * missing

    def _workers_wanted(self) -> int:
        units = len(self._pool.running) + len(self._queued)
        if self._cost_per_worker and units:
            by_cost = math.ceil(self._open_cost / self._cost_per_worker)
            return min(self._jobs, max(1, by_cost))
        return min(self._jobs, units)

    def _hand_out(self) -> list[Action]:
        actions: list[Action] = []
        waiting: list[tuple[float, int, int]] = []
        while self._pool.idle and self._heap:
            entry = heapq.heappop(self._heap)
            shard = self._names[entry[1]]
            unit = self._queued.get((shard, entry[2]))
            if unit is None or not self._is_free(unit):
                self._queued.pop((shard, entry[2]), None)
                continue
            candidates = self._pool.fresh if self._wants_fresh(unit) else self._pool.idle
            if not candidates:
                waiting.append(entry)
                continue
            del self._queued[shard, unit.start]
            actions.append(self._assign(min(candidates), unit))
        for entry in waiting:
            heapq.heappush(self._heap, entry)
        return actions

    def _is_free(self, unit: Unit) -> bool:
        """Whether a queued unit is still what is open there; what became of its shard since may have changed it."""
        return any(part == unit for part in self._free_parts(unit.shard, self._units(unit.shard)))

    def _wants_fresh(self, unit: Unit) -> bool:
        return unit.end == unit.start + 1 and (unit.shard, unit.start) in self._charges

    def _assign(self, worker: WorkerId, unit: Unit) -> Action:
        key = (unit.shard, unit.start)
        epoch = self._epochs[key] = self._epochs.get(key, 0) + 1
        self._pool.assign(worker, unit)
        self._watch(worker, unit, self._cost(unit))
        return Assign(worker, unit, epoch)

    # -- Work stealing --------------------------------------------------------------------------------------------

    def _watch(self, worker: WorkerId, unit: Unit, left: float) -> None:
        """Remember a running unit as one that may be stolen from; `left` is at least what is left of it."""
        if unit.end - unit.start > 1:
            self._assignments += 1
            heapq.heappush(self._victims, (-left, self._assignments, worker, unit))

    def _survey(self) -> list[Action]:
        """Ask where the unit stands that may have the most work left."""
        if self._surveyed is not None and self._surveyed in self._pool.running:
            return []
        self._surveyed = None
        while self._victims:
            _, _, worker, unit = self._victims[0]
            if self._pool.running.get(worker) is unit:
                self._surveyed = worker
                return [Survey(worker)]
            heapq.heappop(self._victims)
        return []

    def _steal(self, worker: WorkerId, position: int) -> list[Action]:
        """Cut the surveyed unit behind the item at hand, by estimated cost, and give the tail to an idle worker."""
        self._surveyed = None
        unit = self._pool.running.get(worker)
        if not self._victims or unit is None or self._victims[0][3] is not unit:
            return []
        heapq.heappop(self._victims)
        first = max(position + 1, unit.start + 1)
        if first >= unit.end or not self._pool.idle or self._draining or not self._is_open(unit, first):
            return []
        costs = self._costs[unit.shard]
        left = costs[unit.end] - costs[first]
        if self._victims and left < -self._victims[0][0]:
            self._watch(worker, unit, left)
            return []
        middle = bisect.bisect_left(costs, costs[first] + left / 2, first, unit.end)
        cut = min(max(middle, first), unit.end - 1)
        mine, tail = _part(unit, unit.start, cut, unit.tasks), _part(unit, cut, unit.end, unit.tasks)
        self._pool.running[worker] = mine
        self._watch(worker, mine, costs[cut] - costs[first])
        return [Shrink(worker, cut), self._assign(min(self._pool.idle), tail)]

    def _is_open(self, unit: Unit, first: int) -> bool:
        """Whether the tail of a unit from an item on is still all to be done; others may have committed it."""
        return any(
            one.start <= first and unit.end <= one.end and one.round == unit.round and set(unit.tasks) <= set(one.tasks)
            for one in self._units(unit.shard)
        )


def _critical_items(
    costs: Mapping[ShardId, Sequence[float]], jobs: int, cost_per_worker: float
) -> dict[ShardId, list[int]]:
    if jobs == 1:
        return {}
    least = max(cost_per_worker, CRITICAL_SHARE * sum(column[-1] for column in costs.values()) / jobs)
    critical: dict[ShardId, list[int]] = {}
    for shard, column in costs.items():
        if column[-1] < least or len(column) == 2 or least == 0:
            continue
        if items := [item for item, (before, after) in enumerate(pairwise(column)) if after - before >= least]:
            critical[shard] = items
    return critical


def _part(unit: Unit, start: int, end: int, tasks: tuple[str, ...]) -> Unit:
    return Unit(shard=unit.shard, start=start, end=end, tasks=tasks, round=unit.round)
