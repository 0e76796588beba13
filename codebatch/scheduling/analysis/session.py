"""The scheduler of one coordinator: events in, actions out, without clock, files or processes.

Rules:

1. Pending units wait in a queue, the costliest first (open_units.py).
2. A worker has one unit at a time. When it begins the unit, it creates the lease, a link. If the name of the lease
   exists, another process has the unit. Then the unit is called `foreign`. A foreign unit is assigned again only when
   its holder is dead or stuck.
3. A commit of any process is valid. The ledger only grows, and open work is always computed from the ledger.
4. If the queue is empty, an idle worker steals. The running unit with the most work left is surveyed and shortened. The
   idle worker gets the second half of the remaining items. If the message with the new end reaches the first worker too
   late, some items are executed twice.
5. A project task is a unit of one item. It can be assigned once no work on files is open and all its needs are settled.
6. When a worker dies, its uncommitted items are open again. If it died while it executed one item, the death is charged
   to the item (blame.py), which is then executed alone in a new worker. If the charge is too high, the task fails for
   this item. If the worker was executing several items at once, each is then executed alone and nothing is charged.
   Only deaths of workers of this session are charged.
7. If workers die in a row without a commit, the cause is the machine and not an item: the session breaks.
8. If a running unit would last too long, it is shortened, and its last items are queued as another unit. So its work is
   committed sooner.
9. Further workers are started while the remaining work, at the observed speed, lasts longer than a start
   (throughput.py). At most `starts_max` start at the same time. If several workers in a row die during their start
   while others run, the machine has no capacity for more. The number of live workers then becomes the limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codebatch.model.outcome import WorkUnit
from codebatch.model.shard import ShardId
from codebatch.scheduling.actions import (
    AssignUnit,
    CompleteSession,
    EndBroken,
    EndDrained,
    SessionAction,
    ShrinkUnit,
    SpawnWorker,
    SurveyWorker,
)
from codebatch.scheduling.analysis.blame import DeathBlame
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.scheduling.analysis.open_units import OpenUnits
from codebatch.scheduling.analysis.stealing import StealCandidates, critical_items, split_item
from codebatch.scheduling.analysis.throughput import WorkerThroughput
from codebatch.scheduling.analysis.unit_queue import QueuePosition
from codebatch.scheduling.analysis.worker_pool import WorkerPool
from codebatch.scheduling.events import (
    DrainRequested,
    LeaseRefused,
    OutcomesCommitted,
    ProgressReport,
    SessionEvent,
    SessionStarted,
    UnitDone,
    UnitKey,
    UnitReleased,
    WorkerId,
    WorkerIdle,
    WorkerLost,
    WorkerSurveyed,
)

FAILED_STARTS_MAX = 3
"""Number of failed starts in a row after which the number of workers may not grow any more."""


class AnalysisSession:
    """The scheduling of one batch by one coordinator.

    The session ends when `handle` returns Complete, Drained or Break.
    """

    def __init__(
        self,
        ledger: OutcomeLedger,
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
        """Start with the outcomes in the ledger.

        - `costs[shard]`: cumulative cost estimates: entry i is the cost of the first i items. It has one entry more
          than the shard has items.
        - `cost_per_worker`: until speeds are observed, start one worker for each `cost_per_worker` of open work. If it
          is 0, start one worker for each unit.
        - `starts_max`: the number of workers that may start at the same time. The default is `jobs`.
        - `tasks`, `shards`: restrict the work of the session.
        - `leased`: the units that other live processes have leased, with their epochs.
        - `epochs`: the last epoch of every unit that was ever leased.
        """
        self.ledger = ledger
        self._costs = costs
        self._jobs = jobs
        self._cost_per_worker = cost_per_worker
        self._starts_max = starts_max or jobs
        self._starts_failed = 0
        self._pool = WorkerPool()
        self._throughput = WorkerThroughput(costs, self._pool.running, cost_per_worker)
        self._victims = StealCandidates(self._pool.running)
        self._blame = DeathBlame(jobs)
        critical = critical_items(costs, jobs, cost_per_worker)
        self._open_units = OpenUnits(ledger, self._pool, costs=costs, critical=critical, tasks=tasks, shards=shards)
        self._epochs = {**(epochs or {}), **(leased or {})}
        for key in leased or {}:
            self._open_units.hold_unit(key)
        self._draining = False
        self._ended = False

    @property
    def leased_elsewhere(self) -> frozenset[UnitKey]:
        """The open units that other processes have leased. The coordinator watches these processes."""
        return self._open_units.units_leased_elsewhere

    @property
    def is_waiting_for_processes(self) -> bool:
        """True if the queue is empty and workers are idle, while other processes have leased open units."""
        return not self._open_units.queue and len(self._pool.running) < self._jobs and bool(self.leased_elsewhere)

    @property
    def is_working(self) -> bool:
        """True if a worker of this coordinator is starting or has a unit."""
        return bool(self._pool.running or self._pool.spawning)

    def running_unit(self, worker: WorkerId) -> WorkUnit | None:
        """Return the present unit of a worker, or None."""
        return self._pool.running.get(worker)

    def handle(self, event: SessionEvent) -> list[SessionAction]:
        """Update the state for an event. Return the actions to execute, in order."""
        actions: list[SessionAction] = []
        match event:
            case SessionStarted():
                for shard in self.ledger.work:
                    actions += self._open_units.reopen_shard(shard)
            case WorkerIdle(worker):
                self._starts_failed = 0
                self._pool.add_ready(worker)
            case LeaseRefused(worker, epoch):
                actions += self._handle_refusal(worker, epoch)
            case UnitDone(worker, is_worn):
                actions += self._finish_unit(worker, is_worn=is_worn)
            case OutcomesCommitted():
                actions += self._handle_commits(event)
            case WorkerLost():
                actions += self._handle_loss(event)
            case UnitReleased(key, epoch):
                self._open_units.release(key)
                self._note_epoch(key, epoch)
                actions += self._open_units.reopen_shard(key[0])
            case WorkerSurveyed(worker, position):
                actions += self._steal_from_unit(worker, position)
            case ProgressReport():
                self._throughput.observe(event)
                actions += self._end_units_in_time()
            case DrainRequested():
                self._draining = True
        return actions + self._next_actions()

    def _finish_unit(self, worker: WorkerId, *, is_worn: bool) -> list[SessionAction]:
        unit = self._pool.finish(worker)
        actions = self._pool.retire_workers({worker}) if is_worn else []
        if unit is None:
            return actions
        self._throughput.finish(worker, unit)
        return actions + self._open_units.reopen_shard(unit.shard)

    def _handle_commits(self, committed: OutcomesCommitted) -> list[SessionAction]:
        if any(commit.outcomes for commit in committed.commits):
            self._blame.forget_deaths()
        return self._open_units.add_commits(committed.commits, committed.unreadable)

    def _handle_refusal(self, worker: WorkerId, epoch: int) -> list[SessionAction]:
        unit = self._pool.finish(worker)
        assert unit is not None
        key = (unit.shard, unit.start)
        self._note_epoch(key, epoch)
        self._open_units.hold_unit(key)
        return self._open_units.reopen_shard(unit.shard)

    def _note_epoch(self, key: UnitKey, epoch: int) -> None:
        self._epochs[key] = max(epoch, self._epochs.get(key, 0))

    def _handle_loss(self, lost: WorkerLost) -> list[SessionAction]:
        if lost.worker in self._pool.retired:
            self._pool.retired.discard(lost.worker)
            return []
        self._blame.count_death(lost)
        is_started = lost.worker in self._pool.idle or lost.worker in self._pool.running
        unit = self._pool.remove(lost.worker)
        if not is_started:
            self._count_failed_start()
        if unit is None:
            return []
        actions: list[SessionAction] = []
        if lost.items is not None:
            first, end = lost.items
            self._open_units.isolate_items(unit.shard, first, end)
            if end == first + 1 and self._blame.charge_item((unit.shard, first), lost):
                tasks = (lost.task,) if lost.task in unit.tasks else self.ledger.independent_tasks(unit.tasks)
                actions += self._open_units.fail_item(unit.shard, first, tasks, lost.reason)
        return actions + self._open_units.reopen_shard(unit.shard)

    def _count_failed_start(self) -> None:
        self._starts_failed += 1
        if self._starts_failed >= FAILED_STARTS_MAX and self._pool.running:
            self._jobs = self._pool.live_count

    def _next_actions(self) -> list[SessionAction]:
        """Return the actions that assign work and start workers.

        If the session is over, return the action that ends it.
        """
        if self._ended:
            return []
        actions = self._open_units.reopen_projects()
        if self._blame.is_on_machine:
            self._ended = True
            return [*actions, EndBroken(self._blame.deaths)]
        if self._draining:
            actions += self._pool.retire_workers(set(self._pool.idle))
            if not self._pool.running:
                self._ended = True
                actions.append(EndDrained() if self._open_units else CompleteSession())
            return actions
        if not self._open_units:
            self._ended = True
            return [*actions, *self._pool.retire_workers(set(self._pool.idle)), CompleteSession()]
        actions += self._assign_open_units()
        if self._pool.idle and not self._open_units.queue and (victim := self._victims.choose()) is not None:
            actions.append(SurveyWorker(victim))
        return actions + self._request_workers()

    def _request_workers(self) -> list[SessionAction]:
        """Return actions that start missing workers.

        If idle workers may not take the queued units, because these need a new worker, the idle workers are stopped to
        make room.
        """
        busy = len(self._pool.running) + self._pool.spawning
        if busy >= self._jobs:
            return []
        idle = 0 if self._open_units.queue else len(self._pool.idle)
        missing = min(self._needed_workers() - busy - idle, self._starts_max - self._pool.spawning)
        if missing <= 0:
            return []
        excess = max(0, self._pool.live_count + missing - self._jobs)
        actions = self._pool.retire_workers(set(sorted(self._pool.idle)[:excess]))
        self._pool.spawning += missing
        return actions + [SpawnWorker()] * missing

    def _needed_workers(self) -> int:
        if self._cost_per_worker:
            useful_workers = self._throughput.workers_worth(self._open_units.queue.cost, self._open_units.queue.items)
        else:
            useful_workers = len(self._pool.running) + self._open_units.queue.units
        return min(self._jobs, useful_workers)

    def _assign_open_units(self) -> list[SessionAction]:
        actions: list[SessionAction] = []
        waiting: list[tuple[QueuePosition, WorkUnit]] = []
        while self._pool.idle and (popped := self._open_units.pop()) is not None:
            _, unit = popped
            candidates = self._pool.fresh if self._blame.wants_fresh_worker(unit) else self._pool.idle
            if candidates:
                actions.append(self._assign_unit(min(candidates), unit))
            else:
                waiting.append(popped)
        for place, unit in waiting:
            self._open_units.queue.put_back(place, unit)
        return actions

    def _assign_unit(self, worker: WorkerId, unit: WorkUnit) -> SessionAction:
        key = (unit.shard, unit.start)
        epoch = self._epochs[key] = self._epochs.get(key, 0) + 1
        self._pool.assign_unit(worker, unit)
        self._victims.add_candidate(worker, unit, self._open_units.queue.unit_cost(unit))
        return AssignUnit(worker, unit, epoch)

    def _steal_from_unit(self, worker: WorkerId, position: int) -> list[SessionAction]:
        """Divide the running unit of a surveyed worker after its current item into two parts of equal estimated cost.

        `position` is the worker's current item. An idle worker gets the second part.
        """
        unit = self._victims.take_unit(worker)
        if unit is None:
            return []
        first = max(position + 1, unit.start + 1)
        if first >= unit.end or not self._pool.idle or self._draining or not self._open_units.is_open(unit, first):
            return []
        costs = self._costs[unit.shard]
        left_cost = costs[unit.end] - costs[first]
        if self._victims.may_others_have_more_work(left_cost):
            self._victims.add_candidate(worker, unit, left_cost)
            return []
        middle = split_item(costs, first, unit.end)
        tail = unit.sub_unit(middle, unit.end, unit.tasks)
        return [self._shrink_unit(worker, middle), self._assign_unit(min(self._pool.idle), tail)]

    def _end_units_in_time(self) -> list[SessionAction]:
        """Shorten each running unit that would last too long, and queue its last items as another unit."""
        actions: list[SessionAction] = []
        for worker, unit in tuple(self._pool.running.items()):
            end = self._throughput.unit_end_in_time(worker)
            if end is not None:
                actions += [self._shrink_unit(worker, end), *self._open_units.reopen_shard(unit.shard)]
        return actions

    def _shrink_unit(self, worker: WorkerId, end: int) -> SessionAction:
        unit = self._pool.running[worker]
        shortened = self._pool.running[worker] = unit.sub_unit(unit.start, end, unit.tasks)
        self._victims.add_candidate(worker, shortened, self._open_units.queue.unit_cost(shortened))
        return ShrinkUnit(worker, end)
