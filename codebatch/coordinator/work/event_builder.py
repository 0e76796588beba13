"""Construction of the events of a work batch from scheduler events, with all their fields."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Mapping, Sequence

import msgspec

from codebatch.coordinator.work.duration_estimates import Estimator
from codebatch.coordinator.work.notifications import Notifier
from codebatch.errors import StoreError
from codebatch.model.digest import Digest
from codebatch.model.outcome import HolderId, Used
from codebatch.model.work import event as events
from codebatch.model.work.event import TaskEvent
from codebatch.model.work.question import OUR_CHOICES, OUR_TEXTS, OurQuestion, Question, our_question
from codebatch.model.work.request import Answer, Pause, Request, Set, Stop, Unpause
from codebatch.model.work.work_batch import Work
from codebatch.scheduling.lifecycle import CommandState
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.estimate import Eta
from codebatch.scheduling.work.event_projection import (
    Adopted,
    AskedLive,
    AttemptEnded,
    AttemptInterrupted,
    AttemptStopped,
    CommandBegan,
    CommandSkipped,
    Counted,
    EventProjector,
    Happening,
    Queued,
    RequestMade,
)
from codebatch.scheduling.work.events import Conclusion, StartCommand
from codebatch.store import layout
from codebatch.store.batches.batches import BatchDir
from codebatch.store.batches.holders import Lease
from codebatch.store.work.attempts import CommandPlaces
from codebatch.store.work.child_processes import child_of
from codebatch.store.work.events import EventWriter
from codebatch.store.work.logs import last_lines

_LINES_OF_FAILED = 20


class EventBuilder:
    """Builder and writer of the events of one coordinator.

    Callers set the public attributes. `seconds_before` is the running time of earlier coordinators. `used` has the
    resource use of attempts by (item, round). `members` has the holder and process ID of the worker that runs an item.
    """

    def __init__(
        self,
        batch: BatchDir,
        work: Work,
        places: CommandPlaces,
        epoch: int,
        conductor: Conductor,
        projector: EventProjector,
        *,
        question_of: Callable[[Digest], Question | None],
        leases: Mapping[int, Lease],
        started: Mapping[tuple[int, int], str],
        wall_ns: Callable[[], int],
        running_ns: Callable[[], int],
        estimator: Estimator | None = None,
        notifier: Notifier | None = None,
    ) -> None:
        """Open the event file.

        `leases` are the leases found at the start, by item. `started` has the start times from earlier events by (item,
        round).
        """
        self._batch = batch
        self._work = work
        self._places = places
        self._epoch = epoch
        self._conductor = conductor
        self._ids = conductor.agenda.ids
        self._projector = projector
        self._question_of = question_of
        self._leases = leases
        self._start_times = started
        self._wall_ns = wall_ns
        self._running_ns = running_ns
        self._estimator = estimator
        self._notifier = notifier
        self._writer = EventWriter(batch.files, batch.root, epoch)
        self._seq = 0
        self._began_ns = running_ns()
        self._since: dict[int, int] = {}
        self._ended: dict[int, int] = {}
        self.seconds_before = 0.0
        self.used: dict[tuple[int, int], Used] = {}
        self.members: dict[int, tuple[HolderId, int]] = {}
        self.flush = self._writer.flush
        self.finish = self._writer.finish
        self.close = self._writer.close

    def emit(self, type_: Callable[..., events.BatchEvent], **fields: object) -> None:
        """Emit an event of the batch, with its sequence number and the current counts."""
        self._seq += 1
        event = type_(
            cursor=f"{self._epoch}.{self._seq}",
            seq=self._seq,
            at=events.instant_ms(self._wall_ns()),
            batch_id=self._batch.id,
            counts=dict(self._projector.counts),
            **fields,
        )
        self._writer.add(event)
        if self._notifier is not None:
            self._notifier.add(event)

    def _emit_task(self, type_: Callable[..., TaskEvent], item: int, round_: int, **fields: object) -> None:
        id_ = self._ids[item]
        self.emit(
            type_,
            task=id_,
            title=self._work.titles.get(id_, ""),
            round=round_,
            try_=self._try_of(item, round_),
            tries_max=1 + self._conductor.agenda.policies[item].retries,
            **fields,
        )

    def _try_of(self, item: int, round_: int) -> int:
        """Return the try number of a round: 1 plus the failed attempts since a request last reset the command."""
        last, tried = self._conductor.conclusion(item), self._conductor.rule.tried(item)
        if last is None or last.round < round_:
            return tried + 1
        counts = last.type == "failed" and not self._conductor.rule.is_limited(item)
        return max(1, (tried if counts else tried + 1) - (last.round - round_))

    def started(self, requests: int) -> None:
        """Emit the event for the start of the batch. `requests` is the number of requests so far."""
        self.emit(
            events.BatchStarted,
            source=self._work.source,
            strategy=self._work.strategy,
            max_parallel=self._work.max_parallel,
            on_failure=self._work.on_failure,
            task_count=len(self._work.order),
            task_ids=self._work.order,
            edges={"file": len(self._work.edges)},
            requests=requests,
        )

    def emit_all(self, happenings: Sequence[Happening]) -> None:
        """Emit the events for these happenings, in order."""
        for happening in happenings:
            match happening:
                case Queued(item, round_, position):
                    self._emit_task(events.TaskQueued, item, round_, position=position)
                case CommandBegan(start):
                    self._emit_start(start)
                case Adopted(item):
                    self._emit_adopted(item)
                case AttemptEnded(conclusion, goes_on, asks):
                    self._emit_end(conclusion, goes_on=goes_on, asks=asks)
                case AskedLive(item, round_, question):
                    question_field = self._question_field(Digest(question))
                    self._emit_task(events.TaskBlocked, item, round_, question=question_field, is_live=True)
                case Counted() | CommandSkipped():
                    self._emit_state(happening)
                case AttemptInterrupted(item, epoch, then):
                    round_ = self._conductor.attempt(item)[0]
                    self._emit_task(events.TaskInterrupted, item, round_, epoch=epoch, next_action=then)
                case AttemptStopped(item, epoch, (cause, detail, _)):
                    round_ = self._conductor.attempt(item)[0]
                    self._emit_task(events.TaskStopped, item, round_, epoch=epoch, cause=cause, detail=detail)
                case RequestMade(request):
                    self._emit_request(request)

    def _emit_state(self, happening: Counted | CommandSkipped) -> None:
        """Emit the event for a command whose state changed without the end of an attempt."""
        match happening:
            case Counted(item, round_, is_done=True):
                self._emit_task(events.TaskCompleted, item, round_, marked_done=True)
            case Counted(item, round_):
                self._emit_task(events.TaskFailed, item, round_, reason="answer")
            case CommandSkipped(item, round_, cause):
                cause_id = "request" if cause is None else self._ids[cause]
                why = "skipped by user" if cause is None else f"it needs {cause_id}, which is not done"
                self._emit_task(events.TaskSkipped, item, round_, cause=cause_id, reason=why)

    def _emit_start(self, start: StartCommand) -> None:
        holder, pid = self.members[start.item]
        self._since[start.item] = self._running_ns()
        log = layout.log_name(*self._places.place(start.item), start.round, start.epoch)
        estimate = None if self._estimator is None else self._estimator.expected(start.item)
        self._emit_task(
            events.TaskStarted, start.item, start.round, worker=holder, pid=pid, log=log, estimate_seconds=estimate
        )

    def _emit_adopted(self, item: int) -> None:
        round_, _ = self._conductor.attempt(item)
        since = self._start_times.get((item, round_))
        past = 0 if since is None else max(0, self._wall_ns() - events.instant_ns(since))
        self._since[item] = self._running_ns() - past
        self.members.pop(item, None)
        if (lease := self._leases.get(item)) is not None and lease.is_live:
            self.members[item] = lease.holder.holder, lease.holder.pid
        pid = self.members[item][1] if item in self.members else None
        self._emit_task(events.TaskAdopted, item, round_, pid=pid, since=since)

    def _emit_end(self, conclusion: Conclusion, *, goes_on: bool, asks: bool) -> None:
        used = self.used.pop((conclusion.item, conclusion.round), None)
        self._ended[conclusion.item] = self._running_ns()
        seconds = None if used is None else round(used.seconds, 3)
        status = conclusion.exit_status
        if conclusion.type == "result" and used is not None and self._estimator is not None:
            self._estimator.note(conclusion.item, used.seconds)
        match conclusion.type:
            case "result":
                self._emit_task(
                    events.TaskCompleted,
                    conclusion.item,
                    conclusion.round,
                    seconds=seconds,
                    cpu_seconds=None if used is None else round(used.cpu_seconds, 3),
                    memory_peak_bytes=None if used is None else used.memory_peak_bytes,
                    exit_status=status,
                )
            case "failed" if not asks:
                wait = self._wait_of(conclusion) if goes_on else {}
                self._emit_task(
                    events.TaskRetrying if goes_on else events.TaskFailed,
                    conclusion.item,
                    conclusion.round,
                    **wait,
                    reason=conclusion.reason,
                    exit_status=status,
                    signal=_signal_name(status),
                    seconds=seconds,
                    log_tail=self._log_tail(conclusion),
                )
            case "blocked" | "failed":
                self._emit_task(
                    events.TaskBlocked, conclusion.item, conclusion.round, question=self._question(conclusion)
                )
            case "cancelled":
                self._emit_task(events.TaskCancelled, conclusion.item, conclusion.round, seconds=seconds)

    def _wait_of(self, conclusion: Conclusion) -> dict[str, object]:
        """Return the fields for the wait of a failed command before its next try."""
        item = conclusion.item
        is_last = self._conductor.conclusion(item) is conclusion
        if not is_last or self._conductor.state(item) is not CommandState.WAITING:
            return {}
        if until_ns := self._conductor.until_ns(item):
            pools = tuple(self._conductor.agenda.policies[item].pools)
            return {"until": events.instant_ms(until_ns), "pools": pools}
        return {"wait_seconds": round(self._conductor.wait_seconds(item), 3)}

    def _question(self, conclusion: Conclusion) -> events.AskedQuestion:
        if conclusion.question:
            return self._question_field(conclusion.question)
        kind: OurQuestion = "interrupted"
        if conclusion.type == "failed":
            has_stalled = (
                conclusion.reason == "stall" and self._conductor.agenda.policies[conclusion.item].on_stall == "ask"
            )
            kind = "stall" if has_stalled else "exhausted"
        digest = our_question(kind, self._ids[conclusion.item], conclusion.round)
        return events.AskedQuestion(digest=digest, text=OUR_TEXTS[kind], choices=OUR_CHOICES, human=True)

    def _question_field(self, digest: Digest) -> events.AskedQuestion:
        """Return the question of a command as an event field. If the question cannot be read, its text is empty."""
        question = self._question_of(digest)
        if question is None:
            return events.AskedQuestion(digest=digest, text="")
        return events.AskedQuestion(
            digest=digest, text=question.text, choices=question.choices, human=question.is_human
        )

    def _log_tail(self, conclusion: Conclusion) -> tuple[str, ...]:
        name = layout.log_name(*self._places.place(conclusion.item), conclusion.round, conclusion.epoch)
        with contextlib.suppress(StoreError, OSError):
            return tuple(last_lines(self._batch.files, self._batch.root / layout.LOGS / name, _LINES_OF_FAILED))
        return ()

    def _emit_request(self, request: Request) -> None:
        by, n = request.head.by, request.n
        match request.body:
            case Answer(task=task, round=round_, text=text):
                if (item := self._projector.item(task)) is not None:
                    self._emit_task(events.TaskAnswered, item, round_, by=by, text=text, request=n)
            case Pause():
                self.emit(events.BatchPaused, by=by, request=n)
            case Unpause():
                self.emit(events.BatchUnpaused, by=by, request=n)
            case Set() as body:
                changed = msgspec.to_builtins(body)
                del changed["request"]
                self.emit(events.BatchChanged, by=by, request=n, set_=changed)
            case Stop(cause=cause, detail=detail, attempts=attempts, terminates=True):
                self.emit(events.BatchStopped, request=n, tasks=tuple(attempts), cause=cause, detail=detail)
            case _:
                pass

    def progress(self, eta: Eta | None) -> None:
        """Emit a progress event."""
        self.emit(
            events.BatchProgress,
            eta_seconds=None if eta is None else eta.seconds,
            without_estimate=0 if eta is None else eta.unknown,
            running=tuple(map(self._running_task, sorted(self._conductor.running))),
            closed_pools=tuple(
                events.ClosedPool(pool=pool, until=events.instant_ms(until_ns))
                for pool, until_ns in sorted(self._conductor.closed_pools.items())
            ),
        )

    def running_seconds(self) -> dict[int, float]:
        """Return the running time in seconds of each running item."""
        now = self._running_ns()
        return {item: (now - self._since.get(item, self._began_ns)) / 1e9 for item in self._conductor.running}

    def end(self) -> None:
        """Emit the event for the end of the batch."""
        seconds = (self._running_ns() - self._began_ns) / 1e9
        self.emit(
            events.ENDS[self._conductor.verdict().value],
            seconds=round(seconds, 3),
            total_seconds=round(self.seconds_before + seconds, 3),
            task_count=len(self._ids),
            critical_path=tuple(self._ids[item] for item in self._critical_path()),
        )

    def _running_task(self, item: int) -> events.TaskAtWork:
        holder, _ = self.members.get(item, ("", 0))
        child = None
        with contextlib.suppress(StoreError, OSError):
            child = child_of(self._batch, HolderId(holder)) if holder else None
        return events.TaskAtWork(
            task=self._ids[item],
            seconds=round((self._running_ns() - self._since.get(item, self._began_ns)) / 1e9, 1),
            output_bytes=0 if child is None else child.output_bytes,
        )

    def _critical_path(self) -> list[int]:
        """Return the critical path: the chain of needed commands that ended last, in order of execution.

        Only commands that ended under this coordinator are included.
        """
        path: list[int] = []
        heads = list(self._ended)
        while heads:
            path.append(max(heads, key=lambda item: (self._ended[item], item)))
            heads = [need.item for need in self._conductor.agenda.needs[path[-1]] if need.item in self._ended]
        return path[::-1]


def _signal_name(status: int | None) -> str:
    if status is None or status >= 0:
        return ""
    try:
        return signal.Signals(-status).name
    except ValueError:
        return str(-status)
