"""The conductor: the scheduler of one work batch. Events in, actions out, without clock, files or processes.

Rules (SPEC.md "Commands"):

1. The state of a command follows only from the outcomes of its attempts and from requests (open_rule.py). Whether the
   commands that need it may start follows from its state (command_graph.py). So every process that reads the same files
   derives the same states, whether it runs the batch or displays it.
2. A command that may start waits in a queue (command_queue.py). A retry first waits for the event WaitEnded. With a
   minimum time between starts, every start does. Running commands of an earlier coordinator are `foreign`: they take
   tokens, even beyond the limit. Further commands may be queued at the worker of a started command (prefetch.py).
3. A lease without outcome is an attempt. If its worker and its processes are dead, it was stopped or interrupted. Then
   the policy of its command decides: it is started again in the next epoch, or gets an outcome (interruptions.py).
4. A running command that asks a question frees its slots. Once answered, the command gets slots before new starts.
5. Attempts are stopped by a request that names them: because of a signal, the time limit of the batch, or a failure
   that halts the batch. Every worker obeys the request, whichever coordinator started the worker.
6. If workers die in a row without an outcome, the machine is the cause: nothing new starts, and the session breaks once
   running commands have ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from codebatch.model.digest import Digest
from codebatch.model.work.request import Cancel, Pause, Request, Set, Skip, Stop, StopCause
from codebatch.scheduling.actions import CompleteSession, EndBroken, EndDrained, RetireWorker, SpawnWorker
from codebatch.scheduling.events import DrainRequested, LeaseRefused, SessionStarted, UnitDone, WorkerId, WorkerIdle
from codebatch.scheduling.work.command_batch import CommandBatch
from codebatch.scheduling.work.command_plan import SLOTS_POOL, CommandPlan
from codebatch.scheduling.work.events import (
    BATCH_TIME_LIMIT_ITEM,
    ClockRead,
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
    QuestionAsked,
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

DEATHS_IN_A_ROW_MAX = 6


class Conductor(CommandBatch):
    """The scheduling of one work batch, until `handle` returns Complete, Drained or Break. It has many methods."""

    def __init__(
        self,
        agenda: CommandPlan,
        *,
        concluded: OutcomesConcluded,
        epochs: Mapping[int, int],
        foreign: Collection[int] = (),
        requests: Iterable[Request] = (),
        live_questions: Iterable[QuestionAsked] = (),
    ) -> None:
        """Start from the state on disk.

        `concluded` are all outcomes, `epochs` the highest lease epoch of each item, and `foreign` the items whose
        worker is alive. `requests` are all requests in order. `live_questions` are the questions of running commands.
        """
        super().__init__(agenda, epochs)
        self._idle: set[WorkerId] = set()
        self._spawning = 0
        self._stopping: set[tuple[int, int]] = set()
        self._pending_waits: dict[int, int] = {}
        self._consulted_questions: dict[Digest, bool] = {}
        self._deferred_actions: list[CommandAction] = []
        self._deaths = 0
        self._is_draining = self._has_ended = False
        self._histories.add(concluded)
        for request in requests:
            self._note_request(request)
        for one in live_questions:
            self._live_questions.add(one)
        for item in foreign:  # A live worker also holds the leases of its finished attempts.
            if self._histories.unended_lease_count(item) > 0:
                self._hold_item(item)
        items = range(len(agenda.ids))
        for item in items:
            self._states.update_state(item, runs=self._is_running(item))
        for item in items:  # A second pass, because needs can be evaluated only when the states of all items are known.
            self._queue.add(item)
            self._schedule_follow_ups(item)

    def handle(self, event: CommandEvent) -> list[CommandAction]:
        """Update the state for an event. Return the actions to execute, in order."""
        actions: list[CommandAction] = []
        match event:
            case SessionStarted():
                actions += self._queue.record_start() if self._histories.leased_items else []
                actions += self._start_time_limit()
                for item in sorted(set(self._histories.leased_items) - self._adopted_items):
                    actions += self._commit_if_interrupted(item)
            case WorkerIdle() | LeaseRefused() | UnitDone() | NextStarted() | QueuedReturned() | WorkerDied():
                actions += self._handle_worker_event(event)
            case OutcomesConcluded():
                actions += self._handle_outcomes(event)
            case CommandReleased(item, epoch):
                if item in self._adopted_items:
                    self._histories.set_epoch(item, max(epoch, self.last_epoch(item)))
                    self._release_item(item)
                    actions += self._reopen_item(item)
            case RequestRead(request):
                actions += self._handle_request(request)
            case SignalReceived(name, ends):
                actions += self._make_stop_request("signal", name, ends=ends)
            case WaitEnded():
                actions += self._handle_timer(event)
            case QuestionAsked() | ConsultationEnded() | ClockRead():
                self._handle_question_or_clock(event)
            case DrainRequested():
                self._is_draining = True
                actions += [RecallQueued(worker) for worker in self._prefetched.busy_workers]
        return actions + self._next_actions()

    def _handle_timer(self, due: WaitEnded) -> list[CommandAction]:
        if due.item == BATCH_TIME_LIMIT_ITEM:
            return [] if self._has_ended else self._make_stop_request("timeout")
        self._states.record_wait_end(due.item, due.round)
        self._pending_waits.pop(due.item, None)
        self._queue.add(due.item)
        return []

    @property
    def has_timers(self) -> bool:
        """Whether an item waits for a time: its next try, or the opening of a pool."""
        return bool(self._pending_waits or self.closed_pools)

    def _queue_all(self) -> None:
        """Queue all items that may start, after a limit that kept them from starting has changed."""
        for item in range(len(self.agenda.ids)):
            self._queue.add(item)

    def _handle_question_or_clock(self, event: QuestionAsked | ConsultationEnded | ClockRead) -> None:
        if isinstance(event, ClockRead):
            self._states.clock = event
            self._queue_all()
        elif isinstance(event, ConsultationEnded):
            self._consulted_questions[event.question] = False
        else:
            self._live_questions.add(event)
            self._update_question(event.item)

    def _handle_worker_event(
        self, event: WorkerIdle | LeaseRefused | UnitDone | NextStarted | QueuedReturned | WorkerDied
    ) -> list[CommandAction]:
        match event:
            case WorkerIdle(worker):
                self._spawning -= 1
                self._idle.add(worker)
            case LeaseRefused(worker, epoch):
                refused = self._end_worker_run(worker, is_well=False)
                self._idle.add(worker)
                self._histories.set_epoch(refused, max(epoch, self.last_epoch(refused)))
                self._hold_item(refused)
            case UnitDone(worker):
                finished = self._end_worker_run(worker, is_well=True)
                self._idle.add(worker)
                return self._reopen_item(finished)
            case NextStarted(worker):
                return self._advance_worker(worker)
            case QueuedReturned(worker, count):
                for item in self._prefetched.take_back(worker, count):
                    self._queue.add(item)
            case WorkerDied():
                return self._handle_death(event)
        return []

    def _handle_outcomes(self, concluded: OutcomesConcluded) -> list[CommandAction]:
        for item in self._histories.add(concluded):
            self._deaths = 0
            self._settling_items.discard(item)
            if item in self._adopted_items:
                self._release_item(item)
            self._update_item(item)
        actions: list[CommandAction] = []
        if any(one.reason == "limited" for one in concluded.conclusions) and self.closed_pools:
            actions += [RecallQueued(worker) for worker in self._prefetched.busy_workers]
        for item, _ in concluded.unreadable:
            if item in self._settling_items:  # The register of this outcome exists, but is unreadable.
                self._settling_items.discard(item)
                actions += self._commit_if_interrupted(item)
        return actions

    def _handle_death(self, lost: WorkerDied) -> list[CommandAction]:
        if lost.worker not in self._running:
            if lost.worker in self._idle:
                self._idle.discard(lost.worker)
            else:
                self._spawning -= 1
                self._deaths += 1
            return []
        item = self._end_worker_run(lost.worker, is_well=False)
        self._deaths += self.find_stop(item) is None
        if lost.leased_by == "another":
            self._hold_item(item)
            return []
        if lost.leased_by == "nobody" and self._histories.unended_lease_count(item) > 0:
            self._histories.set_epoch(item, self.last_epoch(item) - 1)
        return self._reopen_item(item)

    def _handle_request(self, request: Request) -> list[CommandAction]:
        was_expired = self.is_expired
        for item in self._note_request(request):
            self._update_item(item)
        match request.body:
            case Cancel(grace_seconds=grace):
                return [TerminateCommand(worker, grace) for worker in sorted(self._running)]
            case Skip(task=task, round=over):
                at = [(item, worker) for item, worker in self._worker_by_item.items() if self.agenda.ids[item] == task]
                return [
                    TerminateCommand(worker, None, task) for item, worker in at if self.last_attempt(item)[0] <= over
                ]
            case Stop(attempts=attempts, terminates=True):
                ids = self.agenda.ids
                leased_attempts = [(ids[item], epoch, worker) for item, (epoch, worker) in self.leased_items.items()]
                return [
                    TerminateCommand(worker, None, id_, "stopped")
                    for id_, epoch, worker in leased_attempts
                    if attempts.get(id_) == epoch
                ]
            case Pause() | Set():
                self._queue_all()
                return [RecallQueued(worker) for worker in self._prefetched.busy_workers]
            case _:
                return self._start_time_limit() if was_expired and not self.is_expired else []

    def _start_time_limit(self) -> list[CommandAction]:
        seconds = self.agenda.timeout_seconds
        return [] if seconds is None else [SetTimer(BATCH_TIME_LIMIT_ITEM, 0, seconds)]

    def _make_stop_request(self, cause: StopCause, detail: str = "", *, ends: bool = True) -> list[CommandAction]:
        """Return a request that stops running attempts and attempts queued at workers.

        Attempts that an earlier request terminates are omitted. A signal does not terminate adopted workers.
        """
        chosen = {item: epoch for item, (epoch, _) in self.leased_items.items()}
        if cause != "signal" or not ends:
            chosen |= {item: self.last_epoch(item) for item in self._adopted_items}
        new = [attempt for attempt in sorted(chosen.items()) if attempt not in self._stopping]
        self._stopping.update(new if ends else ())
        if not new and cause != "timeout":
            return []
        attempts = {self.agenda.ids[item]: epoch for item, epoch in new}
        return [MakeRequest(Stop(cause=cause, detail=detail, attempts=attempts, terminates=ends))]

    def _update_item(self, item: int) -> None:
        for touched in self._states.update_state(item, runs=self._is_running(item)):
            self._queue.add(touched)
        self._schedule_follow_ups(item)

    def _schedule_follow_ups(self, item: int) -> None:
        """Set the timer for an item's next try, or request the consultation about its question."""
        if self._states.is_waiting(item):
            wake = self._states.wait_timer(item)
            if self._pending_waits.get(item) != wake.round:
                self._pending_waits[item] = wake.round
                self._deferred_actions.append(wake)
        self._update_question(item)

    def _update_question(self, item: int) -> None:
        if self._is_running(item):
            self._live_questions.update(item, is_foreign=item in self._adopted_items)
            question = self._live_questions.open_question(item)
        else:
            waiting = self._states.question(item)
            question = waiting.digest if waiting is not None and waiting.coordinator_question is None else None
        if self.agenda.has_answering_policy and question is not None and question not in self._consulted_questions:
            self._consulted_questions[question] = True
            self._deferred_actions.append(ConsultRules(item, question))

    def _commit_if_interrupted(self, item: int) -> list[CommandAction]:
        """Return the action that commits an outcome of an interrupted item if its policy requires one."""
        then = self._interruptions.next_action(item)
        if then == "restart" or not self._states.is_open(item) or item in self._settling_items:
            return []
        self._settling_items.add(item)
        round_ = self._histories.next_round(item)
        return [CommitInterrupted(item, round_, "blocked" if then == "ask" else "failed", self.last_epoch(item))]

    def _reopen_item(self, item: int) -> list[CommandAction]:
        """Update the state of an item whose attempt has ended. Queue the item again if it may start."""
        self._update_item(item)
        actions = self._commit_if_interrupted(item)
        self._queue.add(item)
        return actions

    def _hold_item(self, item: int) -> None:
        self._adopted_items.add(item)
        self._queue.acquire(item)
        self._update_item(item)

    def _release_item(self, item: int) -> None:
        self._adopted_items.discard(item)
        self._release_slots(item)

    def _end_worker_run(self, worker: WorkerId, *, is_well: bool) -> int:
        """Record that a worker is idle (`is_well`) or dead. Return the item that the worker was running."""
        for behind in self._prefetched.end_assignment(worker, is_well=is_well):
            self._queue.add(behind)
        return self._remove_running(worker)

    def _remove_running(self, worker: WorkerId) -> int:
        item = self._running.pop(worker)
        del self._worker_by_item[item]
        self._release_slots(item)
        return item

    def _advance_worker(self, worker: WorkerId) -> list[CommandAction]:
        ended_item = self._remove_running(worker)
        start = self._prefetched.advance_worker(worker)
        self._record_start(start)
        return [CommandAdvanced(start), *self._reopen_item(ended_item)]

    def _release_slots(self, item: int) -> None:
        self._live_questions.forget_item(item)
        self._queue.release(item)

    def _next_actions(self) -> list[CommandAction]:
        if self._has_ended:
            return []
        if self._states.caps.has_opened:
            self._states.caps.has_opened = False
            self._queue_all()
        actions, self._deferred_actions = self._deferred_actions, []
        if self.agenda.halts_on_failure and (failed := self._states.stopping_failure) is not None:
            actions += self._make_stop_request("failure", self.agenda.ids[failed])
        actions += [DeliverAnswer(self._worker_by_item[item]) for item in self._live_questions.iter_proceeding()]
        is_broken = self._deaths >= DEATHS_IN_A_ROW_MAX
        may_begin = not (self._is_draining or is_broken or self._states.is_stopped)
        if may_begin and not self._live_questions.is_waited_for:
            actions += self._start_waiting_items()
        # Foreign commands continue without this coordinator. The next coordinator adopts them.
        waits_for_others = bool(self._adopted_items) and not self._is_draining
        if self._running or waits_for_others or self._settling_items or (may_begin and self._has_more_to_do()):
            return actions
        self._has_ended = True
        actions += [RetireWorker(worker) for worker in sorted(self._idle)]
        self._idle.clear()
        if is_broken and not self._is_draining:
            return [*actions, EndBroken(self._deaths)]
        return [*actions, EndDrained() if self._is_draining else CompleteSession()]

    def _has_more_to_do(self) -> bool:
        """Return whether a command may start now, after a waiting time, after an answer, or after a Pause."""
        if self._queue.has_any() or any(self._could_start(item) for item in self._pending_waits):
            return True
        if any(self._consulted_questions.values()) or (
            self.agenda.waits_for_answers and self._states.is_answer_awaited
        ):
            return True
        return self._requests.is_paused and any(self._could_start(item) for item in range(len(self.agenda.ids)))

    def _start_waiting_items(self) -> list[CommandAction]:
        actions: list[CommandAction] = []
        while (self._idle or self._queue.free_slots > self._spawning) and (item := self._queue.best_item()) is not None:
            if not self._idle:
                missing = max(0, min(len(self._queue), self._queue.free_slots) - self._spawning)
                self._spawning += missing
                return actions + [SpawnWorker()] * missing
            actions += [self._start_item(item), *self._queue.record_start()]
        return actions

    def _start_item(self, item: int) -> StartCommand:
        worker = min(self._idle)
        self._idle.discard(worker)
        start = self._make_start(worker, item)
        may_follow = self._may_follow(item)
        self._record_start(start)
        then = tuple(self._make_start(worker, follower) for follower in self._pop_followers(item)) if may_follow else ()
        self._prefetched.begin_assignment(worker, then)
        return replace(start, then=then) if then else start

    def _make_start(self, worker: WorkerId, item: int) -> StartCommand:
        round_, failed_tries = self._histories.next_round(item), self.state_rule.failed_try_count(item)
        return StartCommand(worker, item, round_, self.last_epoch(item) + 1, self._requests.count, failed_tries)

    def _record_start(self, start: StartCommand) -> None:
        self._queue.acquire(start.item)
        self._running[start.worker], self._worker_by_item[start.item] = start.item, start.worker
        self._histories.set_epoch(start.item, max(start.epoch, self.last_epoch(start.item)))
        self._update_item(start.item)

    def _pop_followers(self, item: int) -> list[int]:
        """Remove items from the queue that are to be queued at the worker of `item`, and return these items."""
        followers: list[int] = []
        most = self._prefetched.assignment_length(len(self._queue), self._queue.capacity[SLOTS_POOL])
        while len(followers) < most - 1 and (follower := self._queue.pop_follower(item, self._may_follow)) is not None:
            followers.append(follower)
        return followers

    def _may_follow(self, item: int) -> bool:
        """Return whether an item may be queued at a worker: it never began and may be executed twice.

        A queued item starts at once after the previous item, whatever the outcome of the previous item.
        """
        agenda, limits = self.agenda, self.agenda.limits
        if limits.has_clock or self.deadline_ns or self._states.caps.is_active:
            return False
        if agenda.on_failure == "stop" or agenda.start_every_seconds or not agenda.policies[item].is_repeatable:
            return False
        return self.last_epoch(item) == 0 and self._histories.next_round(item) == 1
