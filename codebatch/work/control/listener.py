"""Progress of a batch of commands: WorkListener, and the values that it receives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from codebatch.model.digest import Digest
from codebatch.model.outcome import OutcomeType
from codebatch.model.record import CommandReason
from codebatch.model.work.command import CommandId
from codebatch.model.work.request import Request, Stop, StopCause
from codebatch.model.work.work_batch import RejectedEdge, Work
from codebatch.scheduling.events import DrainRequested
from codebatch.scheduling.lifecycle import CommandState
from codebatch.scheduling.work.caps import MetCap
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.estimate import Eta
from codebatch.scheduling.work.events import CommandEvent, OutcomesConcluded, RequestRead
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.work.attempts import CommandPlaces
from codebatch.store.work.work_batches import read_work
from codebatch.system.clock import running_ns

_UPDATE_INTERVAL_NS = 50_000_000
_STATE_BY_OUTCOME: dict[OutcomeType, CommandState] = {
    "result": CommandState.DONE,
    "failed": CommandState.FAILED,
    "blocked": CommandState.BLOCKED,
    "cancelled": CommandState.CANCELLED,
}


class CommandEnded(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that ended.

    - `seconds`: the duration, or None if this process did not see the attempt start.
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

    def waiting(self, running: tuple[CommandId, ...], process_text: str) -> None:
        """Receive the running tasks while `cancel` waits for them. `process_text` describes the batch's process."""


