"""A simulator of whole runs: sessions, workers and registers in memory, one seeded random choice at a time.

The simulator drives the real `AnalysisSession` and `OutcomeLedger`. Workers are state machines that lease a unit, work
item by item, commit and report. A kill can fall between any two of these steps, and messages may then be undelivered.
Registers are a dictionary whose keys are never replaced, which is the only guarantee of link(2).
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass, field

from msgspec.structs import replace

from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.outcome import Commit, HolderId, OutcomeRegister, TaskOutcome, WorkUnit
from codebatch.model.record import FailureReason
from codebatch.model.shard import ProjectWork, ShardId
from codebatch.scheduling.actions import (
    AssignUnit,
    CommitFailure,
    CompleteSession,
    EndBroken,
    EndDrained,
    RetireWorker,
    ShrinkUnit,
    SpawnWorker,
    SurveyWorker,
)
from codebatch.scheduling.analysis.driver import ExecutableAction, SessionDriver
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.scheduling.analysis.session import AnalysisSession
from codebatch.scheduling.events import (
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
from tests.scheduling.work.batches import work_of

NEEDS: dict[str, tuple[str, ...]] = {
    "parse": (),
    "symbols": ("parse",),
    "graph": ("parse", "symbols"),
    "lint": ("parse",),
    "report": ("graph", "lint"),
}
PROJECT = ("graph", "report")
UNITS = ({"parse", "symbols", "lint"}, {"graph"}, {"report"})
STEPS_MAX = 200_000
REPORT_RATE = 0.3
REPORT_SECONDS = (0.1, 1.0, 20.0)


@dataclass(slots=True)
class Disk:
    """The state that all processes share: write-once registers, leases by epoch, and live holders."""

    registers: dict[OutcomeRegister, Commit] = field(default_factory=dict)
    leases: dict[tuple[ShardId, int, int], HolderId] = field(default_factory=dict)
    live: set[HolderId] = field(default_factory=set)

    def link(self, commit: Commit, outcomes: tuple[TaskOutcome, ...]) -> Commit:
        """Publish some outcomes of a commit. Return a commit with those whose registers were free."""
        won = []
        for outcome in outcomes:
            register = OutcomeRegister(outcome.shard, outcome.start, outcome.task, commit.round)
            if register not in self.registers:
                self.registers[register] = Commit(
                    segment=commit.segment, epoch=commit.epoch, round=commit.round, outcomes=(outcome,)
                )
                won.append(outcome)
        return Commit(segment=commit.segment, epoch=commit.epoch, round=commit.round, outcomes=tuple(won))

    def highest(self) -> dict[UnitKey, tuple[int, HolderId]]:
        """Return the last epoch of every unit and its holder."""
        highest: dict[UnitKey, tuple[int, HolderId]] = {}
        for (shard, start, epoch), holder in self.leases.items():
            if epoch > highest.get((shard, start), (0, HolderId("")))[0]:
                highest[shard, start] = (epoch, holder)
        return highest


@dataclass(slots=True)
class SimulatedWorker:
    """A worker process, which is idle or processes an item of a unit."""

    id: WorkerId
    holder: HolderId
    unit: WorkUnit | None = None
    epoch: int = 0
    at: int = 0
    leased: bool = False
    inputs: Digest | None = None
    inbox: list[AssignUnit | RetireWorker | ShrinkUnit] = field(default_factory=list)


class SimulatedCoordinator:
    """A coordinator process with its workers."""

    def __init__(self, world: World, name: str, jobs: int) -> None:
        self.world = world
        self.holder = HolderId(name)
        world.disk.live.add(self.holder)
        self.ledger = world.ledger()
        highest = world.disk.highest()
        self.session = AnalysisSession(
            self.ledger,
            costs=world.costs,
            jobs=jobs,
            cost_per_worker=1e9 if world.is_observed else 0.0,
            leased={key: epoch for key, (epoch, holder) in highest.items() if holder in world.disk.live},
            epochs={key: epoch for key, (epoch, _) in highest.items()},
        )
        self.workers: dict[WorkerId, SimulatedWorker] = {}
        self.inbox: list[tuple[SimulatedWorker, SessionEvent]] = []
        self.driver = SessionDriver(self.session, self._do)
        self._spawned = 0
        self.driver.handle(SessionStarted())

    @property
    def end(self) -> CompleteSession | EndDrained | EndBroken | None:
        return self.driver.end

    def step(self, chance: random.Random) -> None:
        """Make one random step: deliver a message, or let a worker continue. Read the disk if the session waits."""
        choices: list[object] = list(self.workers.values())
        if self.inbox:
            choices += [None] * 2
        choice = chance.choice(choices) if choices else None
        if isinstance(choice, SimulatedWorker):
            self._work(choice, chance)
        elif self.inbox:
            worker, event = self.inbox.pop(0)
            if worker.id in self.workers or isinstance(event, OutcomesCommitted):
                self._deliver(worker, event)
        if self.session.is_waiting_for_processes and self.end is None:
            self._look()
        if self.world.is_observed and chance.random() < REPORT_RATE:
            self._report(chance.choice(REPORT_SECONDS))
        self._check_queue()

    def _report(self, seconds: float) -> None:
        """Report the positions of all workers that have leased their units."""
        before = self._spawned
        positions = ((worker.id, worker.at) for worker in self.workers.values() if worker.leased)
        self.driver.handle(ProgressReport(seconds, tuple(positions)))
        self.world.started_by_reports += self._spawned - before

    def _check_queue(self) -> None:
        """Check that the totals of the queue are the sums over its units."""
        queue = self.session._open_units.queue
        units = [unit for starts in queue._units.values() for unit in starts.values()]
        assert queue.units == len(units)
        assert queue.items == sum(unit.end - unit.start for unit in units)
        assert math.isclose(queue.cost, sum(map(queue.unit_cost, units)), abs_tol=1e-6)

    def kill_worker(self, worker: SimulatedWorker, *, reason: FailureReason = "crash") -> None:
        """Kill a worker by SIGKILL. Its uncommitted work is lost; its sent messages arrive before the channel ends."""
        self.world.disk.live.discard(worker.holder)
        for sender, event in [pair for pair in self.inbox if pair[0] is worker]:
            self._deliver(sender, event)
        self.inbox = [pair for pair in self.inbox if pair[0] is not worker]
        if self.end is None:
            self._learn()
        del self.workers[worker.id]
        is_at_item = worker.unit is not None and worker.at < worker.unit.end
        items = (worker.at, worker.at + 1) if is_at_item else None
        if self.end is None:
            self.driver.handle(WorkerLost(worker.id, items, reason))

    def die(self) -> None:
        """Kill the coordinator by SIGKILL. Its workers die with it."""
        self.world.disk.live.discard(self.holder)
        for worker in self.workers.values():
            self.world.disk.live.discard(worker.holder)

    def _deliver(self, worker: SimulatedWorker, event: SessionEvent) -> None:
        if self.end is not None and isinstance(event, WorkerIdle | LeaseRefused | UnitDone):
            worker.inbox.append(RetireWorker(worker.id))
            return
        self.driver.handle(event)
        if isinstance(event, LeaseRefused) or (
            isinstance(event, OutcomesCommitted) and any(not _is_whole(commit) for commit in event.commits)
        ):
            self._learn()

    def _do(self, action: ExecutableAction) -> None:
        match action:
            case SpawnWorker():
                self._spawned += 1
                worker = SimulatedWorker(WorkerId(self._spawned), HolderId(f"{self.holder}-{self._spawned}"))
                self.world.disk.live.add(worker.holder)
                self.workers[worker.id] = worker
                self.inbox.append((worker, WorkerIdle(worker.id)))
            case AssignUnit(worker=id_) | RetireWorker(worker=id_) | ShrinkUnit(worker=id_):
                self.workers[id_].inbox.append(action)
            case SurveyWorker(worker=id_):
                self.driver.handle(WorkerSurveyed(id_, self._position(id_)))
            case CommitFailure():
                outcomes = tuple(
                    _outcome(
                        action.shard,
                        task,
                        action.item,
                        action.item + 1,
                        action.reason,
                        self.ledger.inputs_digest(task) if task in PROJECT else None,
                    )
                    for task in action.tasks
                )
                commit = Commit(segment=self.holder, epoch=0, round=action.round, outcomes=outcomes)
                won = self.world.disk.link(commit, outcomes)
                self.driver.handle(OutcomesCommitted((won,)))
                if len(won.outcomes) < len(outcomes):
                    self._learn()

    def _work(self, worker: SimulatedWorker, chance: random.Random) -> None:
        if worker.unit is None:
            if worker.inbox:
                match worker.inbox.pop(0):
                    case AssignUnit(unit=unit, epoch=epoch):
                        self._lease(worker, unit, epoch)
                    case RetireWorker():
                        self.world.disk.live.discard(worker.holder)
                        del self.workers[worker.id]
                    case ShrinkUnit():
                        pass  # The message is for a unit that the worker has already finished.
            return
        if worker.inbox and chance.random() < 0.7 and isinstance(shrink := worker.inbox[0], ShrinkUnit):
            worker.inbox.pop(0)
            if worker.at < shrink.end < worker.unit.end:
                worker.unit = replace(worker.unit, end=shrink.end)
        if worker.at == worker.unit.end:
            self._commit(worker, chance)
            return
        shard = worker.unit.shard
        if (shard, worker.at) in self.world.poison:
            self.kill_worker(worker)
            return
        if shard in self.world.projects:
            ledger = self.world.ledger()
            (task,) = worker.unit.tasks
            assert not any(ledger.list_holes(s, t) for s, t in ledger.iter_chain_keys if t in NEEDS[task]), (
                "a needed task is not settled"
            )
            worker.inputs = ledger.inputs_digest(task)
        for task in worker.unit.tasks:
            self.world.executed[shard, worker.at, task, worker.unit.round] += 1
        worker.at += 1

    def _position(self, id_: WorkerId) -> int:
        worker, unit = self.workers[id_], self.session.running_unit(id_)
        assert unit is not None
        return worker.at if worker.unit is not None and worker.leased else unit.start

    def _lease(self, worker: SimulatedWorker, unit: WorkUnit, epoch: int) -> None:
        key = (unit.shard, unit.start, epoch)
        if key in self.world.disk.leases:
            self.inbox.append((worker, LeaseRefused(worker.id, epoch)))
            return
        self.world.disk.leases[key] = worker.holder
        if self.world.is_single:
            shrunk_ends = [message.end for message in worker.inbox if isinstance(message, ShrinkUnit)]
            self.world.check_nothing_committed(replace(unit, end=min([unit.end, *shrunk_ends])))
        worker.unit, worker.epoch, worker.at, worker.leased = unit, epoch, unit.start, True

    def _commit(self, worker: SimulatedWorker, chance: random.Random) -> None:
        """Link the outcomes and report them. A kill may fall between two links, or before the report."""
        unit = worker.unit
        assert unit is not None
        outcomes = tuple(_outcome(unit.shard, task, unit.start, unit.end, None, worker.inputs) for task in unit.tasks)
        commit = Commit(segment=worker.holder, epoch=worker.epoch, round=unit.round, outcomes=outcomes)
        linked = outcomes[: chance.randint(0, len(outcomes))] if chance.random() < self.world.kill_rate else outcomes
        won = self.world.disk.link(commit, linked)
        if len(linked) < len(outcomes):
            self.kill_worker(worker)
            return
        self.inbox.append((worker, OutcomesCommitted((won,))))
        self.inbox.append((worker, UnitDone(worker.id)))
        worker.unit, worker.leased, worker.inputs = None, False, None

    def _learn(self) -> None:
        known = {
            (shard, link.start, task, link.round)
            for shard, task in self.ledger.iter_chain_keys
            for link in self.ledger.iter_links(shard, task)
        }
        new = [commit for register, commit in self.world.disk.registers.items() if register not in known]
        if new and self.end is None:
            self.driver.handle(OutcomesCommitted(tuple(new)))

    def _look(self) -> None:
        self._learn()
        highest = self.world.disk.highest()
        for key in sorted(self.session.leased_elsewhere):
            epoch, holder = highest.get(key, (0, HolderId("")))
            if holder not in self.world.disk.live and self.end is None:
                self.driver.handle(UnitReleased(key, epoch))


class World:
    """A batch, its disk, and the work that its processes have executed."""

    def __init__(
        self, seed: int, *, shards: int, items_max: int, poison: int, kill_rate: float, is_observed: bool = False
    ) -> None:
        """`is_observed`: workers are started by reported progress; otherwise one is started for each unit."""
        self.chance = random.Random(seed)
        self.kill_rate = kill_rate
        self.sizes = {ShardId(f"{n:08x}"): self.chance.randint(1, items_max) for n in range(shards)}
        self.projects = {ProjectWork(task).id: task for task in PROJECT}
        sizes = {**self.sizes, **dict.fromkeys(self.projects, 1)}
        self.costs = {shard: [float(n) for n in range(size + 1)] for shard, size in sizes.items()}
        every = [(shard, item) for shard, size in sizes.items() for item in range(size)]
        self.poison = set(self.chance.sample(every, min(poison, len(every))))
        self.disk = Disk()
        self.executed: Counter[tuple[ShardId, int, str, int]] = Counter()
        self.is_single = False
        self.is_observed = is_observed
        self.started_by_reports = 0

    def ledger(self) -> OutcomeLedger:
        """Return the ledger that a new process reads from the disk."""
        ledger = OutcomeLedger(work_of(self.sizes, PROJECT), NEEDS)
        for commit in self.disk.registers.values():
            ledger.add(commit)
        return ledger

    def check_nothing_committed(self, unit: WorkUnit) -> None:
        """Check that the work a single coordinator begins is not committed.

        Exception: the owner of the whole unit committed it before it received the message that the tail was stolen.
        """
        ledger = self.ledger()
        for task in unit.tasks:
            for link in ledger.iter_links(unit.shard, task):
                is_late_owner = link.start < unit.start < link.end
                is_disjoint = link.end <= unit.start or unit.end <= link.start
                assert is_late_owner or is_disjoint, "committed work begins again"

    def check(self) -> None:
        """Check the invariants of a finished batch."""
        ledger = self.ledger()
        blocked = {(ProjectWork("report").id, 0)} if (ProjectWork("graph").id, 0) in self.poison else set()
        for shard, task in ledger.iter_chain_keys:
            links = list(ledger.iter_links(shard, task))
            assert [0, *(link.end for link in links)] == [*(link.start for link in links), self.sizes.get(shard, 1)]
            for link in links:
                items = {(shard, item) for item in range(link.start, link.end)}
                if link.type == "failed":
                    assert items <= self.poison | blocked, "an innocent item was recorded as failed"
                else:
                    assert not items & (self.poison | blocked), "an item that kills its worker has a result"
        for task in PROJECT:
            (link,) = ledger.iter_links(ProjectWork(task).id, task)
            assert link.outcome.inputs == ledger.inputs_digest(task), "the result of a project task has outdated inputs"


def _outcome(
    shard: ShardId, task: str, start: int, end: int, reason: FailureReason | None, inputs: Digest | None
) -> TaskOutcome:
    return TaskOutcome(
        shard=shard,
        task=task,
        start=start,
        end=end,
        type="result" if reason is None else "failed",
        reason=reason,
        digest=digest_bytes(f"{task} {reason}".encode()),
        inputs=inputs or Digest(""),
    )


def _is_whole(commit: Commit) -> bool:
    """Return whether a commit has all outcomes of a unit, so that no register was taken by another process."""
    return {outcome.task for outcome in commit.outcomes} in UNITS


def run_world(world: World, *, jobs: int, coordinators: int, coordinator_kills: int) -> int:
    """Run a batch to its end with random kills. Return the number of steps."""
    chance = world.chance
    world.is_single = coordinators == 1
    names = iter(range(1_000_000))
    running = [SimulatedCoordinator(world, f"c{next(names)}", jobs) for _ in range(coordinators)]
    for steps in range(STEPS_MAX):
        running = [coordinator for coordinator in running if coordinator.end is None or coordinator.workers]
        if not running:
            if not any(world.ledger().open_units(shard) for shard in world.costs):
                return steps
            running = [SimulatedCoordinator(world, f"c{next(names)}", jobs)]
        chosen = chance.choice(running)
        if coordinator_kills and chance.random() < 0.002:
            coordinator_kills -= 1
            chosen.die()
            running.remove(chosen)
            continue
        if chosen.workers and chance.random() < world.kill_rate * 0.05 and chosen.end is None:
            idle = [worker for worker in chosen.workers.values() if not worker.leased]
            if idle:
                chosen.kill_worker(chance.choice(idle))
                continue
        chosen.step(chance)
    raise AssertionError("the world does not end")
