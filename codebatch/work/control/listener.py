"""Progress of a batch of commands: WorkListener, and the values that it receives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from codebatch.model.record import CommandReason
from codebatch.model.work.command import CommandId
from codebatch.model.work.event import (
    BatchEvent,
    BatchStopped,
    TaskAdopted,
    TaskBlocked,
    TaskCancelled,
    TaskCompleted,
    TaskEvent,
    TaskFailed,
    TaskInterrupted,
    TaskRetrying,
    TaskStarted,
    TaskStopped,
    instant_ns,
)
from codebatch.model.work.request import StopCause
from codebatch.model.work.work_batch import RejectedEdge, Work
from codebatch.scheduling.lifecycle import CommandState
from codebatch.scheduling.work.caps import MetCap
from codebatch.scheduling.work.command_plan import SLOTS_POOL
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.estimate import Eta
from codebatch.scheduling.work.event_projection import ProjectedEvent
from codebatch.scheduling.work.events import AttemptOutcome
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.work.attempts import CommandPlaces
from codebatch.store.work.work_batches import read_work
from codebatch.system.clock import running_ns

_UPDATE_INTERVAL_NS = 50_000_000
_STATE_BY_END: dict[type[TaskEvent], CommandState] = {
    TaskCompleted: CommandState.DONE,
    TaskRetrying: CommandState.FAILED,
    TaskFailed: CommandState.FAILED,
    TaskBlocked: CommandState.BLOCKED,
    TaskCancelled: CommandState.CANCELLED,
}
_COUNTED_AS_ENDED = (CommandState.DONE, CommandState.FAILED, CommandState.CANCELLED)


class CommandEnded(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that ended.

    - `seconds`: the duration, or None if unknown.
    - `ended`: the number of tasks that have ended.
    - `planned`: the number of all tasks.
    - `again_seconds`: the delay until the task is retried, or None if it is not retried.
    - `until_ns`: after a rate limit, the time when the limit ends, in nanoseconds since 1970. Until then, no task that
      uses one of `pools` starts.
    - `unrecorded`: the number of paths with work of an isolated task that its changes do not record.
    - `notes`: the limit that ended the attempt, and what was ignored, cut or replaced by a default.
    """

    id: CommandId
    state: CommandState
    reason: CommandReason | None
    exit_status: int | None
    seconds: float | None
    log: Path
    ended: int
    planned: int
    again_seconds: float | None = None
    until_ns: int = 0
    pools: tuple[str, ...] = ()
    unrecorded: int = 0
    notes: tuple[str, ...] = ()


