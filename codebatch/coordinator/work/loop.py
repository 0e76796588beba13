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
from codebatch.coordinator.work.duration_estimates import Estimator
from codebatch.coordinator.work.event_publisher import EventPublisher
from codebatch.coordinator.work.interfaces import (
    CommandBackend,
    CommandHeard,
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
from codebatch.errors import BatchRunning, CodebatchError, EnvironmentBroken, StoreCorrupt, StoreError, make_error
from codebatch.model.outcome import Unit
from codebatch.model.plan import Plan
from codebatch.model.work.command import CommandId
from codebatch.model.work.work_batch import WORK_TASK, Work
from codebatch.protocol import messages
from codebatch.protocol.launch import attempt_mark
from codebatch.scheduling.actions import Break, Complete, Drained, Retire, Spawn
from codebatch.scheduling.events import DrainRequested, LeaseRefused, Ready, SessionStarted, UnitDone, WorkerId
from codebatch.scheduling.work.command_plan import make_command_plan
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.events import (
    CommandAction,
    CommandAdvanced,
    CommandEvent,
    CommandReleased,
    Concluded,
    Conclusion,
    Consult,
    Consulted,
    DeliverAnswer,
    MakeRequest,
    NextStarted,
    QueuedReturned,
    RecallQueued,
    Requested,
    Settle,
    Signalled,
    StartCommand,
    TerminateCommand,
    WaitEnded,
    Wake,
    WorkerDied,
)
from codebatch.store import layout
from codebatch.store.batches import journal
from codebatch.store.batches.batches import BatchDir, make_batch_directories
from codebatch.store.batches.holders import Holder, HolderFile, Lease, LeaseReader
from codebatch.store.batches.leftovers import BatchLeftovers
from codebatch.store.results.outcomes import Committer, Outcomes, attempt_outcome, removed_outcomes_error
from codebatch.store.work.attempts import Attempts, read_leases
from codebatch.store.work.requests import Requests
from codebatch.system.clock import running_ns

_KEPT_OPEN = (layout.OUTCOMES, layout.LEASES, layout.HOLDERS, layout.REQUESTS)
# Number of turns after which the leases of other processes are checked. A turn without events counts as _QUIET_TURN.
_LOOK_EVERY = 100
_QUIET_TURN = 20
_READ_NS = 20_000_000  # Requests and questions are read at most once in this interval while events keep arriving.


def _action_message(action: RecallQueued | TerminateCommand | DeliverAnswer | Retire) -> messages.ToWorker:
    match action:
        case RecallQueued():
            return messages.Drain()
        case TerminateCommand(_, grace_seconds, task, why):
            return messages.Terminate(why=why, grace_seconds=grace_seconds, task=task)
        case DeliverAnswer():
            return messages.Proceed()
        case Retire():
            return messages.Stop()


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
        waits_for_answers: bool = False,
        now_ns: Callable[[], int] = running_ns,
        estimator: Estimator | None = None,
        notifier: Notifier | None = None,
    ) -> None:
        """Take the lease of the batch and read its state. Raises BatchRunning if another process has the lease.

        `commands` are in plan order, `about` is the holder file of this process, `read_text` returns a command's text.
        """
        self._batch = batch
        self._backend = crew
        self._watcher = watcher
        with contextlib.ExitStack() as opened:
            self._holder = Holder(batch.files, batch.root, about, is_durable=True)
            opened.callback(self._holder.close)
            make_batch_directories(batch)
            opened.enter_context(batch.files.keeping_open(batch.root, *(batch.root / name for name in _KEPT_OPEN)))
            self._places = self._inodes()
            self._leases = LeaseReader(batch.files, batch.root)
            self.epoch = self._take_lease()
            self._journal = journal.Journal(batch.files, batch.root, about.holder, wall_ns)
            opened.callback(self._journal.close)
            self._committer = Committer(batch.files, batch.root, about.holder)
            opened.callback(self._committer.close)
            self.attempts = Attempts(plan, Outcomes(batch.files, batch.root))
            self._requests = Requests(batch.files, batch.root)
            leased = read_leases(self._leases, self.attempts.places)
            concluded = self.attempts.read()
            self._kill_orphans(leased.unended(concluded))
            self._backend.adopt([lease.holder for lease in leased.leases.values() if lease.is_live])
            requests = list(self._requests.read())
            self._inbox = QuestionInbox(
                batch, work, self.attempts.places, self._requests, read_text=read_text, start=crew.help, wall_ns=wall_ns
            )
            self._stops = StopRequests(self._requests, self._leases, self.attempts, commands, about.pid, wall_ns)
            agenda = make_command_plan(work, commands, batch.id, () if estimator is None else estimator.lengths)
            self.conductor = Conductor(
                replace(agenda, waits_for_answers=waits_for_answers or agenda.waits_for_answers),
                concluded=concluded,
                epochs=leased.epochs,
                foreign=leased.live,
                requests=requests,
                live_questions=self._inbox.read(),
            )
            self._publisher = EventPublisher(
                batch, work, self.conductor, self.attempts.places, self.epoch, concluded=concluded, requests=requests,
                leases=leased.leases, question_of=self._inbox.question, wall_ns=wall_ns, running_ns=now_ns,
                estimator=estimator, notifier=notifier,
            )  # fmt: skip
            opened.callback(self._publisher.close)
            self._opened = opened.pop_all()
        self._workers: dict[WorkerId, WorkerHandle] = {}
        self._events: deque[CommandEvent] = deque()
        self._end: Complete | Drained | Break | None = None
        self._spawned = self._since_look = 0
        self._now_ns, self._read_ns = now_ns, 0
        self._requests_handed = self.conductor.handled_request_count
        self._error: CodebatchError | None = None

    def run(self) -> None:
        """Run until no command can start any more, or until a drain: no more commands start, and running ones end.

        Raises EnvironmentBroken, or the error with which a worker gave up. Running commands then outlive this process.
        """
        self._journal.write(journal.Started(pid=self._holder.about.pid))
        if self._watcher is not None:
            self._watcher.on_start(self.conductor)
        self._backend.begin()
        try:
            try:
                self._handle(SessionStarted())
                while self._end is None or self._workers:
                    self._turn()
            finally:
                self._backend.end()
        except (CodebatchError, OSError) as error:
            why = error.strerror or str(error) if isinstance(error, OSError) else error.message
            self._publisher.end(None, why)
            raise
        failure = self._failure()
        self._publisher.end(self._end, "" if failure is None else failure.message)
        self._journal.write(journal.Ended(reason=type(self._end).__name__.lower()))
        if failure is not None:
            raise failure

    def _failure(self) -> CodebatchError | None:
        """Return the error that ends this run, or None if the run may continue."""
        if self._error is not None:
            return self._error
        if self._inodes() != self._places:
            return removed_outcomes_error(self._batch.files, self._batch.root)
        if isinstance(self._end, Break):
            return EnvironmentBroken(
                f"{self._end.deaths} workers died in a row before any task ended",
                hint=f"resume with: codebatch resume --batch {self._batch.id}",
            )
        return None

    @property
    def is_drained(self) -> bool:
        """Whether the run ended because a drain was requested."""
        return isinstance(self._end, Drained)

    @property
    def has_unseen_requests(self) -> bool:
        """Whether requests arrived that were not read. To avoid a race, check this after the lease was released."""
        return len(self._requests.read()) > self.conductor.handled_request_count

    def close(self) -> None:
        """Release the lease of the batch."""
        # If a file cannot be removed now, the next coordinator removes it.
        with self._opened, contextlib.suppress(OSError, StoreError):
            leftovers = BatchLeftovers(self._batch.files, self._batch.root)
            leftovers.sweep(self._leases.holders(), self._holder.id)

    def _inodes(self) -> list[tuple[int, int] | None]:
        """Return device and inode of the directories with outcomes. They differ after a replacement."""
        places = (self._batch.root, self._batch.root / layout.OUTCOMES)
        stats = [self._batch.files.stat(place) for place in places]
        return [None if stat is None else (stat.st_dev, stat.st_ino) for stat in stats]

    def _take_lease(self) -> int:
        epoch, leader = self._leases.leader()
        if leader is None and self._holder.try_lead(epoch + 1):
            return epoch + 1
        _, leader = self._leases.leader()
        owner_text = f"process {leader.pid} on {leader.host.name}" if leader is not None else "another process"
        raise BatchRunning(
            f"batch {self._batch.id} is already running ({owner_text})",
            hint=f"see: codebatch status --batch {self._batch.id}",
        )

    def _turn(self) -> None:
        events = self._backend.wait()
        self._append_waiting_stops()
        for event in events:
            self._handle_backend_event(event)
        if not events or self._now_ns() - self._read_ns >= _READ_NS:
            self._read_ns = self._now_ns()
            self._read_requests()
            for question in self._inbox.read() if self._end is None else ():
                self._handle(question)
        self._since_look += 1 if events else _QUIET_TURN
        if self.conductor.adopted and self._since_look >= _LOOK_EVERY and self._end is None:
            self._since_look = 0
            self._check_adopted_workers()
        self._publisher.on_turn_end()
        if self._watcher is not None:
            self._watcher.on_turn_end(self._publisher.eta)

    def _handle_backend_event(self, event: CommandHeard) -> None:
        match event:
            case MessageReceived(worker, message):
                self._receive(worker, message)
            case WorkerExited():
                self._handle_exit(event)
            case DrainRequest(reason):
                self._publisher.record_drain(reason)
                self._journal.write(journal.Drained(reason=reason))
                self._handle(DrainRequested())
                self._handle(Signalled(reason, ends=False))
            case ForcedStopRequested(reason, is_killed):
                if self._watcher is not None:
                    self._watcher.on_forced_stop(is_killed)
                self._handle(Signalled(reason, ends=True))
            case StoppedWorker():
                self._note_stopped_worker(event)
            case TimerFired(item, round_):
                self._handle(WaitEnded(item, round_))
            case HelperExited(output):
                self._consult_rules(lambda: self._inbox.handle_output(output))

    def _note_stopped_worker(self, stopped: StoppedWorker) -> None:
        self._journal.write(
            journal.WorkerStopped(
                worker=stopped.holder, pid=stopped.pid, is_traced=stopped.is_traced, is_killed=stopped.is_killed
            )
        )
        if self._watcher is not None:
            leases = read_leases(self._leases, self.attempts.places).leases
            items = self.conductor.running & leases.keys()
            ids = [self.conductor.agenda.ids[item] for item in items if leases[item].holder.holder == stopped.holder]
            self._watcher.on_note(stopped_worker_text(stopped, ids[0] if ids else ""))

    def _consult_rules(self, consult: Callable[[], Consulted | None]) -> None:
        """Ask the answering rules or program. On a disk error, drain, and leave the question to people."""
        try:
            consulted = consult()
        except StoreError as error:
            self._give_up(error)
            return
        self._read_requests()
        if consulted is not None and self._end is None:
            self._handle(consulted)

    def _read_requests(self) -> None:
        if self._end is not None:
            return
        try:
            requests = self._requests.read()
        # The requests are unreadable, so nothing may start. Running commands continue.
        except StoreCorrupt as error:
            self._give_up(error)
            return
        while self._end is None and self._requests_handed < len(requests):  # The next coordinator handles the rest.
            self._requests_handed += 1
            self._handle(Requested(requests[self._requests_handed - 1]))

    def _handle(self, event: CommandEvent) -> None:
        """Pass an event to the conductor and execute its actions. Then handle the events that the actions cause."""
        self._events.append(event)
        if len(self._events) > 1:
            return
        while self._events:
            event = self._events[0]
            for action in self.conductor.handle(event):
                self._execute(action)
            self._publisher.on_event_handled(event)
            if self._watcher is not None:
                self._watcher.on_event_handled(event)
            self._events.popleft()

    def _execute(self, action: CommandAction) -> None:
        match action:
            case Spawn():
                self._spawned += 1
                worker = WorkerId(self._spawned)
                member = self._workers[worker] = self._backend.start(worker)
                self._journal.write(journal.Spawned(worker=member.holder, pid=member.pid))
            case StartCommand():
                self._backend.send(action.worker, make_assign(self.conductor, action, self.attempts.places))
                self._publisher.record_assignment(action, self._workers[action.worker])
            case CommandAdvanced(start):
                self._publisher.record_assignment(start, self._workers[start.worker])
            case RecallQueued() | TerminateCommand() | DeliverAnswer() | Retire():
                self._backend.send(action.worker, _action_message(action))
            case Settle():
                self._settle(action)
            case MakeRequest(body):
                self._request(lambda given: self._stops.append(body, given), ends=body.terminates)
            case Wake(item, round_, seconds, until_ns):
                self._backend.wake(item, round_, seconds, until_ns)
            case Consult():
                self._consult_rules(lambda: self._inbox.consult(action))
            case Complete() | Drained() | Break():
                self._end = action

    def _request(self, append: Callable[[Mapping[CommandId, int]], None], *, ends: bool) -> None:
        """Append requests. If `ends` is set and the disk fails, attempts end anyway and count as interrupted."""
        ids = self.conductor.agenda.ids
        try:
            append({ids[item]: epoch for item, (epoch, _) in self.conductor.leased_items.items()})
        except StoreError as error:
            self._give_up(error)
            for worker in self._workers if ends else ():
                self._backend.send(worker, messages.Terminate(why="stopped"))
        self._read_requests()

    def _append_waiting_stops(self) -> None:
        if self._stops.is_waiting and self._end is None:
            self._request(self._stops.append_waiting, ends=True)

    def _receive(self, worker: WorkerId, message: messages.FromWorker) -> None:
        match message:
            case messages.Hello():
                self._idle(worker, Ready(worker))
            case messages.Refused(epoch=epoch):
                self._journal.write(journal.Refused(worker=self._workers[worker].holder, epoch=epoch))
                self._advance_all(worker)
                self._idle(worker, LeaseRefused(worker, epoch))
            case messages.Committed(commit=commit, lost=lost, used=used):
                ended = self.attempts.record_reported(commit)
                self._publisher.record_use(ended, used)
                for one in ended:
                    while one.item != self.conductor.running_item(worker) and self._advance(worker):
                        pass
                    self._handle(Concluded([one]))
                if lost:
                    self._read_commits()
            case messages.Returned(count=count):
                self._handle(QueuedReturned(worker, count))
                self._advance_all(worker)
            case messages.Finished():
                self._advance_all(worker)
                self._idle(worker, UnitDone(worker))
            case messages.Delayed(message=text, seconds=seconds):
                if self._watcher is not None:
                    self._watcher.on_note(
                        f"{text}: the outcome of a task cannot be written; "
                        f"free some space within {seconds:.0f} s, or the run stops"
                    )
            case messages.GaveUp(code=code, message=text, hint=hint):
                self._give_up(make_error(code, text, hint))

    def _advance_all(self, worker: WorkerId) -> None:
        """Record that a worker has begun all its queued commands, one after another."""
        while self._advance(worker):
            pass

    def _advance(self, worker: WorkerId) -> bool:
        """Record that a worker has begun its next queued command. Return False if it has none."""
        if self.conductor.next_item(worker) is None:
            return False
        self._handle(NextStarted(worker))
        return True

    def _give_up(self, error: CodebatchError) -> None:
        if self._watcher is not None and self._error is None:
            self._watcher.on_note(error.message)
        self._error = self._error or error
        self._handle(DrainRequested())

    def _idle(self, worker: WorkerId, event: Ready | LeaseRefused | UnitDone) -> None:
        """Pass an event of a worker without work to the conductor. If the batch has ended, stop the worker."""
        self._handle(event)
        if self._end is not None:
            self._backend.send(worker, messages.Stop())

    def _handle_exit(self, died: WorkerExited) -> None:
        self._append_waiting_stops()
        self._read_requests()  # A request to stop may be the reason why the worker died.
        concluded = self.attempts.read()  # The worker may have died between link(2) and its report.
        leases = {} if self._end is not None else read_leases(self._leases, self.attempts.places).leases
        ended = self._advance_dead(died.worker, leases, concluded)
        if ended or concluded.unreadable:
            self._handle(Concluded(ended, concluded.unreadable))
        member = self._workers.pop(died.worker)
        item = self.conductor.running_item(died.worker)
        if died.returncode != 0 or item is not None:
            self._journal.write(
                journal.Lost(
                    worker=member.holder,
                    pid=member.pid,
                    reason=f"{died.killed_for}: {died.how}" if died.killed_for else died.how,
                    memory_peak_bytes=died.memory_peak_bytes,
                    evidence=died.stderr,
                )
            )
        if self._end is None:
            lease = None if item is None else leases.get(item)
            if item is None or lease is None or lease.epoch < self.conductor.epoch(item):
                self._handle(WorkerDied(died.worker, "nobody"))
            else:
                self._handle(WorkerDied(died.worker, "it" if lease.holder.holder == member.holder else "another"))

    def _advance_dead(self, worker: WorkerId, leases: Mapping[int, Lease], concluded: Concluded) -> list[Conclusion]:
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
                self._handle(Concluded(current))
            self._handle(NextStarted(worker))
        return ended

    def _settle(self, action: Settle) -> None:
        shard, item = self.attempts.places.place(action.item)
        unit = Unit(shard=shard, start=item, end=item + 1, tasks=(WORK_TASK,), round=action.round)
        encoded = attempt_outcome(unit, action.type, "interrupted")
        commit = self._committer.commit([encoded], epoch=action.epoch, round_=action.round)
        self._handle(Concluded(self.attempts.record_reported(commit)))
        if not commit.outcomes:
            self._read_commits()

    def _read_commits(self) -> None:
        """Process the commits on disk that no message reported: commits of adopted workers and of dead workers."""
        concluded = self.attempts.read()
        if concluded.conclusions or concluded.unreadable:
            self._handle(concluded)

    def _check_adopted_workers(self) -> None:
        """Process commits of adopted workers. If an adopted worker is dead, kill its command and release its item."""
        leases = read_leases(self._leases, self.attempts.places).leases
        dead = {item: leases[item] for item in self.conductor.adopted if item in leases and not leases[item].is_live}
        self._kill_orphans(dead)
        self._read_requests()
        self._read_commits()
        for item, lease in sorted(dead.items()):
            self._handle(CommandReleased(item, lease.epoch))

    def _kill_orphans(self, leases: dict[int, Lease]) -> None:
        """Kill all orphaned processes of the attempts that dead workers leased."""
        place = self.attempts.places.place
        marks = {attempt_mark(lease.holder.holder, *place(item), lease.epoch) for item, lease in leases.items()}
        self._backend.kill_orphans(marks, {lease.holder.holder for lease in leases.values()})
