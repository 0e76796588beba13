"""The event loop of the coordinator of an analysis, in one thread.

The loop reads messages of workers, deaths of workers, and commits of other coordinators. It passes them as events to
the session. The session makes all scheduling decisions and returns actions. The loop executes these actions: it sends
messages, starts workers and commits outcomes. The worker backend owns processes, signals and limits.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from codebatch.coordinator.analysis.adoption import PendingReuse, ReuseSource
from codebatch.coordinator.analysis.progress_counter import (
    ProgressCounter,
    RunningUnit,
    RunPhase,
    RunProgress,
    RunScope,
)
from codebatch.coordinator.analysis.remote_holders import blocked_by_remote_holders
from codebatch.coordinator.analysis.worker_deaths import death_entry, items_at_death, last_error_line, task_at_death
from codebatch.coordinator.processes.worker_backend import (
    DrainRequest,
    MessageReceived,
    TickPassed,
    WorkerBackend,
    WorkerExited,
    WorkerHandle,
    finished_items,
    unit_position,
    worker_positions,
)
from codebatch.errors import CodebatchError, EnvironmentBroken, StoreError, make_error
from codebatch.model.analysis.result_key import PlanItems
from codebatch.model.entry import Entry, display_path
from codebatch.model.outcome import OutcomeRegister, WorkUnit
from codebatch.model.plan import Plan
from codebatch.model.shard import ProjectWork, ShardId, work_item_path
from codebatch.model.text.quantities import count_text
from codebatch.protocol import messages
from codebatch.protocol.record_frames import FrameWriter
from codebatch.scheduling.actions import (
    AssignUnit,
    CommitFailure,
    EndBroken,
    RetireWorker,
    ShrinkUnit,
    SpawnWorker,
    SurveyWorker,
)
from codebatch.scheduling.analysis.driver import ExecutableAction, SessionDriver
from codebatch.scheduling.analysis.session import AnalysisSession
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
from codebatch.store.batches import journal
from codebatch.store.batches.batch_directory import BatchDir, make_batch_directories
from codebatch.store.batches.holders import HolderFile, HolderRegistration, LeaseReader
from codebatch.store.batches.leftovers import BatchLeftovers
from codebatch.store.results.ledgers import load_ledger, scan_new_outcomes
from codebatch.store.results.outcomes import OutcomeCommitter, OutcomeRegisters, failed_outcome


class RunWatcher(Protocol):
    """Receiver of progress reports."""

    def note(self, text: str) -> None:
        """Report a note for the user."""

    def phase(self, phase: RunPhase, done: int = 0, planned: int = 0) -> None:
        """Report the current phase and its progress. Both counts are 0 if unknown."""

    def update(self, progress: RunProgress) -> None:
        """Report the progress. This is called after each turn of the loop, at least ten times a second."""


class Coordinator:
    """One run of one batch in this process, with its own worker backend."""

    def __init__(
        self,
        batch: BatchDir,
        plan: Plan,
        items: Sequence[Entry],
        crew: WorkerBackend,
        *,
        about: HolderFile,
        jobs: int,
        costs: Mapping[ShardId, Sequence[float]],
        cost_per_worker: float,
        starts_max: int,
        scope: RunScope,
        watcher: RunWatcher | None,
        wall_ns: Callable[[], int],
        reuse: ReuseSource | None = None,
    ) -> None:
        """Register as a holder, adopt older results and load the ledger.

        `items` are the items of the plan, in plan order. `about` is the holder file of this process. `costs` are as in
        Session.
        """
        self._batch = batch
        self._plan = plan
        self._backend = crew
        self._watcher = watcher
        self._items = items
        self._work_by_id = plan.work_by_id()
        with contextlib.ExitStack() as opened:
            self._holder = HolderRegistration(batch.files, batch.root, about)
            opened.callback(self._holder.close)
            self._journal = journal.JournalWriter(batch.files, batch.root, about.holder, wall_ns)
            opened.callback(self._journal.close)
            self._committer = OutcomeCommitter(batch.files, batch.root, about.holder)
            opened.callback(self._committer.close)
            make_batch_directories(batch)
            self._outcomes = OutcomeRegisters(batch.files, batch.root)
            self._leases = LeaseReader(batch.files, batch.root, take_over=scope.take_over)
            self._sweep_dead_holders()
            self._reused = PendingReuse()
            if reuse:
                plan_items = PlanItems(items, plan.contexts)
                self._reused = reuse.adopt_results(
                    batch, plan, plan_items, self._committer, tasks=scope.tasks, shards=scope.shards
                )
            self.ledger = load_ledger(plan, self._outcomes)
            leases = self._leases.read_leases()
            self._open_resources = opened.pop_all()
        if scope.retry_failed:
            self.ledger.retry_unsuccessful()
        self._frame_writer = FrameWriter()
        open_costs = self._reused.reduce_costs(costs, len(plan.tasks) - len(plan.project_tasks))
        self._session = AnalysisSession(
            self.ledger,
            costs=open_costs,
            jobs=jobs,
            cost_per_worker=cost_per_worker,
            starts_max=starts_max,
            tasks=scope.tasks,
            shards=scope.shards,
            leased={key: lease.epoch for key, lease in leases.items() if lease.is_live},
            epochs={key: lease.epoch for key, lease in leases.items()},
        )
        self._workers: dict[WorkerId, WorkerHandle] = {}
        self._units: Counter[WorkerId] = Counter()
        self._driver = SessionDriver(self._session, self._execute_action, self._note_handled_event)
        self._spawned_count = self._refused_leases = self._commits_read = 0
        self._last_stderr = ""
        self._error: CodebatchError | None = None
        self._counter = ProgressCounter(plan, self.ledger, open_costs, scope)

    def run(self) -> None:
        """Run until this process can do nothing more, or until a drain: no more units start, and running units end.

        Raises EnvironmentBroken, or the error with which a worker gave up. Committed outcomes are kept, and the next
        run continues with them.
        """
        self._journal.write_event(journal.Started(pid=self._holder.about.pid))
        self._backend.begin()
        try:
            self._handle_event(SessionStarted())
            while self._driver.end is None:
                self._run_turn()
            self._send_drain()
            while self._workers:
                self._run_turn()
        finally:
            self._backend.end()
        self._journal.write_event(journal.Ended(reason=type(self._driver.end).__name__.lower()))
        if self._error is not None:
            raise self._error
        if isinstance(self._driver.end, EndBroken):
            raise EnvironmentBroken(
                f"{self._driver.end.deaths} workers died in a row without finishing anything; last worker: "
                f"{self._last_stderr}",
                hint=f"fix the cause, then resume with: codebatch resume --batch {self._batch.id}",
            )

    def close(self) -> None:
        """Release the leases, and unregister this process as a holder.

        Call this method after merging. Otherwise, other processes would see a batch with work left but without a
        process.
        """
        # If a file cannot be removed now, the next coordinator removes it.
        with self._open_resources, contextlib.suppress(OSError, StoreError):
            leftovers = BatchLeftovers(self._batch.files, self._batch.root)
            leftovers.remove_orphaned(self._leases.read_holders(), self._holder.id)

    @property
    def progress(self) -> RunProgress:
        """The progress of this run."""
        running = (
            RunningUnit(unit, finished_items(self._backend.step(worker), unit, self._units[worker]))
            for worker in self._workers
            if (unit := self._session.running_unit(worker)) is not None
        )
        return self._counter.progress(running, workers=len(self._workers))

    def note_merged(self, records: int) -> None:
        """Record in the journal that the outputs are merged."""
        self._journal.write_event(journal.Merged(records=records))

    def _run_turn(self) -> None:
        """Process all events of one turn. Wait at most 0.1 s for the first event."""
        for event in self._backend.wait():
            match event:
                case MessageReceived(worker, message):
                    self._receive_message(worker, message)
                case WorkerExited():
                    self._handle_exit(event)
                case DrainRequest(reason):
                    self._journal.write_event(journal.Drained(reason=reason))
                    self._begin_drain()
                case TickPassed(seconds):
                    units = [
                        (worker, self._session.running_unit(worker), self._units[worker]) for worker in self._workers
                    ]
                    self._handle_event(ProgressReport(seconds, worker_positions(self._backend, units)))
        if self._session.is_waiting_for_processes and self._driver.end is None:
            self._check_other_processes()
        if self._watcher is not None:
            self._watcher.update(self.progress)

    def _handle_event(self, event: SessionEvent) -> None:
        self._driver.handle(event)

    def _note_handled_event(self, event: SessionEvent) -> None:
        if isinstance(event, OutcomesCommitted):
            self._counter.note_commits(event.commits)

    def _execute_action(self, action: ExecutableAction) -> None:
        match action:
            case SpawnWorker():
                self._spawn_worker()
            case AssignUnit(worker, unit, epoch):
                self._units[worker] += 1
                self._backend.send(worker, messages.Assign(unit=unit, epoch=epoch, served=self._reused.for_unit(unit)))
            case SurveyWorker(worker):
                step = self._backend.step(worker)
                self._handle_event(
                    WorkerSurveyed(worker, unit_position(step, self._running_unit(worker), self._units[worker]))
                )
            case ShrinkUnit(worker, end):
                self._backend.send(worker, messages.Shrink(start=self._running_unit(worker).start, end=end))
            case RetireWorker(worker):
                self._backend.send(worker, messages.Stop())
            case CommitFailure():
                self._commit_failure(action)

    def _running_unit(self, worker: WorkerId) -> WorkUnit:
        unit = self._session.running_unit(worker)
        assert unit is not None
        return unit

    def _spawn_worker(self) -> None:
        self._spawned_count += 1
        worker = WorkerId(self._spawned_count)
        try:
            member = self._backend.start(worker)
        except OSError as error:
            if not self._workers:
                raise
            self._refused_leases += 1
            if self._watcher is not None and self._refused_leases == 1:
                self._watcher.note(
                    f"cannot start another worker: {error.strerror}; "
                    f"continuing with {count_text(len(self._workers), 'worker')}"
                )
            self._handle_event(WorkerLost(worker, None, "crash"))
            return
        self._workers[worker] = member
        self._journal.write_event(journal.Spawned(worker=member.holder, pid=member.pid))

    def _receive_message(self, worker: WorkerId, message: messages.MessageFromWorker) -> None:
        match message:
            case messages.Hello():
                self._handle_idle_worker(worker, WorkerIdle(worker))
            case messages.Refused(epoch=epoch):
                self._journal.write_event(journal.Refused(worker=self._workers[worker].holder, epoch=epoch))
                self._handle_idle_worker(worker, LeaseRefused(worker, epoch))
                self._read_commits()
            case messages.Committed(commit=commit, lost=lost):
                self._handle_event(OutcomesCommitted((commit,)))
                if lost:
                    # Another process committed this unit earlier. Without reading its commit, this process would count
                    # the unit as open forever.
                    self._read_commits()
            case messages.Returned() | messages.Delayed():
                pass  # Only workers of work batches send these messages.
            case messages.Finished(is_worn=is_worn):
                self._handle_idle_worker(worker, UnitDone(worker, is_worn))
            case messages.GaveUp(code=code, message=text, hint=hint):
                self._error = self._error or make_error(code, text, hint)
                self._begin_drain()

    def _handle_idle_worker(self, worker: WorkerId, event: WorkerIdle | LeaseRefused | UnitDone) -> None:
        """Pass an event of a worker without work to the session. If the session has ended, stop the worker instead."""
        if self._driver.end is None:
            self._handle_event(event)
        else:
            self._backend.send(worker, messages.Stop())

    def _begin_drain(self) -> None:
        self._send_drain()
        self._handle_event(DrainRequested())

    def _send_drain(self) -> None:
        """Ask the workers to stop after their current item. To finish a whole unit could take minutes."""
        for worker in self._workers:
            self._backend.send(worker, messages.Drain())

    def _handle_exit(self, died: WorkerExited) -> None:
        if self._driver.end is None:
            # The worker may have published an outcome by link(2) and died before it reported the outcome.
            self._read_commits()
        member = self._workers.pop(died.worker)
        self._last_stderr = last_error_line(died)
        unit = self._session.running_unit(died.worker)
        if died.returncode == 0 and (unit is None or self._driver.end is not None):
            if self._driver.end is None:
                self._handle_event(WorkerLost(died.worker, None, "crash"))
            return
        items = items_at_death(died, unit)
        task = task_at_death(died, self._plan) if items is not None else None
        work = self._work_by_id[unit.shard] if unit is not None else None
        self._journal.write_event(death_entry(died, member, unit, items, task, work, self._items))
        if self._driver.end is None:
            self._handle_event(WorkerLost(died.worker, items, died.reason, died.is_from_outside, task))

    def _commit_failure(self, action: CommitFailure) -> None:
        work = self._work_by_id[action.shard]
        path = work_item_path(work, action.item, self._items)
        encoded = [
            failed_outcome(
                path,
                OutcomeRegister(action.shard, action.item, task, action.round),
                action.reason,
                self._frame_writer,
                inputs=self.ledger.inputs_digest(task) if isinstance(work, ProjectWork) else None,
            )
            for task in action.tasks
        ]
        commit = self._committer.commit_outcomes(encoded, epoch=0, round_=action.round)
        for outcome in commit.outcomes:
            self._journal.write_event(
                journal.Failed(
                    shard=outcome.shard,
                    start=outcome.start,
                    end=outcome.end,
                    task=outcome.task,
                    round=action.round,
                    path=display_path(path),
                    reason=action.reason,
                )
            )
        self._handle_event(OutcomesCommitted((commit,)))
        if len(commit.outcomes) < len(encoded):
            self._read_commits()

    def _read_commits(self) -> None:
        """Process the commits on disk that no message reported: commits of other coordinators and of dead workers."""
        scanned = scan_new_outcomes(self.ledger, self._outcomes)
        self._commits_read += len(scanned.commits)
        if scanned.commits or scanned.unreadable:
            self._handle_event(OutcomesCommitted(tuple(scanned.commits), tuple(scanned.unreadable)))

    def _check_other_processes(self) -> None:
        """Check the units that other processes have leased.

        This is called while other processes have leased all remaining work. It reads the commits of these processes,
        and releases the units of dead and stuck processes.
        """
        self._read_commits()
        if not self._session.leased_elsewhere or self._driver.end is not None:
            return
        leases = self._leases.read_leases()
        leased_units: dict[UnitKey, HolderFile] = {}
        for key in sorted(self._session.leased_elsewhere):
            lease = leases.get(key)
            if lease is None or not lease.is_live or self._backend.is_holder_stuck(lease.holder):
                self._handle_event(UnitReleased(key, lease.epoch if lease else 0))
            else:
                leased_units[key] = lease.holder
        silent = [self._backend.is_holder_silent(holder, self._commits_read) for holder in leased_units.values()]
        if (
            leased_units
            and all(silent)
            and leased_units.keys() == self._session.leased_elsewhere
            and not self._session.is_working
        ):
            self._error = blocked_by_remote_holders(self._batch.id, leased_units)
            self._begin_drain()

    def _sweep_dead_holders(self) -> None:
        """Kill the orphaned processes of dead holders, and remove their orphaned files."""
        leftovers = BatchLeftovers(self._batch.files, self._batch.root)
        holders = self._leases.read_holders()
        self._backend.kill_orphans(
            {holder.holder for holder, is_live in holders if not is_live and holder.role == "worker"}
        )
        leftovers.remove_orphaned(holders, self._holder.id)
