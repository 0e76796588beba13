"""Simulated time: the duration of a session over given costs, where only durations are simulated.

The scheduler gets estimates of the costs of items, which may be wrong. Workers have speeds, stall, join late and leave.
Until their speed is observed, one worker is started for `worth` of estimated work. A message takes `LATENCY` seconds
and a commit takes `COMMIT` seconds. Every `REPORT` seconds the positions of all workers are reported. Items are not
single events: the end of a unit follows from the sum of its costs.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from codebatch.model.outcome import Commit, HolderId, TaskOutcome, WorkUnit
from codebatch.model.shard import ShardId
from codebatch.scheduling.actions import (
    AssignUnit,
    CommitFailure,
    CompleteSession,
    RetireWorker,
    ShrinkUnit,
    SpawnWorker,
    SurveyWorker,
)
from codebatch.scheduling.analysis.driver import ExecutableAction, SessionDriver
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.scheduling.analysis.session import AnalysisSession
from codebatch.scheduling.events import (
    OutcomesCommitted,
    ProgressReport,
    SessionEvent,
    SessionStarted,
    UnitDone,
    WorkerId,
    WorkerIdle,
    WorkerLost,
    WorkerSurveyed,
)
from tests.scheduling.work.batches import work_of

LATENCY = 0.000_3
COMMIT = 0.001
REPORT = 0.1
WORTH_A_WORKER = 0.1
TASK = "parse"
_NO_WORKER = WorkerId(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """The workers. They take the speeds in turn.

    A unit stalls with the probability `stall_rate`, for `stall_seconds`. After a unit, a worker dies with the
    probability `leave_rate`. Worker n joins after n * `join_seconds` and takes `start_seconds` to start. At most
    `starts_max` workers start at a time.
    """

    jobs: int
    speeds: tuple[float, ...] = (1.0,)
    stall_rate: float = 0.0
    stall_seconds: float = 0.0
    join_seconds: float = 0.0
    leave_rate: float = 0.0
    start_seconds: float = 0.0
    starts_max: int | None = None


@dataclass(slots=True)
class _Worker:
    speed: float
    unit: WorkUnit | None = None
    began: float = 0.0
    end: int = 0
    finish: int = 0


@dataclass(slots=True)
class Simulation:
    """One session over shards of items with the true `costs`, in seconds at speed 1."""

    costs: Sequence[float]
    estimates: Sequence[float]
    crew: Crew
    seed: int = 0
    worth: float = WORTH_A_WORKER
    now: float = 0.0
    busy: float = 0.0
    units: int = 0
    steals: int = 0
    stalls: int = 0
    lost: float = 0.0
    _workers: dict[WorkerId, _Worker] = field(default_factory=dict)
    _agenda: list[tuple[float, int, WorkerId, SessionEvent | None]] = field(default_factory=list)
    _order: itertools.count[int] = field(default_factory=itertools.count)
    _chance: random.Random = field(init=False)
    _true: dict[ShardId, list[float]] = field(init=False)
    _driver: SessionDriver = field(init=False)

    def run(self) -> float:
        """Run the session. Return its makespan in seconds."""
        self._chance = random.Random(self.seed)
        sizes = _shard_sizes(len(self.costs), self._chance)
        shards = {ShardId(f"{n:08x}"): size for n, size in enumerate(sizes)}
        starts = dict(zip(shards, itertools.accumulate(sizes, initial=0), strict=False))
        self._true = {s: _sums(self.costs[starts[s] : starts[s] + size]) for s, size in shards.items()}
        estimated = {s: _sums(self.estimates[starts[s] : starts[s] + size]) for s, size in shards.items()}
        ledger = OutcomeLedger(work_of(shards), {TASK: ()})
        crew = self.crew
        session = AnalysisSession(
            ledger, costs=estimated, jobs=crew.jobs, cost_per_worker=self.worth, starts_max=crew.starts_max
        )
        self._driver = SessionDriver(session, self._execute)
        self._driver.handle(SessionStarted())
        self._later(REPORT, _NO_WORKER, None)
        while self._driver.end is None:
            self.now, order, id_, event = heapq.heappop(self._agenda)
            if id_ == _NO_WORKER:
                self._driver.handle(ProgressReport(REPORT, tuple(self._positions())))
                self._later(REPORT, _NO_WORKER, None)
                continue
            worker = self._workers.get(id_)
            if worker is None:
                continue
            if event is not None:
                self._driver.handle(event)
            elif worker.unit is not None and worker.finish == order:
                self._finish(id_, worker)
        assert isinstance(self._driver.end, CompleteSession)
        assert not any(map(ledger.open_units, shards))
        return self.now

    def _execute(self, action: ExecutableAction) -> None:
        match action:
            case SpawnWorker():
                id_ = WorkerId(len(self._workers) + 1)
                self._workers[id_] = _Worker(self.crew.speeds[id_ % len(self.crew.speeds)])
                self._later(id_ * self.crew.join_seconds + self.crew.start_seconds, id_, WorkerIdle(id_))
            case AssignUnit(worker, unit, _):
                self._begin(worker, unit)
            case SurveyWorker(worker):
                self._driver.handle(WorkerSurveyed(worker, self._position(self._workers[worker], 0.0)))
            case ShrinkUnit(worker, end):
                self.steals += 1
                self._shrink(worker, end)
            case RetireWorker():
                pass
            case CommitFailure():
                raise AssertionError("no item can fail in this simulation")

    def _begin(self, id_: WorkerId, unit: WorkUnit) -> None:
        worker = self._workers[id_]
        self.units += 1
        worker.unit, worker.end = unit, unit.end
        worker.began = self.now + LATENCY
        if self._chance.random() < self.crew.stall_rate:
            worker.began += self.crew.stall_seconds
            self.stalls += 1
        self._plan_finish(id_, worker)

    def _shrink(self, id_: WorkerId, end: int) -> None:
        """Shrink the unit of a worker. The message takes time, so the worker may pass the new end before."""
        worker = self._workers[id_]
        worker.end = max(end, min(worker.end, self._position(worker, LATENCY) + 1))
        self._plan_finish(id_, worker)

    def _plan_finish(self, id_: WorkerId, worker: _Worker) -> None:
        assert worker.unit is not None
        costs = self._true[worker.unit.shard]
        seconds = (costs[worker.end] - costs[worker.unit.start]) / worker.speed + COMMIT + LATENCY
        worker.finish = self._later(worker.began + seconds - self.now, id_, None)

    @property
    def started(self) -> int:
        """The number of started workers."""
        return len(self._workers)

    def _positions(self) -> Iterator[tuple[WorkerId, int]]:
        for id_, worker in self._workers.items():
            if worker.unit is not None:
                yield id_, self._position(worker, 0.0)

    def _position(self, worker: _Worker, ahead: float) -> int:
        """Return the current item of a worker `ahead` seconds from now."""
        assert worker.unit is not None
        costs, start = self._true[worker.unit.shard], worker.unit.start
        done = max(0.0, (self.now + ahead - worker.began) * worker.speed)
        return min(worker.end, bisect.bisect_right(costs, costs[start] + done, start, worker.end + 1) - 1)

    def _finish(self, id_: WorkerId, worker: _Worker) -> None:
        unit = worker.unit
        assert unit is not None
        costs = self._true[unit.shard]
        worker.unit = None
        if self._chance.random() < self.crew.leave_rate:
            self.lost += costs[worker.end] - costs[unit.start]
            del self._workers[id_]
            self._workers[id_] = _Worker(0.0)
            self._driver.handle(WorkerLost(id_, None, "crash", is_from_outside=True))
            return
        self.busy += costs[worker.end] - costs[unit.start]
        outcome = TaskOutcome(shard=unit.shard, task=TASK, start=unit.start, end=worker.end, type="result")
        commit = Commit(segment=HolderId(str(id_)), epoch=1, round=1, outcomes=(outcome,))
        self._driver.handle(OutcomesCommitted((commit,)))
        self._driver.handle(UnitDone(id_))

    def _later(self, seconds: float, id_: WorkerId, event: SessionEvent | None) -> int:
        order = next(self._order)
        heapq.heappush(self._agenda, (self.now + seconds, order, id_, event))
        return order


def skewed(items: int, seed: int) -> list[float]:
    """Return costs of which one in ten is twenty times as high as the others."""
    chance = random.Random(seed)
    return [0.01 * (20.0 if chance.random() < 0.1 else 1.0) for _ in range(items)]


def one_giant(items: int, seed: int) -> list[float]:
    """Return equal costs, except for one item that costs as much as 5,000 others."""
    costs = [0.01] * items
    costs[random.Random(seed).randrange(items)] = 50.0
    return costs


def log_normal(items: int, seed: int) -> list[float]:
    """Return costs as of real files: most are small, and a few are very large."""
    chance = random.Random(seed)
    return [0.01 * chance.lognormvariate(0.0, 1.5) for _ in range(items)]


def wrong(costs: Sequence[float], seed: int) -> list[float]:
    """Return estimates that do not correlate with the costs."""
    estimates = list(costs)
    random.Random(seed).shuffle(estimates)
    return estimates


SKEWS = {"10 % x 20": skewed, "one giant": one_giant, "log-normal": log_normal}


def _sums(costs: Sequence[float]) -> list[float]:
    return list(itertools.accumulate(costs, initial=0.0))


def _shard_sizes(items: int, chance: random.Random) -> list[int]:
    """Return sizes of shards with the distribution of content-defined cuts: 16 to 768, on average 256."""
    sizes: list[int] = []
    while items:
        size = min(items, 768, 16 + int(chance.expovariate(1 / 240)))
        sizes.append(size)
        items -= size
    return sizes