class ListenerAdapter:
    """An adapter that translates the coordinator's events into calls of a WorkListener."""

    def __init__(self, batch: BatchDir, listener: WorkListener, leads: Callable[[], None]) -> None:
        """Set up the adapter. It calls `leads` once, when this process has become the coordinator of the batch."""
        self._work = read_work(batch)
        self._ids: Sequence[CommandId] = ()
        self._places = CommandPlaces(batch.plan().shards)
        self._logs = batch.root / layout.LOGS
        self._batch = batch
        self._listener = listener
        self._is_leading = leads
        self._began: dict[int, int] = {}
        self._adopted: set[int] = set()
        self._ended: set[int] = set()
        self._failed: set[int] = set()
        self._blocked: set[int] = set()
        self._asking_items: dict[int, Digest] = {}
        self._reported_rounds: dict[int, int] = {}
        self._updated_ns = 0

    def on_start(self, conductor: Conductor) -> None:
        """Start to report the batch.

        Outcomes of earlier runs are recorded here, so that they are not reported as new.
        """
        self._conductor = conductor
        self._ids = conductor.agenda.ids
        self._is_leading()
        self._adopted = set(conductor.adopted_items)
        for item in range(len(self._ids)):
            state = conductor.state(item)
            if state in _STATE_BY_OUTCOME.values():
                self._note_end(item, state)
            if (conclusion := conductor.last_outcome(item)) is not None:
                self._reported_rounds[item] = conclusion.round
        self._listener.chosen(self._batch, self._work)

    def on_event_handled(self, event: CommandEvent) -> None:
        """Report the effects of an event after the scheduler has handled it."""
        match event:
            case OutcomesConcluded(conclusions):
                for item in {conclusion.item for conclusion in conclusions}:
                    self._report_end(item)
            case RequestRead(Request(body=Stop(cause=cause, detail=detail, attempts=attempts, terminates=True))):
                if cause != "signal" and attempts:
                    self._listener.stopping(cause, detail, len(attempts))
            case DrainRequested():
                self._listener.draining(len(self._conductor.running_items - self._conductor.adopted_items))
            case _:
                pass
        self._update_running()

    def on_turn_end(self, eta: Eta | None) -> None:
        """Report running tasks, open questions and progress. Called after each turn of the event loop."""
        self._update_running()
        self._report_questions()
        now = running_ns()
        if now - self._updated_ns < _UPDATE_INTERVAL_NS:
            return
        self._updated_ns = now
        self._listener.update(
            WorkProgress(
                ended=self._ended_count,
                planned=len(self._ids),
                failed=len(self._failed),
                blocked=len(self._blocked) + len(self._asking_items),
                running=tuple(
                    CommandRunning(id=self._ids[item], seconds=(now - began) / 1e9, log=self._log_path(item))
                    for item, began in self._began.items()
                    if item not in self._asking_items
                    and self._conductor.last_attempt(item)[0] > self._reported_rounds.get(item, 0)
                ),
                eta=eta,
                closed=self._conductor.closed_pools,
                by_hours=frozenset(self._conductor.closed_pools.keys() - self._conductor.rate_limited_pools),
                is_paused=self._conductor.is_paused,
                caps=tuple(self._conductor.met_caps()),
                cost_unit=self._conductor.agenda.limits.cost_unit,
            )
        )

    def on_forced_stop(self, is_killed: bool) -> None:
        """Report that a second or third signal ends the running tasks."""
        self._listener.ending(len(self._conductor.running_items - self._conductor.adopted_items), is_killed=is_killed)

    def on_note(self, text: str) -> None:
        """Pass a note to the listener."""
        self._listener.note(text)

    def on_warning(self, text: str) -> None:
        """Pass a warning to the listener."""
        self._listener.warn(text)

    @property
    def _ended_count(self) -> int:
        """The number of tasks that have ended. Those that wait for an answer have not."""
        return len(self._ended) - len(self._blocked)

    def _update_running(self) -> None:
        running = self._conductor.running_items
        for item in sorted(self._began.keys() - running):
            began = self._began.pop(item)
            if (stopped := self._conductor.find_stop(item)) is not None:
                self._listener.stopped(
                    CommandStopped(
                        id=self._ids[item],
                        cause=stopped.cause,
                        detail=stopped.detail,
                        seconds=(running_ns() - began) / 1e9,
                        ended=self._ended_count,
                        planned=len(self._ids),
                    )
                )
        for item in sorted(running - self._began.keys()):
            self._began[item] = running_ns()
            self._ended.discard(item)
            self._failed.discard(item)
            self._blocked.discard(item)

    def _report_questions(self) -> None:
        """Report new open questions. A question that a rule answers in the same turn is not reported."""
        asking = {item: self._conductor.question(item) for item in self._began}
        open_questions = {item: question for item, question in asking.items() if question is not None}
        for item in sorted(open_questions):
            if self._asking_items.get(item) != open_questions[item]:
                self._listener.asking(self._ids[item])
        self._asking_items = open_questions

    def _note_end(self, item: int, state: CommandState) -> None:
        self._ended.add(item)
        if state is CommandState.FAILED:
            self._failed.add(item)
        if state is CommandState.BLOCKED:
            self._blocked.add(item)

    def _report_end(self, item: int) -> None:
        """Report the end of an attempt.

        The same end can be received from a worker and read from disk. So for each round, only the first report counts.
        """
        conclusion = self._conductor.last_outcome(item)
        if conclusion is None or conclusion.round <= self._reported_rounds.get(item, 0):
            return
        self._reported_rounds[item] = conclusion.round
        if conclusion.reason == "unbegun":
            return
        retry_seconds: float | None = None
        state = self._conductor.state(item)
        if state in (CommandState.WAITING, CommandState.READY) and conclusion.type == "failed":
            retry_seconds = self._conductor.wait_seconds(item)
        state = _STATE_BY_OUTCOME[conclusion.type] if state is not CommandState.BLOCKED else state
        if retry_seconds is None:
            self._note_end(item, state)
        began = None if item in self._adopted else self._began.get(item)
        self._adopted.discard(item)
        self._listener.ended(
            CommandEnded(
                id=self._ids[item],
                state=state,
                reason=conclusion.reason,
                exit_status=conclusion.exit_status,
                seconds=None if began is None else (running_ns() - began) / 1e9,
                log=self._logs / layout.log_name(*self._places.place_of_item(item), conclusion.round, conclusion.epoch),
                ended=self._ended_count,
                planned=len(self._ids),
                again_seconds=retry_seconds,
                until_ns=self._conductor.until_ns(item),
                pools=tuple(self._conductor.agenda.policies[item].pools),
                unrecorded=conclusion.unrecorded,
                notes=conclusion.notes,
            )
        )

    def _log_path(self, item: int) -> Path:
        return self._logs / layout.log_name(*self._places.place_of_item(item), *self._conductor.last_attempt(item))
