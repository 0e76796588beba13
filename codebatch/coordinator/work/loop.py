"""The event loop of the coordinator of a work batch, in one thread.

It translates messages of workers, requests and changes on disk into events of the conductor, and executes its actions.
The conductor (scheduling/work/conductor.py) makes all scheduling decisions; the backend owns processes and signals. The
file is one unit, long as it is, because events are best read together with their effects.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from codebatch.coordinator.processes.worker_backend import DrainRequest, MessageReceived, WorkerExited, WorkerHandle
from codebatch.coordinator.work.attempt_context import make_assign
from codebatch.coordinator.work.duration_estimates import DurationEstimator
from codebatch.coordinator.work.event_publisher import EventPublisher
from codebatch.coordinator.work.interfaces import (
    CommandBackend,
    CommandBackendEvent,
    CommandWatcher,
    ForcedStopRequested,
    HelperExited,
    StoppedWorker,
    TimerFired,
)
from codebatch.coordinator.work.notifications import Notifier
from codebatch.coordinator.work.question_inbox import QuestionInbox
from codebatch.coordinator.work.stop_requests import StopRequests
from codebatch.coordinator.work.stopped_workers import stopped_worker_text
from codebatch.coordinator.work.worker_messages import action_message
from codebatch.errors import BatchRunning, CodebatchError, EnvironmentBroken, StoreCorrupt, StoreError, make_error
from codebatch.model.outcome import WorkUnit
from codebatch.model.plan import Plan
from codebatch.model.work.command import CommandId
from codebatch.model.work.request import Set
from codebatch.model.work.work_batch import WORK_TASK, Work
from codebatch.protocol import messages
from codebatch.protocol.launch import attempt_mark
from codebatch.scheduling.actions import CompleteSession, EndBroken, EndDrained, RetireWorker, SpawnWorker
from codebatch.scheduling.events import DrainRequested, LeaseRefused, SessionStarted, UnitDone, WorkerId, WorkerIdle
from codebatch.scheduling.work.clock_limits import ClockWatch
from codebatch.scheduling.work.command_plan import make_command_plan
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.events import (
    AttemptOutcome,
    CommandAction,
    CommandAdvanced,
    CommandEvent,
    CommandReleased,
    CommitInterrupted,
    ConsultationEnded,
    ConsultRules,
    DeliverAnswer,
    MakeRequest,
    NextStarted,
    OutcomesConcluded,
    QueuedReturned,
    RecallQueued,
    RequestRead,
    SetTimer,
    SignalReceived,
    StartCommand,
    TerminateCommand,
    WaitEnded,
    WorkerDied,
)
from codebatch.store import layout
from codebatch.store.batches import journal
from codebatch.store.batches.batch_directory import BatchDir, make_batch_directories
from codebatch.store.batches.holders import HolderFile, HolderRegistration, LeaseReader, UnitLease
from codebatch.store.batches.leftovers import BatchLeftovers
from codebatch.store.results.outcomes import OutcomeCommitter, OutcomeRegisters, attempt_outcome, removed_outcomes_error
from codebatch.store.work.attempts import AttemptReader, read_leases
from codebatch.store.work.requests import RequestStore
from codebatch.system.clock import running_ns

_DIRECTORIES_KEPT_OPEN = (layout.OUTCOMES, layout.LEASES, layout.HOLDERS, layout.REQUESTS)
# Number of turns after which the leases of other processes are checked. A turn without events counts as _QUIET_TURN.
_TURNS_PER_CHECK = 100
_QUIET_TURN_WEIGHT = 20
# Questions are read at most once in this interval while events keep arriving.
_QUESTIONS_POLL_NS = 20_000_000


class WorkCoordinator:
    """One run of one work batch, with its own worker backend. A batch has at most one coordinator at a time."""

    def __init__(
        self,
        batch: BatchDir,
        plan: Plan,
        work: Work,
        commands: Sequence[CommandId],
        crew: CommandBackend,
        *,
        about: HolderFile,
        watcher: CommandWatcher | None,
        wall_ns: Callable[[], int],
        read_text: Callable[[str], str],
        is_isolated: Callable[[CommandId], bool],
        waits_for_answers: bool = False,
        now_ns: Callable[[], int] = running_ns,
        estimator: DurationEstimator | None = None,
        notifier: Notifier | None = None,
    ) -> None:
        """Take the lease of the batch and read its state. Raises BatchRunning if another process has the lease.

        `commands` are in plan order, `about` describes this process, `read_text` and `is_isolated` describe a command.
        """
        self._batch, self._backend, self._watcher, self._is_isolated = batch, crew, watcher, is_isolated
        with contextlib.ExitStack() as opened:
            self._holder = HolderRegistration(batch.files, batch.root, about, is_durable=True)
            opened.callback(self._holder.close)
            make_batch_directories(batch)
            directories = (batch.root / name for name in _DIRECTORIES_KEPT_OPEN)
            opened.enter_context(batch.files.keeping_open(batch.root, *directories))
            self._places = self._outcome_directory_inodes()
            self._leases = LeaseReader(batch.files, batch.root)
            self.epoch = self._take_lease()
            self._journal = journal.JournalWriter(batch.files, batch.root, about.holder, wall_ns)
            opened.callback(self._journal.close)
            self._committer = OutcomeCommitter(batch.files, batch.root, about.holder)
            opened.callback(self._committer.close)
            self.attempts = AttemptReader(plan, OutcomeRegisters(batch.files, batch.root))
            self._requests = RequestStore(batch.files, batch.root)
            leased = read_leases(self._leases, self.attempts.places)
            concluded = self.attempts.read()
            self._kill_orphans(leased.unended_leases(concluded))
            self._backend.adopt_workers([lease.holder for lease in leased.leases.values() if lease.is_live])
            requests = list(self._requests.read())
            self._inbox = QuestionInbox(
                batch, work, self.attempts.places, self._requests, read_text=read_text, start=crew.start_helper,
                wall_ns=wall_ns, warn=(lambda _: None) if watcher is None else watcher.on_warning,
            )  # fmt: skip
            durations = () if estimator is None else estimator.estimated_seconds
            agenda = make_command_plan(work, commands, batch.id, durations)
            agenda = replace(agenda, waits_for_answers=waits_for_answers or agenda.waits_for_answers)
            self.conductor = Conductor(
                agenda, concluded=concluded, epochs=leased.epoch_by_item, foreign=leased.live_items,
                requests=requests, live_questions=self._inbox.read(),
            )  # fmt: skip
            ids = self.conductor.agenda.ids
            self._stop_requests = StopRequests(self._requests, self._leases, self.attempts, ids, about.pid, wall_ns)
            self.publisher = EventPublisher(
                batch, work, self.conductor, self.attempts.places, self.epoch, concluded=concluded, requests=requests,
                leases=leased.leases, question_of=self._inbox.question, wall_ns=wall_ns, running_ns=now_ns,
                estimator=estimator, notifier=notifier,
            )  # fmt: skip
            self._open_resources = opened.pop_all()
        self._workers: dict[WorkerId, WorkerHandle] = {}
        self._events: deque[CommandEvent] = deque()
        self._end_action: CompleteSession | EndDrained | EndBroken | None = None
        self._spawned_count = self._turns_since_check = 0
        self._now_ns, self._read_ns, self._clock = now_ns, 0, ClockWatch(self.conductor, wall_ns)
        self._requests_handed = self.conductor.handled_request_count
        self._error: CodebatchError | None = None

    def run(self) -> None:
        """Run until no command can start any more, or until a drain: no more commands start, and running ones end.

        Raises EnvironmentBroken, or the error with which a worker gave up. Running commands then outlive this process.
        """
        self._journal.write_event(journal.Started(pid=self._holder.about.pid))
        if self._watcher is not None:
            self._watcher.on_start(self.conductor)
            self.publisher.watcher = self._watcher
        self._backend.begin()
        try:
            try:
                self._handle_event(SessionStarted())
                while self._end_action is None or self._workers:
                    self._run_turn()
            finally:
                self._backend.end()
        except (CodebatchError, OSError) as error:
            why = error.strerror or str(error) if isinstance(error, OSError) else error.message
            self.publisher.end(None, why)
            raise
        failure = self._final_error()
        self.publisher.end(self._end_action, "" if failure is None else failure.message)
        self._journal.write_event(journal.Ended(reason=type(self._end_action).__name__.lower()))
        if failure is not None:
            raise failure

    def _final_error(self) -> CodebatchError | None:
        """Return the error that ends this run, or None if the run may continue."""
        if self._error is not None:
            return self._error
        if self._outcome_directory_inodes() != self._places:
            return removed_outcomes_error(self._batch.files, self._batch.root)
        if isinstance(self._end_action, EndBroken):
            return EnvironmentBroken(
                f"{self._end_action.deaths} workers died in a row before any task ended",
                hint=f"resume with: codebatch resume --batch {self._batch.id}",
            )
        return None

    @property
    def is_drained(self) -> bool:
        """Whether the run ended because a drain was requested."""
        return isinstance(self._end_action, EndDrained)

    @property
    def has_unseen_requests(self) -> bool:
        """Whether requests arrived that were not read. To avoid a race, check this after the lease was released."""
        return len(self._requests.read()) > self.conductor.handled_request_count

    def close(self) -> None:
        """Release the lease of the batch. The publisher stays open, for events about the last notifications."""
        # If a file cannot be removed now, the next coordinator removes it.
        with self._open_resources, contextlib.suppress(OSError, StoreError):
            leftovers = BatchLeftovers(self._batch.files, self._batch.root)
            leftovers.remove_orphaned(self._leases.read_holders(), self._holder.id)

    def _outcome_directory_inodes(self) -> list[tuple[int, int] | None]:
        """Return device and inode of the directories with outcomes. They differ after a replacement."""
        places = (self._batch.root, self._batch.root / layout.OUTCOMES)
        stats = [self._batch.files.stat(place) for place in places]
        return [None if stat is None else (stat.st_dev, stat.st_ino) for stat in stats]

    def _take_lease(self) -> int:
        epoch, leader = self._leases.read_leader()
        if leader is None and self._holder.try_lease_batch(epoch + 1):
            return epoch + 1
        _, leader = self._leases.read_leader()
        owner_text = f"process {leader.pid} on {leader.host.name}" if leader is not None else "another process"
        raise BatchRunning(
            f"batch {self._batch.id} is already running ({owner_text})",
            hint=f"see: codebatch status --batch {self._batch.id}",
        )

    def _run_turn(self) -> None:
        events = self._backend.wait()
        self._read_clock()
        self._append_waiting_stops()
        self._read_requests()  # Workers read requests too. Their messages may be the effect of a request.
        for event in events:
            self._handle_backend_event(event)
        if not events or self._now_ns() - self._read_ns >= _QUESTIONS_POLL_NS:
            self._read_ns = self._now_ns()
            for question in self._inbox.read() if self._end_action is None else ():
                self._handle_event(question)
        self._turns_since_check += 1 if events else _QUIET_TURN_WEIGHT
        if self.conductor.adopted_items and self._turns_since_check >= _TURNS_PER_CHECK and self._end_action is None:
            self._turns_since_check = 0
            self._check_adopted_workers()
        self.publisher.on_turn_end()
        if self._watcher is not None:
            self._watcher.on_turn_end(self.publisher.eta, self.publisher.counts)

    def _handle_backend_event(self, event: CommandBackendEvent) -> None:
        match event:
            case MessageReceived(worker, message):
                self._receive_message(worker, message)
            case WorkerExited():
                self._handle_exit(event)
            case DrainRequest(reason):
                self.publisher.record_drain(reason)
                self._journal.write_event(journal.Drained(reason=reason))
                self._handle_event(DrainRequested())
                self._handle_event(SignalReceived(reason, ends=False))
            case ForcedStopRequested(reason, is_killed):
                if self._watcher is not None:
                    self._watcher.on_forced_stop(is_killed)
                self._handle_event(SignalReceived(reason, ends=True))
            case StoppedWorker():
                self._note_stopped_worker(event)
            case TimerFired(item, round_):
                self._handle_event(WaitEnded(item, round_))
            case HelperExited():
                self._consult_rules(lambda: self._inbox.handle_output(event))

    def _note_stopped_worker(self, stopped: StoppedWorker) -> None:
        self._journal.write_event(
            journal.WorkerStopped(
                worker=stopped.holder, pid=stopped.pid, is_traced=stopped.is_traced, is_killed=stopped.is_killed
            )
        )
        if self._watcher is not None:
            leases = read_leases(self._leases, self.attempts.places).leases
            items = self.conductor.running_items & leases.keys()
            ids = [self.conductor.agenda.ids[item] for item in items if leases[item].holder.holder == stopped.holder]
            self._watcher.on_note(stopped_worker_text(stopped, ids[0] if ids else ""))

    def _consult_rules(self, consult: Callable[[], ConsultationEnded | None]) -> None:
        """Ask the answering rules or program. On a disk error, drain, and leave the question to people."""
        try:
            consulted = consult()
        except StoreError as error:
            self._stop_after_error(error)
            return
        self._read_requests()
        if consulted is not None and self._end_action is None:
            self._handle_event(consulted)

    def _read_requests(self) -> None:
        if self._end_action is not None:
            return
        try:
            requests = self._requests.read()
        # The requests are unreadable, so nothing may start. Running commands continue.
        except StoreCorrupt as error:
            self._stop_after_error(error)
            return
        while self._end_action is None and self._requests_handed < len(requests):
            self._requests_handed += 1
            request = requests[self._requests_handed - 1]
            if isinstance(request.body, Set) and request.body.deadline_ns:
                self._read_clock(request.body.deadline_ns)  # The request may start tasks.
            self._handle_event(RequestRead(request))

    def _read_clock(self, new_deadline_ns: int = 0) -> None:
        if self._end_action is None and (change := self._clock.read_change(new_deadline_ns)) is not None:
            self._handle_event(change)

    def _handle_event(self, event: CommandEvent) -> None:
        """Pass an event to the conductor and execute its actions. Then handle the events that the actions cause."""
        self._events.append(event)
        if len(self._events) > 1:
            return
        while self._events:
            event = self._events[0]
            # If an action reads several requests, the run may end at one. The next coordinator handles the rest.
            if self._end_action is None or not isinstance(event, RequestRead):
                for action in self.conductor.handle(event):
                    self._execute_action(action)
                self.publisher.on_event_handled(event)
                if self._watcher is not None and isinstance(event, DrainRequested):
                    self._watcher.on_drain()
            self._events.popleft()

    def _execute_action(self, action: CommandAction) -> None:
        match action:
            case SpawnWorker():
                self._spawned_count += 1
                worker = WorkerId(self._spawned_count)
                member = self._workers[worker] = self._backend.start(worker)
                self._journal.write_event(journal.Spawned(worker=member.holder, pid=member.pid))
            case StartCommand():
                self._backend.send(
                    action.worker, make_assign(self.conductor, action, self.attempts.places, self._is_isolated)
                )
                self.publisher.record_assignment(action, self._workers[action.worker])
            case CommandAdvanced(start):
                self.publisher.record_assignment(start, self._workers[start.worker])
            case RecallQueued() | TerminateCommand() | DeliverAnswer() | RetireWorker():
                self._backend.send(action.worker, action_message(action))
            case CommitInterrupted():
                self._commit_interrupted(action)
            case MakeRequest(body):
                self._append_stop_request(lambda given: self._stop_requests.append(body, given), ends=body.terminates)
            case SetTimer(item, round_, seconds, until_ns):
                self._backend.set_timer(item, round_, seconds, until_ns)
            case ConsultRules():
                self._consult_rules(lambda: self._inbox.consult_rules(action))
            case CompleteSession() | EndDrained() | EndBroken():
                self._end_action = action

    def _append_stop_request(self, append: Callable[[Mapping[CommandId, int]], None], *, ends: bool) -> None:
        """Append requests. If `ends` is set and the disk fails, attempts end anyway and count as interrupted."""
        ids = self.conductor.agenda.ids
        try:
            append({ids[item]: epoch for item, (epoch, _) in self.conductor.leased_items.items()})
        except StoreError as error:
            self._stop_after_error(error)
            for worker in self._workers if ends else ():
                self._backend.send(worker, messages.Terminate(why="stopped"))
        self._read_requests()

    def _append_waiting_stops(self) -> None:
        if self._stop_requests.is_waiting and self._end_action is None:
            self._append_stop_request(self._stop_requests.append_waiting, ends=True)

    def _receive_message(self, worker: WorkerId, message: messages.MessageFromWorker) -> None:
        match message:
            case messages.Hello():
                self._handle_idle_worker(worker, WorkerIdle(worker))
            case messages.Refused(epoch=epoch):
                self._journal.write_event(journal.Refused(worker=self._workers[worker].holder, epoch=epoch))
                self._advance_to_last(worker)
                self._handle_idle_worker(worker, LeaseRefused(worker, epoch))
            case messages.Committed(commit=commit, lost=lost, used=used):
                ended = self.attempts.record_reported(commit)
                self.publisher.record_use(ended, used)
                for one in ended:
                    while one.item != self.conductor.running_item(worker) and self._advance_worker(worker):
                        pass
                    self._handle_event(OutcomesConcluded([one]))
                if lost:
                    self._read_commits()
            case messages.Returned(count=count):
                self._handle_event(QueuedReturned(worker, count))
                self._advance_to_last(worker)
            case messages.Finished():
                self._advance_to_last(worker)
                self._handle_idle_worker(worker, UnitDone(worker))
            case messages.Delayed(message=text, seconds=seconds):
                if self._watcher is not None:
                    self._watcher.on_note(
                        f"{text}: the outcome of a task cannot be written; "
                        f"free some space within {seconds:.0f} s, or the run stops"
                    )
            case messages.GaveUp(code=code, message=text, hint=hint):
                self._stop_after_error(make_error(code, text, hint))

    def _advance_to_last(self, worker: WorkerId) -> None:
        """Record that a worker has begun all its queued commands, one after another."""
        while self._advance_worker(worker):
            pass

    def _advance_worker(self, worker: WorkerId) -> bool:
        """Record that a worker has begun its next queued command. Return False if it has none."""
        if self.conductor.next_item(worker) is None:
            return False
        self._handle_event(NextStarted(worker))
        return True

    def _stop_after_error(self, error: CodebatchError) -> None:
        if self._watcher is not None and self._error is None:
            self._watcher.on_note(error.message)
        self._error = self._error or error
        self._handle_event(DrainRequested())

    def _handle_idle_worker(self, worker: WorkerId, event: WorkerIdle | LeaseRefused | UnitDone) -> None:
        """Pass an event of a worker without work to the conductor. If the batch has ended, stop the worker."""
        self._handle_event(event)
        if self._end_action is not None:
            self._backend.send(worker, messages.Stop())

    def _handle_exit(self, died: WorkerExited) -> None:
        self._append_waiting_stops()
        self._read_requests()  # A request to stop may be the reason why the worker died.
        concluded = self.attempts.read()  # The worker may have died between link(2) and its report.
        leases = {} if self._end_action is not None else read_leases(self._leases, self.attempts.places).leases
        ended = self._advance_dead_worker(died.worker, leases, concluded)
        if ended or concluded.unreadable:
            self._handle_event(OutcomesConcluded(ended, concluded.unreadable))
        member = self._workers.pop(died.worker)
        item = self.conductor.running_item(died.worker)
        if died.returncode != 0 or item is not None:
            self._journal.write_event(
                journal.Lost(
                    worker=member.holder,
                    pid=member.pid,
                    reason=f"{died.killed_for}: {died.how}" if died.killed_for else died.how,
                    memory_peak_bytes=died.memory_peak_bytes,
                    evidence=died.stderr,
                )
            )
        if self._end_action is None:
            lease = None if item is None else leases.get(item)
            if item is None or lease is None or lease.epoch < self.conductor.last_epoch(item):
                self._handle_event(WorkerDied(died.worker, "nobody"))
            else:
                self._handle_event(WorkerDied(died.worker, "it" if lease.holder.holder == member.holder else "another"))

    def _advance_dead_worker(
        self, worker: WorkerId, leases: Mapping[int, UnitLease], concluded: OutcomesConcluded
    ) -> list[AttemptOutcome]:
        """Record which queued commands a dead worker began, by its leases. Return the remaining conclusions."""
        ended = list(concluded.conclusions)
        holder = self._workers[worker].holder
        while (item := self.conductor.next_item(worker)) is not None:
            lease = leases.get(item)
            if lease is None or lease.holder.holder != holder:
                break
            current = [one for one in ended if one.item == self.conductor.running_item(worker)]
            ended = [one for one in ended if one not in current]
            if current:
                self._handle_event(OutcomesConcluded(current))
            self._handle_event(NextStarted(worker))
        return ended

    def _commit_interrupted(self, action: CommitInterrupted) -> None:
        shard, item = self.attempts.places.place_of_item(action.item)
        unit = WorkUnit(shard=shard, start=item, end=item + 1, tasks=(WORK_TASK,), round=action.round)
        encoded = attempt_outcome(unit, action.type, "interrupted")
        commit = self._committer.commit_outcomes([encoded], epoch=action.epoch, round_=action.round)
        self._handle_event(OutcomesConcluded(self.attempts.record_reported(commit)))
        if not commit.outcomes:
            self._read_commits()

    def _read_commits(self) -> None:
        """Process the commits on disk that no message reported: commits of adopted workers and of dead workers."""
        concluded = self.attempts.read()
        if concluded.conclusions or concluded.unreadable:
            self._handle_event(concluded)

    def _check_adopted_workers(self) -> None:
        """Process commits of adopted workers. If an adopted worker is dead, kill its command and release its item."""
        leases = read_leases(self._leases, self.attempts.places).leases
        dead = {
            item: leases[item] for item in self.conductor.adopted_items if item in leases and not leases[item].is_live
        }
        self._kill_orphans(dead)
        self._read_requests()
        self._read_commits()
        for item, lease in sorted(dead.items()):
            self._handle_event(CommandReleased(item, lease.epoch))

    def _kill_orphans(self, leases: dict[int, UnitLease]) -> None:
        """Kill all orphaned processes of the attempts that dead workers leased."""
        place = self.attempts.places.place_of_item
        marks = {attempt_mark(lease.holder.holder, *place(item), lease.epoch) for item, lease in leases.items()}
        self._backend.kill_orphans(marks, {lease.holder.holder for lease in leases.values()})