class CommandStopped(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that was ended early. `seconds` is the duration since this process first saw the attempt.

    - `cause`: `signal`, `timeout`, `failure` or `cancel`.
    - `detail`: the signal, or the task that failed.
    - `ended`: the number of tasks that have ended. The task of this attempt is not included.
    - `planned`: the number of all tasks.
    """

    id: CommandId
    cause: str
    detail: str
    seconds: float
    ended: int
    planned: int


class CommandRunning(msgspec.Struct, frozen=True, kw_only=True):
    """A running attempt. `seconds` is the duration since this process first saw the attempt."""

    id: CommandId
    seconds: float
    log: Path


class WorkProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a batch.

    - `planned`: the number of all tasks.
    - `ended`: the number of tasks that have ended.
    - `failed`: the number of tasks that failed.
    - `blocked`: the number of tasks that wait for an answer. These tasks have not ended, and are not in `running`.
    - `running`: the running tasks, the longest-running first.
    - `eta`: the estimated remaining time, or None if unknown.
    - `is_paused`: no more tasks are started. `caps`: the caps that are met.
    - `by_hours`: the closed pools that no rate limit closes.
    - `closed`: maps closed pools to the time when they open, in nanoseconds since
      1970.
    """

    ended: int
    planned: int
    failed: int
    blocked: int
    running: tuple[CommandRunning, ...]
    eta: Eta | None = None
    closed: Mapping[str, int] = msgspec.field(default_factory=dict)
    by_hours: frozenset[str] = frozenset()
    is_paused: bool = False
    caps: tuple[MetCap, ...] = ()
    cost_unit: str = ""


class WorkListener:
    """A receiver of the progress of a batch. Its methods are called in the caller's thread. Override the methods that
    you need.

    If `wants_colors` is set, tasks run with environment variables that make programs print colours.
    """

    wants_colors = False

    def note(self, text: str) -> None:
        """Receive a note."""

    def warn(self, text: str) -> None:
        """Receive a warning. By default, a warning is passed to `note`."""
        self.note(text)

    def agrees(self, work: Work, rejected: Sequence[RejectedEdge]) -> bool:
        """Return True to run a task list with its inferred dependencies. This method is called before anything is
        written.
        """
        return True

    def chosen(self, batch: BatchDir, work: Work) -> None:
        """Receive the batch when its run begins."""

    def update(self, progress: WorkProgress) -> None:
        """Receive the progress, at most 20 times a second."""

    def ended(self, ended: CommandEnded) -> None:
        """Receive an attempt that ended."""

    def asking(self, id: CommandId) -> None:
        """Receive a task that asks a question and waits for the answer while its command runs."""

    def draining(self, running: int) -> None:
        """Receive the number of running tasks when a signal or damage stops the run.

        No more tasks start, and the run ends when the running tasks have ended.
        """

    def ending(self, running: int, *, is_killed: bool) -> None:
        """Receive the number of running tasks when another signal ends these tasks.

        The tasks are terminated, each with its grace period. If `is_killed` is set, they are killed at once.
        """

    def stopping(self, cause: StopCause, detail: str, running: int) -> None:
        """Receive the number of running tasks when the batch terminates them, each with its grace period.

        This happens if the batch reaches its time limit, or if it halts because the task `detail` failed.
        """

    def stopped(self, stopped: CommandStopped) -> None:
        """Receive an attempt that was ended early."""

    def notifying(self) -> None:
        """Receive the end of the run. Its last notifications are delivered now."""

    def waiting(self, running: tuple[CommandId, ...], process_text: str) -> None:
        """Receive the running tasks while `cancel` waits for them. `process_text` describes the batch's process."""


class ListenerAdapter:
    """An adapter that translates the events of a run into calls of a WorkListener."""

    def __init__(self, batch: BatchDir, listener: WorkListener, leads: Callable[[], None]) -> None:
        """Set up the adapter. It calls `leads` once, when this process has become the coordinator of the batch."""
        self._batch = batch
        self._listener = listener
        self._is_leading = leads
        self._work = read_work(batch)
        self._places = CommandPlaces(batch.plan().shards)
        self._logs = batch.root / layout.LOGS
        self._began: dict[int, int] = {}
        """When this process first saw each running command."""
        self._asking_items: list[int] = []
        self._noted_questions: set[str] = set()
        self._updated_ns = 0

    def on_start(self, conductor: Conductor) -> None:
        """Start to report the batch. Questions that were asked before and are still open are reported too."""
        self._conductor = conductor
        self._is_leading()
        self._began = dict.fromkeys(sorted(conductor.running_items), running_ns())
        for item in range(len(conductor.agenda.ids)):
            if item in self._began or conductor.asked_cap(item) is not None:
                self._note_question(conductor.question(item), item)
        self._listener.chosen(
            self._batch, msgspec.structs.replace(self._work, max_parallel=conductor.capacity[SLOTS_POOL])
        )

    def on_event(self, event: BatchEvent, projected: ProjectedEvent) -> None:
        """Report an event of a task or of a request."""
        item = projected.item
        if isinstance(event, BatchStopped) and event.cause != "signal" and event.tasks:
            self._listener.stopping(event.cause, event.detail, len(event.tasks))
        if item is None:
            return
        match event:
            case TaskStarted() | TaskAdopted():
                self._began[item] = running_ns()
            case TaskBlocked(is_live=True):
                self._note_question(projected.question, item)
            case TaskInterrupted():
                self._began.pop(item, None)
            case TaskStopped():
                self._listener.stopped(
                    CommandStopped(
                        id=CommandId(event.task),
                        cause=event.cause,
                        detail=event.detail,
                        seconds=(running_ns() - self._began.pop(item, running_ns())) / 1e9,
                        ended=_ended_count(event.counts),
                        planned=len(self._conductor.agenda.ids),
                    )
                )
            case TaskCompleted() | TaskRetrying() | TaskFailed() | TaskBlocked() | TaskCancelled() if (
                projected.outcome is not None
            ):
                self._began.pop(item, None)
                self._report_end(event, projected.outcome)

    def _note_question(self, question: str | None, item: int) -> None:
        """Report a question in this turn. All tasks that a cap holds back have the same question."""
        if question is not None and question not in self._noted_questions:
            self._noted_questions.add(question)
            self._asking_items.append(item)

    def _report_end(
        self, event: TaskCompleted | TaskRetrying | TaskFailed | TaskBlocked | TaskCancelled, outcome: AttemptOutcome
    ) -> None:
        delay = until = None
        if isinstance(event, TaskRetrying):
            delay, until = event.wait_seconds or 0.0, event.until
        self._listener.ended(
            CommandEnded(
                id=CommandId(event.task),
                state=_STATE_BY_END[type(event)],
                reason=outcome.reason,
                exit_status=outcome.exit_status,
                seconds=event.seconds,
                log=self._log_path(outcome.item, outcome.round, outcome.epoch),
                ended=_ended_count(event.counts),
                planned=len(self._conductor.agenda.ids),
                again_seconds=delay,
                until_ns=0 if until is None else instant_ns(until),
                pools=tuple(self._conductor.agenda.policies[outcome.item].pools),
                unrecorded=outcome.unrecorded,
                notes=self._conductor.state_rule.notes(outcome),
            )
        )

    def on_drain(self) -> None:
        """Report that no more tasks start."""
        self._listener.draining(len(self._conductor.running_items - self._conductor.adopted_items))

    def on_turn_end(self, eta: Eta | None, counts: Mapping[str, int]) -> None:
        """Report open questions and, at intervals, the progress. Called after each turn of the event loop."""
        asking, self._asking_items = self._asking_items, []
        for item in asking:  # A question that a rule answered in the same turn is not reported.
            if self._conductor.state(item) is CommandState.BLOCKED:
                self._listener.asking(self._conductor.agenda.ids[item])
        now = running_ns()
        if now - self._updated_ns < _UPDATE_INTERVAL_NS:
            return
        self._updated_ns = now
        self._listener.update(
            WorkProgress(
                ended=_ended_count(counts),
                planned=len(self._conductor.agenda.ids),
                failed=counts.get(CommandState.FAILED.value, 0),
                blocked=counts.get(CommandState.BLOCKED.value, 0),
                running=tuple(
                    CommandRunning(
                        id=self._conductor.agenda.ids[item],
                        seconds=(now - began) / 1e9,
                        log=self._log_path(item, *self._conductor.last_attempt(item)),
                    )
                    for item, began in self._began.items()
                    if self._conductor.state(item) is CommandState.RUNNING
                ),
                eta=eta,
                closed=self._conductor.closed_pools,
                by_hours=frozenset(self._conductor.closed_pools.keys() - self._conductor.rate_limited_pools),
                is_paused=self._conductor.is_paused,
                caps=tuple(self._conductor.met_caps()),
                cost_unit=self._conductor.agenda.limits.cost_unit,
            )
        )

    def on_end(self) -> None:
        """Report that the last notifications are delivered."""
        self._listener.notifying()

    def on_forced_stop(self, is_killed: bool) -> None:
        """Report that a second or third signal ends the running tasks."""
        self._listener.ending(len(self._conductor.running_items - self._conductor.adopted_items), is_killed=is_killed)

    def on_note(self, text: str) -> None:
        """Pass a note to the listener."""
        self._listener.note(text)

    def on_warning(self, text: str) -> None:
        """Pass a warning to the listener."""
        self._listener.warn(text)

    def _log_path(self, item: int, round_: int, epoch: int) -> Path:
        return self._logs / layout.log_name(*self._places.place_of_item(item), round_, epoch)


def _ended_count(counts: Mapping[str, int]) -> int:
    return sum(counts.get(state.value, 0) for state in _COUNTED_AS_ENDED)
