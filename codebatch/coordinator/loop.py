"""The coordinator: one thread, one selector over worker channels and signals, the engine inside.

It turns what happens (messages, deaths, overdue items, other coordinators' commits) into events of the engine, and the
engine's actions into messages, processes and commits. Nothing here decides what runs where or what a failure is.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from codebatch.coordinator.costs import COST_PER_WORKER, estimate
from codebatch.coordinator.foreign import held_elsewhere
from codebatch.coordinator.limits import Guard, Limits
from codebatch.coordinator.signals import SignalCounter
from codebatch.coordinator.workers import NONSENSE, WorkerProcess, start_worker
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
from codebatch.engine.session import Session
from codebatch.errors import CodebatchError, EnvironmentBroken, StoreError, error_of
from codebatch.model.entry import Entry, display_path
from codebatch.model.outcome import HolderId, Register, Unit
from codebatch.model.plan import Plan, items_of
from codebatch.model.shard import PROJECT_PATH, ShardId, project_shard
from codebatch.protocol import messages
from codebatch.protocol.launch import HOLDER_VARIABLE
from codebatch.protocol.record_frames import FrameWriter
from codebatch.store.batches import Batch, make_batch_directories
from codebatch.store.holders import Holder, HolderFile, LeaseReader, new_holder_id
from codebatch.store.journal import Journal
from codebatch.store.ledgers import load_ledger
from codebatch.store.leftovers import BatchLeftovers
from codebatch.store.outcomes import Committer, Outcomes, failed_outcome
from codebatch.store.snapshots import Snapshot
from codebatch.store.store import Store
from codebatch.system.cell import NO_TASK, PHASE_COMMIT, PHASE_NAMES
from codebatch.system.clock import running_ns, wall_ns
from codebatch.system.host import this_host
from codebatch.system.machine import kill_marked
from codebatch.system.processes import Orphans, kill_group

TICK_SECONDS = 0.1


class Watcher(Protocol):
    """Who is told of progress."""

    def update(self, progress: Progress) -> None:
        """Called at each commit and ten times a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: items by task, of which a project task has one.

    `inflight` are the items that workers have done and not committed.
    """

    planned: Mapping[str, int]
    done: Mapping[str, int]
    inflight: int
    records: int
    failures: int
    workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What part of a batch to work on, whether what failed is done again, and a seed for a random order of units.

    `take_over`: what processes on other hosts hold is done here too.
    """

    tasks: frozenset[str] | None = None
    shards: frozenset[ShardId] | None = None
    retry_failed: bool = False
    shuffle_seed: int | None = None
    take_over: bool = False


