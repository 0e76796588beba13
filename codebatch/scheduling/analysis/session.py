"""The scheduler of one coordinator: events in, actions out. No clock, no files, no processes.

The rules:
1. Pending units wait in a queue, the costliest first (open_work.py).
2. A worker has one unit at a time. It links the unit's lease when it begins; where that link is refused another
   process has the unit, which becomes `foreign`: it is watched and taken only when its holder is dead or stuck.
3. A commit is true whoever made it: the ledger only ever grows, and open work is always computed from the ledger.
4. When nothing is queued, an idle worker steals: the running unit with the most work left is surveyed, its owner is
   told a smaller end, and the thief gets the tail half. An owner that did not hear in time does some items twice.
5. A project task is a unit of one item. It is offered when no work on files is open, if what it needs is all there.
6. When a worker dies, what it had not committed is open again. The item it died on is charged (blame.py) and tried
   alone in a fresh worker; when it is guilty the task that ran fails there. Where several items were at hand each is
   tried alone, uncharged. Only a death that this living coordinator saw is charged.
7. Deaths in a row with no commit between mean that the machine, not an item, is at fault: the session breaks.
8. A running unit that would last too long ends earlier, and its tail is queued: so that work is committed in time.
9. Workers are started as long as the work left, at the observed speed, lasts longer than a start (throughput.py). At
   most `starts_max` start at a time. If several in a row die before they are ready while others work, the machine has
   no room for more: no more are started than are alive by then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codebatch.model.outcome import Unit
from codebatch.model.shard import ShardId
from codebatch.scheduling.actions import Action, AssignUnit, Break, Complete, Drained, ShrinkUnit, Spawn, SurveyWorker
from codebatch.scheduling.analysis.blame import Blame
from codebatch.scheduling.analysis.ledger import Ledger
from codebatch.scheduling.analysis.open_units import OpenUnits
from codebatch.scheduling.analysis.stealing import Victims, critical_items, cut
from codebatch.scheduling.analysis.throughput import Throughput
from codebatch.scheduling.analysis.unit_queue import Place
from codebatch.scheduling.analysis.worker_pool import WorkerPool
from codebatch.scheduling.events import (
    DrainRequested,
    Event,
    LeaseRefused,
    OutcomesCommitted,
    ProgressReport,
    Ready,
    SessionStarted,
    Surveyed,
    UnitDone,
    UnitKey,
    UnitReleased,
    WorkerId,
    WorkerLost,
)

STARTS_FAILED_MAX = 3
"""Failed starts in a row after which no more workers are started than are alive."""


class Session:
    """One coordinator's run over one batch, until Complete, Drained or Break is returned."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        costs: Mapping[ShardId, Sequence[float]],
        jobs: int,
        cost_per_worker: float = 0.0,
        starts_max: int | None = None,
        tasks: frozenset[str] | None = None,
        shards: frozenset[ShardId] | None = None,
        leased: Mapping[UnitKey, int] | None = None,
        epochs: Mapping[UnitKey, int] | None = None,
    ) -> None:
        """`costs[shard]` are cumulative estimates, one more than items.

        Until workers are observed, one is worth starting for `cost_per_worker` of open work; if that is 0, one is
        worth starting for each unit. `starts_max` workers start at a time, by default all. `leased` are units that
        live others hold, `epochs` the last epoch of every unit ever leased. `tasks` and `shards` narrow the work to do.
        """
        self.ledger = ledger
        self._costs = costs
        self._jobs = jobs
        self._cost_per_worker = cost_per_worker
        self._starts_max = starts_max or jobs
        self._starts_failed = 0
        self._pool = WorkerPool()
        self._throughput = Throughput(costs, self._pool.running, cost_per_worker)
        self._victims = Victims(self._pool.running)
        self._blame = Blame(jobs)
        critical = critical_items(costs, jobs, cost_per_worker)
        self._work = OpenUnits(ledger, self._pool, costs=costs, critical=critical, tasks=tasks, shards=shards)
        self._epochs = {**(epochs or {}), **(leased or {})}
        for key in leased or {}:
            self._work.hold(key)
        self._draining = False
        self._ended = False

    @property
    def foreign(self) -> frozenset[UnitKey]:
        """Units that others hold and that are still open here: the coordinator watches them."""
        return self._work.foreign

    @property
    def is_waiting_for_others(self) -> bool:
        """Whether a worker could do more than there is here, and others hold open units."""
        return not self._work.queue and len(self._pool.running) < self._jobs and bool(self.foreign)

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
            case SessionStarted():
                for shard in self.ledger.work:
                    actions += self._work.reopen(shard)
            case Ready(worker):
                self._starts_failed = 0
                self._pool.greet(worker)
            case LeaseRefused(worker, epoch):
                actions += self._refuse(worker, epoch)
            case UnitDone(worker, is_worn):
                actions += self._finish(worker, is_worn=is_worn)
            case OutcomesCommitted():
                actions += self._learn(event)
            case WorkerLost():
                actions += self._bury(event)
            case UnitReleased(key, epoch):
                self._work.release(key)
                self._note_epoch(key, epoch)
                actions += self._work.reopen(key[0])
            case Surveyed(worker, position):
                actions += self._steal(worker, position)
            case ProgressReport():
                self._throughput.observe(event)
                actions += self._end_units_in_time()
            case DrainRequested():
                self._draining = True
        return actions + self._settle()

    def _finish(self, worker: WorkerId, *, is_worn: bool) -> list[Action]:
        unit = self._pool.finish(worker)
        actions = self._pool.retire({worker}) if is_worn else []
        if unit is None:
            return actions
        self._throughput.finish(worker, unit)
        return actions + self._work.reopen(unit.shard)

    def _learn(self, committed: OutcomesCommitted) -> list[Action]:
        if any(commit.outcomes for commit in committed.commits):
            self._blame.forget_deaths()
        return self._work.learn(committed.commits, committed.unreadable)

    def _refuse(self, worker: WorkerId, epoch: int) -> list[Action]:
        unit = self._pool.finish(worker)
        assert unit is not None
        key = (unit.shard, unit.start)
        self._note_epoch(key, epoch)
        self._work.hold(key)
        return self._work.reopen(unit.shard)

    def _note_epoch(self, key: UnitKey, epoch: int) -> None:
        self._epochs[key] = max(epoch, self._epochs.get(key, 0))

    def _bury(self, lost: WorkerLost) -> list[Action]:
        if lost.worker in self._pool.retired:
            self._pool.retired.discard(lost.worker)
            return []
        self._blame.count(lost)
        is_started = lost.worker in self._pool.idle or lost.worker in self._pool.running
        unit = self._pool.bury(lost.worker)
        if not is_started:
            self._count_failed_start()
        if unit is None:
            return []
        actions: list[Action] = []
        if lost.items is not None:
            first, end = lost.items
            self._work.set_apart(unit.shard, first, end)
            if end == first + 1 and self._blame.charge((unit.shard, first), lost):
                tasks = (lost.task,) if lost.task in unit.tasks else self.ledger.first_of(unit.tasks)
                actions += self._work.fail(unit.shard, first, tasks, lost.reason)
        return actions + self._work.reopen(unit.shard)

    def _count_failed_start(self) -> None:
        self._starts_failed += 1
        if self._starts_failed >= STARTS_FAILED_MAX and self._pool.running:
            self._jobs = self._pool.size

    def _settle(self) -> list[Action]:
        """Hand out work, ask for workers, and see whether the session is over."""
        if self._ended:
            return []
        actions = self._work.reopen_projects()
        if self._blame.is_on_machine:
            self._ended = True
            return [*actions, Break(self._blame.deaths)]
        if self._draining:
            actions += self._pool.retire(set(self._pool.idle))
            if not self._pool.running:
                self._ended = True
                actions.append(Drained() if self._work else Complete())
            return actions
        if not self._work:
            self._ended = True
            return [*actions, *self._pool.retire(set(self._pool.idle)), Complete()]
        actions += self._hand_out()
        if self._pool.idle and not self._work.queue and (victim := self._victims.choose()) is not None:
            actions.append(SurveyWorker(victim))
        return actions + self._ask_for_workers()

    def _ask_for_workers(self) -> list[Action]:
        """Idle workers that could not take what is queued, for it wants fresh ones, make room for these."""
        begun = len(self._pool.running) + self._pool.spawning
        if begun >= self._jobs:
            return []
        idle = 0 if self._work.queue else len(self._pool.idle)
        missing = min(self._workers_wanted() - begun - idle, self._starts_max - self._pool.spawning)
        if missing <= 0:
            return []
        excess = max(0, self._pool.size + missing - self._jobs)
        actions = self._pool.retire(set(sorted(self._pool.idle)[:excess]))
        self._pool.spawning += missing
        return actions + [Spawn()] * missing

    def _workers_wanted(self) -> int:
        if self._cost_per_worker:
            wanted = self._throughput.workers_worth(self._work.queue.cost, self._work.queue.items)
        else:
            wanted = len(self._pool.running) + self._work.queue.units
        return min(self._jobs, wanted)

    def _hand_out(self) -> list[Action]:
        actions: list[Action] = []
        waiting: list[tuple[Place, Unit]] = []
        while self._pool.idle and (popped := self._work.pop()) is not None:
            _, unit = popped
            candidates = self._pool.fresh if self._blame.wants_fresh(unit) else self._pool.idle
            if candidates:
                actions.append(self._assign(min(candidates), unit))
            else:
                waiting.append(popped)
        for place, unit in waiting:
            self._work.queue.put_back(place, unit)
        return actions

    def _assign(self, worker: WorkerId, unit: Unit) -> Action:
        key = (unit.shard, unit.start)
        epoch = self._epochs[key] = self._epochs.get(key, 0) + 1
        self._pool.assign(worker, unit)
        self._victims.watch(worker, unit, self._work.queue.cost_of(unit))
        return AssignUnit(worker, unit, epoch)

    def _steal(self, worker: WorkerId, position: int) -> list[Action]:
        """Cut the surveyed unit behind the item at hand, by estimated cost, and give the tail to an idle worker."""
        unit = self._victims.take(worker)
        if unit is None:
            return []
        first = max(position + 1, unit.start + 1)
        if first >= unit.end or not self._pool.idle or self._draining or not self._work.is_open(unit, first):
            return []
        costs = self._costs[unit.shard]
        left = costs[unit.end] - costs[first]
        if self._victims.may_more_be_left_elsewhere(left):
            self._victims.watch(worker, unit, left)
            return []
        middle = cut(costs, first, unit.end)
        tail = unit.part(middle, unit.end, unit.tasks)
        return [self._shrink(worker, middle), self._assign(min(self._pool.idle), tail)]

    def _end_units_in_time(self) -> list[Action]:
        """Queue the tails of units that would last too long."""
        actions: list[Action] = []
        for worker, unit in tuple(self._pool.running.items()):
            end = self._throughput.end_in_time(worker)
            if end is not None:
                actions += [self._shrink(worker, end), *self._work.reopen(unit.shard)]
        return actions

    def _shrink(self, worker: WorkerId, end: int) -> Action:
        unit = self._pool.running[worker]
        mine = self._pool.running[worker] = unit.part(unit.start, end, unit.tasks)
        self._victims.watch(worker, mine, self._work.queue.cost_of(mine))
        return ShrinkUnit(worker, end)
