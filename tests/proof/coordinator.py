"""A coordinator in a simulation: the real engine and store, real workers in simulated processes, no sockets.

It does what codebatch/coordinator/loop.py does, in the same order; what is left out is signals, limits of time and
progress.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codebatch.coordinator.merge import merge_outputs
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
    WorkerId,
)
from codebatch.engine.session import Session
from codebatch.errors import CodebatchError, error_of
from codebatch.model.outcome import HolderId, Register, Unit
from codebatch.model.plan import items_of
from codebatch.model.shard import PROJECT_PATH, project_shard
from codebatch.protocol import messages
from codebatch.protocol.record_frames import FrameWriter
from codebatch.store import journal
from codebatch.store.batches import open_batch
from codebatch.store.holders import Holder, HolderFile, LeaseReader
from codebatch.store.ledgers import load_ledger, tally_of
from codebatch.store.outcomes import Committer, Outcomes, failed_outcome
from codebatch.store.snapshots import load_snapshot
from codebatch.store.store import open_store
from codebatch.system.cell import NO_TASK, PHASE_COMMIT, PHASE_ITEM, PHASE_LEASE
from codebatch.system.clock import wall_ns
from codebatch.system.host import this_host
from codebatch.testing.schedule import Process
from tests.proof.channel import Pipe, SimulatedCell

if TYPE_CHECKING:
    from tests.proof.world import World


@dataclass(slots=True)
class SimulatedWorker:
    """A worker as its coordinator sees it.

    `units` are how many it was given, `assigned_at` is the step at which it got the last, `scanned_at` the one at which
    the coordinator had last read the disk then.
    """

    id: WorkerId
    holder: HolderId
    process: Process
    cell: SimulatedCell
    pipe: Pipe = field(default_factory=Pipe)
    units: int = 0
    assigned_at: int = 0
    scanned_at: int = 0


class SimulatedCoordinator:
    """One `codebatch run` over the world's batch."""

    def __init__(self, world: World, process: Process, holder: HolderId, jobs: int, *, is_retrying: bool) -> None:
        self._world = world
        self._process = process
        self.holder = holder
        self._jobs = jobs
        self._is_retrying = is_retrying
        self.workers: dict[WorkerId, SimulatedWorker] = {}
        self._events: deque[tuple[Event, int | None]] = deque()
        self._spawned = 0
        self._end: Complete | Drained | Break | None = None
        self._refusal: CodebatchError | None = None
        self._scanned_at = 0

    def run(self) -> str:
        """Work until nothing is left to do; returns how it ended. Raises CodebatchError."""
        files = self._world.make_files(self._process.calls)
        self._store = open_store(files, self._world.store_root)
        self._batch = open_batch(self._store, self._world.batch_id)
        self._plan = self._batch.plan()
        snapshot = load_snapshot(files, self._store.root, self._plan.snapshot_id)
        self._items = items_of(snapshot.entries)
        self._shards = {shard.id: shard for shard in self._plan.shards}
        about = HolderFile(holder=self.holder, role="coordinator", pid=0, host=this_host(), since_ns=wall_ns())
        holder = Holder(files, self._batch.root, about)
        self._journal = journal.Journal(files, self._batch.root, self.holder, wall_ns)
        self._committer = Committer(files, self._batch.root, self.holder)
        self._frame_writer = FrameWriter()
        self._outcomes = Outcomes(files, self._batch.root)
        self._leases = LeaseReader(files, self._batch.root)
        self._scanned_at = self._world.schedule.steps
        self._ledger = load_ledger(self._plan, self._outcomes)
        if self._is_retrying:
            self._ledger.retry_unsuccessful()
        leases = self._leases.leases()
        self._session = Session(
            self._ledger,
            costs={
                **{shard.id: [float(n) for n in range(shard.items + 1)] for shard in self._plan.shards},
                **{project_shard(task): [0.0, 1.0] for task in self._plan.project_tasks},
            },
            jobs=self._jobs,
            leased={key: lease.epoch for key, lease in leases.items() if lease.is_live},
            epochs={key: lease.epoch for key, lease in leases.items()},
        )
        self._journal.write(journal.Started(pid=0))
        try:
            self._loop()
        except Exception:  # Not when killed: then the kernel ends them.
            self._end_workers()
            raise
        if self._refusal is not None:
            raise self._refusal
        if isinstance(self._end, Break):
            return "broken"
        if tally_of(self._ledger).open == 0:
            outputs = merge_outputs(self._batch, self._plan, self._ledger)
            self._journal.write(journal.Merged(records=0))
            holder.close()
            return "drained" if isinstance(self._end, Drained) else outputs.manifest.result_digest
        holder.close()
        return "drained"

    def drain(self) -> None:
        """What the first SIGTERM does."""
        for worker in self.workers.values():
            worker.pipe.send(messages.Drain())
        self._handle(DrainRequested())

    def _loop(self) -> None:
        self._handle(Started())
        while self._end is None or self.workers:
            self._process.wait(self._has_news, is_patient=False)
            if self.holder in self._world.draining:
                self._world.draining.discard(self.holder)
                if self._end is None:
                    self.drain()
            for worker in [worker for worker in self.workers.values() if worker.pipe.has_news]:
                message = worker.pipe.receive()
                if message is None:
                    self._bury(worker)
                else:
                    self._receive(worker, message)
            if self._end is None and self._session.is_waiting_for_others:
                self._look_at_others()

    def _has_news(self) -> bool:
        return self.holder in self._world.draining or any(worker.pipe.has_news for worker in self.workers.values())

    def _handle(self, event: Event, *, scanned_at: int | None = None) -> None:
        """Give an event to the engine; `scanned_at` is when the disk was looked at that it tells of."""
        self._events.append((event, scanned_at))
        if len(self._events) > 1:
            return
        while self._events:
            event, scanned_at = self._events[0]
            self._scanned_at = self._scanned_at if scanned_at is None else scanned_at
            if self._end is None or isinstance(event, Committed):
                self._perform(self._session.handle(event))
            self._events.popleft()

    def _perform(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Spawn():
                    self._spawned += 1
                    id_ = WorkerId(self._spawned)
                    self.workers[id_] = self._world.start_worker(self, id_)
                    self._journal.write(journal.Spawned(worker=self.workers[id_].holder, pid=0))
                case Assign(worker=id_, unit=unit, epoch=epoch):
                    worker = self.workers[id_]
                    worker.units += 1
                    worker.assigned_at, worker.scanned_at = self._world.schedule.steps, self._scanned_at
                    worker.pipe.send(messages.Assign(unit=unit, epoch=epoch))
                case Survey(worker=id_):
                    self._handle(Surveyed(id_, self._position(id_)))
                case Shrink(worker=id_, end=end):
                    self.workers[id_].pipe.send(messages.Shrink(start=self.running_unit(id_).start, end=end))
                case Retire(worker=id_):
                    self.workers[id_].pipe.send(messages.Stop())
                case Fail():
                    self._fail(action)
                case Complete() | Drained() | Break():
                    self._end = action

    def running_unit(self, id_: WorkerId) -> Unit:
        """What a worker is to do, as far as it was told."""
        unit = self._session.running_unit(id_)
        assert unit is not None
        return unit

    def _position(self, id_: WorkerId) -> int:
        worker, unit = self.workers[id_], self.running_unit(id_)
        step = worker.cell.read()
        if step.unit < worker.units or step.phase == PHASE_LEASE:
            return unit.start
        return step.item if step.phase == PHASE_ITEM else unit.end

    def _receive(self, worker: SimulatedWorker, message: messages.FromWorker) -> None:
        match message:
            case messages.Hello():
                self._idle(worker, Ready(worker.id))
            case messages.Refused(epoch=epoch):
                self._idle(worker, Refused(worker.id, epoch))
                self._learn()
            case messages.Committed(commit=commit, lost=lost):
                self._world.note_reported(commit)
                self._handle(Committed((commit,)))
                if lost:
                    self._world.refused_late += lost
                    self._learn()
            case messages.Finished(is_worn=is_worn):
                self._idle(worker, Finished(worker.id, is_worn))
            case messages.GaveUp(code=code, message=text, hint=hint):
                self._refusal = self._refusal or error_of(code, text, hint)
                self._handle(DrainRequested())

    def _idle(self, worker: SimulatedWorker, event: Ready | Refused | Finished) -> None:
        if self._end is None:
            self._handle(event)
        else:
            worker.pipe.send(messages.Stop())

    def _bury(self, worker: SimulatedWorker) -> None:
        if self._end is None:
            self._learn()
        del self.workers[worker.id]
        if self._end is not None:
            return
        step = worker.cell.read()
        has_unit = self._session.running_unit(worker.id) is not None
        items = step.items if has_unit and step.phase != PHASE_COMMIT else None
        task = self._plan.task_names[step.task] if items and step.task != NO_TASK else None
        is_from_outside = worker.holder in self._world.killed
        self._handle(Lost(worker.id, items, "crash", is_from_outside, task))

    def _fail(self, action: Fail) -> None:
        is_of_file = action.shard in self._shards
        path = self._items[self._shards[action.shard].start + action.item].path if is_of_file else PROJECT_PATH
        encoded = [
            failed_outcome(
                path,
                Register(action.shard, action.item, task, action.round),
                action.reason,
                self._frame_writer,
                inputs=None if is_of_file else self._ledger.inputs(task),
            )
            for task in action.tasks
        ]
        commit = self._committer.commit(encoded, epoch=0, round_=action.round)
        self._world.note_reported(commit)
        self._handle(Committed((commit,)))
        if len(commit.outcomes) < len(encoded):
            self._learn()

    def _learn(self) -> None:
        scanned_at = self._world.schedule.steps
        found = self._outcomes.scan()
        for register in found.unreadable:
            self._ledger.mark_unreadable(register)
        if found.commits:
            self._handle(Committed(tuple(found.commits)), scanned_at=scanned_at)

    def _look_at_others(self) -> None:
        self._learn()
        if not self._session.foreign or self._end is not None:
            return
        leases = self._leases.leases()
        for key in sorted(self._session.foreign):
            lease = leases.get(key)
            if self._end is None and (lease is None or not lease.is_live or self._world.is_stuck(lease.holder.holder)):
                self._handle(Released(key, lease.epoch if lease else 0))

    def _end_workers(self) -> None:
        """Whatever happened, leave no process behind."""
        for worker in self.workers.values():
            if worker.process.is_alive:
                worker.process.kill()
        self.workers.clear()