class Coordinator:
    """One run over one batch. Main thread only, for it starts processes and handles signals."""

    def __init__(
        self,
        store: Store,
        batch: Batch,
        plan: Plan,
        snapshot: Snapshot,
        *,
        own_places: Mapping[str, str],
        jobs: int,
        limits: Limits,
        scope: Scope,
        watcher: Watcher | None,
    ) -> None:
        self._store = store
        self._batch = batch
        self._plan = plan
        self._own_places = own_places
        self._guard = Guard(limits)
        self._watcher = watcher
        self._items: list[Entry] = items_of(snapshot.entries, plan.paths)
        self._shards = {shard.id: shard for shard in plan.shards}
        about = HolderFile(
            holder=new_holder_id(), role="coordinator", pid=os.getpid(), host=this_host(), since_ns=wall_ns()
        )
        self._holder = Holder(batch.files, batch.root, about)
        self._journal = Journal(batch.files, batch.root, about.holder, wall_ns)
        self._committer = Committer(batch.files, batch.root, about.holder)
        self._frame_writer = FrameWriter()
        make_batch_directories(batch)
        self._outcomes = Outcomes(batch.files, batch.root)
        self._leases = LeaseReader(batch.files, batch.root, take_over=scope.take_over)
        self.ledger = load_ledger(plan, self._outcomes)
        if scope.retry_failed:
            self.ledger.retry_unsuccessful()
        self._sweep()
        leases = self._leases.leases()
        self._session = Session(
            self.ledger,
            costs=estimate(plan, self._items, scope.shuffle_seed),
            jobs=jobs,
            cost_per_worker=COST_PER_WORKER,
            tasks=scope.tasks,
            shards=scope.shards,
            leased={key: lease.epoch for key, lease in leases.items() if lease.is_live},
            epochs={key: lease.epoch for key, lease in leases.items()},
        )
        self._workers: dict[WorkerId, WorkerProcess] = {}
        self._holders: set[HolderId] = set()
        self._events: deque[Event] = deque()
        self._spawned = self._learned = 0
        self._end: Complete | Drained | Break | None = None
        self._refusal: CodebatchError | None = None
        self._selector = selectors.DefaultSelector()
        self._signals = SignalCounter()
        self._signals_seen = 0
        self._planned = {task.name: 1 if task.scope == "project" else plan.items for task in plan.tasks}
        self._done = dict.fromkeys(plan.task_names, 0)
        self._records = self._failures = 0
        for shard, task in self.ledger.chains:
            for link in self.ledger.walk(shard, task):
                if scope.retry_failed and link.type != "result":
                    continue
                self._count(link.outcome.task, link.end - link.start, link.type, link.outcome.counts.records)

    def run(self) -> int:
        """Work until nothing is left to do here, or a signal drains us.

        Returns 0, or the exit status of the signal. Raises EnvironmentBroken, or what a worker gave up for; what is
        committed stays, and the next run continues.
        """
        self._journal.write("started", pid=os.getpid())
        self._orphans = Orphans()
        with self._signals:
            self._selector.register(self._signals.wakeup, selectors.EVENT_READ, None)
            try:
                self._handle(Started())
                while self._end is None or self._workers:
                    self._turn()
            finally:
                self._end_workers()
                self._selector.close()
                self._committer.close()
        self._journal.write("ended", reason=type(self._end).__name__.lower())
        if self._refusal is not None:
            raise self._refusal
        if isinstance(self._end, Break):
            raise EnvironmentBroken(
                f"{self._end.deaths} workers died in a row without finishing anything",
                hint=f"see what they said with: codebatch errors --batch {self._batch.id}",
            )
        return self._signals.exit_status

    def close(self) -> None:
        """Give up the leases. Call it after merging, so that nobody thinks the batch is stalled."""
        with contextlib.suppress(OSError, StoreError):  # What we cannot look at now, the next one does.
            left = BatchLeftovers(self._batch.files, self._batch.root)
            left.sweep(self._leases.holders(), self._holder.id)
        self._journal.close()
        self._holder.close()

    def note_merged(self, records: int) -> None:
        """Write to the journal that the outputs are merged."""
        self._journal.write("merged", records=records)

    def _turn(self) -> None:
        """Wait for something to happen, at most a tick, and see to it."""
        events = self._selector.select(TICK_SECONDS)
        self._guard.look(running_ns() / 1e9)
        for key, _ in events:
            if key.data is None:
                self._signals.clear()
            elif key.data.id not in self._workers:
                continue  # It was buried earlier in this turn.
            elif key.fileobj is key.data.channel:
                self._receive(key.data)
            elif not key.data.read_stderr():
                self._selector.unregister(key.fd)
        for worker in [worker for worker in self._workers.values() if worker.has_ended]:
            self._receive(worker)
        self._obey_signals()
        self._guard.enforce(self._workers.values())
        if self._session.is_waiting_for_others and self._end is None:
            self._look_at_others()
        if not events:
            self._orphans.reap([worker.process.pid for worker in self._workers.values()])
        self._report()

    def _handle(self, event: Event) -> None:
        """Give an event to the engine and do what it says. What that brings about waits until all of it is done."""
        self._events.append(event)
        if len(self._events) > 1:
            return
        while self._events:
            event = self._events[0]
            if isinstance(event, Committed):
                self._tally(event)
            if self._end is None or isinstance(event, Committed):
                self._perform(self._session.handle(event))
            self._events.popleft()

    def _perform(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Spawn():
                    self._spawn()
                case Assign(worker, unit, epoch):
                    self._workers[worker].assign(messages.Assign(unit=unit, epoch=epoch))
                case Survey(worker):
                    self._handle(Surveyed(worker, self._workers[worker].position(self._running(worker))))
                case Shrink(worker, end):
                    self._workers[worker].send(messages.Shrink(start=self._running(worker).start, end=end))
                case Retire(worker):
                    self._workers[worker].send(messages.Stop())
                case Fail():
                    self._fail(action)
                case Complete() | Drained() | Break():
                    self._end = action

    def _running(self, worker: WorkerId) -> Unit:
        unit = self._session.running_unit(worker)
        assert unit is not None
        return unit

    def _spawn(self) -> None:
        self._spawned += 1
        worker = start_worker(
            WorkerId(self._spawned),
            self._batch,
            store_root=str(self._store.root),
            coordinator=self._holder.id,
            own_places=self._own_places,
        )
        self._workers[worker.id] = worker
        self._holders.add(worker.holder)
        self._selector.register(worker.channel, selectors.EVENT_READ, worker)
        self._selector.register(worker.stderr, selectors.EVENT_READ, worker)
        self._journal.write("spawned", worker=worker.holder, pid=worker.process.pid)

    def _receive(self, worker: WorkerProcess) -> None:
        received = worker.receive()
        if received is None:
            self._bury(worker)
            return
        for message in received:
            match message:
                case messages.Hello():
                    self._idle(worker, Ready(worker.id))
                case messages.Refused(epoch=epoch):
                    self._journal.write("refused", worker=worker.holder, epoch=epoch)
                    self._idle(worker, Refused(worker.id, epoch))
                    self._learn()
                case messages.Committed(commit=commit, lost=lost):
                    self._handle(Committed((commit,)))
                    if lost:
                        # Another process settled this before. Unless we learn how, the work stays open here for ever.
                        self._learn()
                case messages.Finished(is_worn=is_worn):
                    self._idle(worker, Finished(worker.id, is_worn))
                case messages.GaveUp(code=code, message=text, hint=hint):
                    self._refusal = self._refusal or error_of(code, text, hint)
                    self._handle(DrainRequested())

    def _idle(self, worker: WorkerProcess, event: Ready | Refused | Finished) -> None:
        """A worker has nothing to do now. Once the session is over it has nothing to wait for either."""
        if self._end is None:
            self._handle(event)
        else:
            worker.send(messages.Stop())

    def _tally(self, event: Committed) -> None:
        """Count what is new: a commit reported by its worker may have been found on disk before, and the other way."""
        for commit in event.commits:
            for outcome in commit.outcomes:
                if not self.ledger.knows(Register(outcome.shard, outcome.start, outcome.task, commit.round)):
                    self._count(outcome.task, outcome.end - outcome.start, outcome.type, outcome.counts.records)

    def _count(self, task: str, items: int, type_: str, records: int) -> None:
        self._done[task] += items
        self._records += records
        self._failures += items if type_ == "failed" else 0

    def _bury(self, worker: WorkerProcess) -> None:
        if self._end is None:
            self._learn()  # It may have died between its last link and its report.
        del self._workers[worker.id]
        self._selector.unregister(worker.channel)
        if worker.stderr in self._selector.get_map():
            self._selector.unregister(worker.stderr)
        unit = self._session.running_unit(worker.id)
        step = worker.step()
        death = worker.bury()
        if death.returncode == 0 and (unit is None or self._end is not None):
            if self._end is None:
                self._handle(Lost(worker.id, None, "crash"))
            return
        is_at_items = step is not None and unit is not None and step.phase != PHASE_COMMIT
        items = step.items if step is not None and is_at_items and worker.killed_for != "interrupted" else None
        if unit is not None and worker.killed_for == NONSENSE:  # Who wrote it may have been done since.
            items = (unit.start, unit.end)
        task = self._plan.task_names[step.task] if step is not None and items and step.task != NO_TASK else None
        path = None
        if unit is not None and items is not None and items[1] == items[0] + 1:
            path = display_path(self._path_of(unit.shard, items[0]))
        self._journal.write(
            "lost",
            worker=worker.holder,
            pid=worker.process.pid,
            shard=unit.shard if unit else None,
            start=items[0] if items else None,
            end=items[1] if items else None,
            path=path,
            reason=f"{worker.killed_for}: {death}" if worker.killed_for else str(death),
            memory_peak_bytes=death.memory_peak_bytes,
            task=task,
            evidence="\n".join(filter(None, [f"phase: {PHASE_NAMES[step.phase]}" if step else "", worker.stderr_text])),
        )
        if self._end is None:
            reason, is_from_outside = self._guard.reason_of(worker, death)
            self._handle(Lost(worker.id, items, reason, is_from_outside, task))

    def _fail(self, action: Fail) -> None:
        path = self._path_of(action.shard, action.item)
        encoded = [
            failed_outcome(
                path,
                Register(action.shard, action.item, task, action.round),
                action.reason,
                self._frame_writer,
                inputs=self.ledger.inputs(task) if action.shard == project_shard(task) else None,
            )
            for task in action.tasks
        ]
        commit = self._committer.commit(encoded, epoch=0, round_=action.round)
        for outcome in commit.outcomes:
            self._journal.write(
                "failed",
                shard=outcome.shard,
                start=outcome.start,
                end=outcome.end,
                task=outcome.task,
                round=action.round,
                path=display_path(path),
                reason=action.reason,
            )
        self._handle(Committed((commit,)))
        if len(commit.outcomes) < len(encoded):
            self._learn()

    def _path_of(self, shard: ShardId, item: int) -> bytes:
        return self._items[self._shards[shard].start + item].path if shard in self._shards else PROJECT_PATH

    def _learn(self) -> None:
        """Take note of what is committed on disk and was not reported: by other coordinators, and by the dead."""
        found = self._outcomes.scan()
        for register in found.unreadable:
            self.ledger.mark_unreadable(register)
        self._learned += len(found.commits)
        if found.commits:
            self._handle(Committed(tuple(found.commits)))

    def _look_at_others(self) -> None:
        """Nothing is left here but what others hold: see what they committed, take over from the dead and the stuck."""
        self._learn()
        if not self._session.foreign or self._end is not None:
            return
        leases = self._leases.leases()
        held: dict[UnitKey, HolderFile] = {}
        for key in sorted(self._session.foreign):
            lease = leases.get(key)
            if lease is None or not lease.is_live or self._guard.is_stuck(self._batch, lease.holder):
                self._handle(Released(key, lease.epoch if lease else 0))
            else:
                held[key] = lease.holder
        silent = [self._guard.is_silent(self._batch, holder, self._learned) for holder in held.values()]
        if held and all(silent) and held.keys() == self._session.foreign and not self._session.is_working:
            self._refusal = held_elsewhere(self._batch.id, held)
            self._handle(DrainRequested())

    def _obey_signals(self) -> None:
        if self._signals.is_suspension_asked:
            self._suspend()
        if self._signals.count == self._signals_seen:
            return
        self._signals_seen = self._signals.count
        if self._signals_seen == 1:
            self._journal.write("drained", reason=str(self._signals.first and self._signals.first.name))
            for worker in self._workers.values():
                worker.send(messages.Drain())
            self._handle(DrainRequested())
            return
        number = signal.SIGTERM if self._signals_seen == 2 else signal.SIGKILL
        for worker in self._workers.values():
            worker.kill("interrupted", number)

    def _suspend(self) -> None:
        """Ctrl-Z: stop the workers, then ourselves; go on together when continued."""
        for worker in self._workers.values():
            kill_group(worker.process, signal.SIGSTOP)
        self._signals.suspend()
        for worker in self._workers.values():
            kill_group(worker.process, signal.SIGCONT)

    def _report(self) -> None:
        if self._watcher is None:
            return
        steps = [worker.step() for worker in self._workers.values()]
        inflight = sum(
            step.item - unit.start
            for worker, step in zip(self._workers.values(), steps, strict=True)
            if step is not None and step.items and (unit := self._session.running_unit(worker.id)) is not None
        )
        self._watcher.update(
            Progress(
                planned=self._planned,
                done=self._done,
                inflight=inflight,
                records=self._records,
                failures=self._failures,
                workers=len(self._workers),
            )
        )

    def _end_workers(self) -> None:
        """Whatever happened, leave no process behind, nor what tasks started and detached."""
        for worker in list(self._workers.values()):
            worker.kill("abandoned")
            worker.bury()
        self._workers.clear()
        if self._holders:
            kill_marked(HOLDER_VARIABLE, self._holders)
        self._orphans.end()

    def _sweep(self) -> None:
        """Kill the processes and remove the files that the dead left."""
        left = BatchLeftovers(self._batch.files, self._batch.root)
        holders = self._leases.holders()
        dead = {holder.holder for holder, is_live in holders if not is_live and holder.role == "worker"}
        if dead:
            kill_marked(HOLDER_VARIABLE, dead)
        left.sweep(holders, self._holder.id)
