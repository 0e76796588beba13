"""Publication of the events of a work batch for followers (SPEC.md "Events").

The projector translates scheduler events into happenings. From each happening, the publisher makes an event with all
its fields, and passes the event to the event file and to the notifier. The module is one unit, long as it is, because
the fields of an event are best read together.

Events have no effect on scheduling. If an event cannot be written to disk, it is written later or never. If earlier
events are damaged, they are treated as missing. In both cases, the batch continues, and the states of commands are
unaffected.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.coordinator.processes.worker_backend import WorkerHandle
from codebatch.coordinator.work.duration_estimates import DurationEstimator
from codebatch.coordinator.work.event_fields import coordinator_question, critical_path
from codebatch.coordinator.work.limit_fields import closed_pool_fields, cost_fields, pool_delays, wait_fields
from codebatch.coordinator.work.notification_messages import make_notification
from codebatch.coordinator.work.notifications import DeliveryResult, Notifier
from codebatch.errors import StoreError
from codebatch.model.digest import Digest
from codebatch.model.outcome import HolderId, ResourceUsage
from codebatch.model.work import event as events
from codebatch.model.work.event import TaskEvent
from codebatch.model.work.question import Question, cap_question_text
from codebatch.model.work.request import Add, Answer, Pause, Request, Set, Stop, Unpause
from codebatch.model.work.work_batch import Work
from codebatch.scheduling.actions import CompleteSession, EndBroken, EndDrained
from codebatch.scheduling.work.caps import attempts_cost
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.estimate import Eta, Forecast
from codebatch.scheduling.work.event_projection import (
    AttemptEnded,
    AttemptInterrupted,
    AttemptStopped,
    CommandAdopted,
    CommandBegan,
    CommandMarked,
    CommandQueued,
    CommandSkipped,
    EventProjector,
    LiveQuestionAsked,
    ProjectedEvent,
    RequestReceived,
)
from codebatch.scheduling.work.events import AttemptOutcome, CommandEvent, OutcomesConcluded, StartCommand
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import UnitLease
from codebatch.store.batches.progress_cells import read_running_child
from codebatch.store.work.attempts import CommandPlaces
from codebatch.store.work.event_history import PreviousEvents, read_journal_usage
from codebatch.store.work.events import EventWriter
from codebatch.store.work.logs import last_lines
from codebatch.store.work.notifications import read_notifications
from codebatch.system.processes.processes import signal_name

PROGRESS_SECONDS = 5.0
_INTERVAL_FACTOR = 50
"""The interval between progress events is at least this multiple of the time that one estimate takes."""
_FIRST_PROGRESS_SECONDS = 1.0
_SAVE_INTERVAL_SECONDS = 60.0
_FILE_CHECK_SECONDS = 1.0
_FAILED_LOG_LINES_MAX = 20


class EventPublisher:
    """Publisher of the events of a work batch, for one coordinator. It has many methods."""

    def __init__(
        self,
        batch: BatchDir,
        work: Work,
        conductor: Conductor,
        places: CommandPlaces,
        epoch: int,
        *,
        concluded: OutcomesConcluded,
        requests: Sequence[Request],
        leases: Mapping[int, UnitLease],
        question_of: Callable[[Digest], Question | None],
        wall_ns: Callable[[], int],
        running_ns: Callable[[], int],
        estimator: DurationEstimator | None = None,
        notifier: Notifier | None = None,
    ) -> None:
        """Read earlier events. Emit the missing events for everything that has happened so far.

        The caller must hold the lease of the batch. `concluded`, `requests` and `leases` (by item) are the state of the
        batch on disk. `running_ns` is a clock that stops while the system is suspended.
        """
        self._batch = batch
        self._work = work
        self._conductor = conductor
        self._ids = conductor.agenda.ids
        self._places = places
        self._epoch = epoch
        self._leases = leases
        self._read_question = question_of
        self._wall_ns = wall_ns
        self._running_ns = running_ns
        self._estimator = estimator
        self._notifier = notifier
        self._previous_events = PreviousEvents(batch, epoch, {id_: item for item, id_ in enumerate(self._ids)})
        self._projector = EventProjector(conductor, requests, self._previous_events.emitted_events)
        self._writer = EventWriter(batch.files, batch.root, epoch, locks=notifier is not None)
        self._held_resume: Callable[[], object] | None = None
        """Emits BATCH_RESUMED. It is called before the first other event, if there is one."""
        self._last_seq = 0
        self._began_ns = self._saved_ns = self._looked_ns = running_ns()
        self._next_progress_ns = self._began_ns + round(_FIRST_PROGRESS_SECONDS * 1e9)
        self._forecast: tuple[Forecast, int] | None = None
        self._signal = ""
        self._started_at: dict[int, int] = {}
        self._ended_count: dict[int, int] = {}
        self._members: dict[int, tuple[HolderId, int]] = {}
        self._resource_usage: dict[tuple[int, int], ResourceUsage] = {}
        self._emit_initial_events(concluded, requests)
        if notifier is not None:
            notifier.recorder = self._record_notification
            for event in read_notifications(batch, work.notify).owed:
                if event.place.epoch < epoch:
                    notifier.add(make_notification(event, batch, work, conductor))

    def _emit_initial_events(self, concluded: OutcomesConcluded, requests: Sequence[Request]) -> None:
        unreported = {
            (one.item, one.round) for one in concluded.conclusions
        } - self._previous_events.emitted_events.ends
        if unreported:
            self._resource_usage.update(read_journal_usage(self._batch, self._places, unreported))
        opened = tuple(self._ids[item] for item in self._projector.opened_before)
        happened = self._projector.initial_events(concluded)
        notifies: bool | UnsetType = UNSET if self._notifier is None else True
        last = self._previous_events.last
        if last is None:
            self._emit_batch_event(
                events.BatchStarted,
                source=self._work.source,
                strategy=self._work.strategy,
                max_parallel=self._work.max_parallel,
                on_failure=self._work.on_failure,
                task_count=len(self._work.order),
                task_ids=self._work.order,
                edges={"file": len(self._work.edges)},
                requests=len(requests),
                notifies=notifies,
            )
        else:
            self._held_resume = functools.partial(
                self._emit_batch_event,
                events.BatchResumed,
                after=self._previous_events.ending_cause,
                reopened=opened,
                adopted=tuple(self._ids[item] for item in sorted(self._conductor.adopted_items)),
                requests=len(requests),
                notifies=notifies,
            )
            # If the batch has ended as reported, a coordinator that finds nothing to do emits no event.
            if type(last) is not events.END_EVENT_TYPES.get(self._conductor.batch_state().value):
                self._emit_held_resume()
        self._emit_happenings(happened)
        self._writer.flush()

    def record_assignment(self, start: StartCommand, member: WorkerHandle) -> None:
        """Record that a command is assigned to a worker."""
        self._members[start.item] = member.holder, member.pid
        self._projector.note_start(start)

    def record_use(self, ended: Sequence[AttemptOutcome], used: Sequence[ResourceUsage]) -> None:
        """Record the resources that ended attempts used, for the fields of their end events.

        Call this method before the ends of the attempts are handled.
        """
        self._resource_usage.update({(one.item, one.round): each for one, each in zip(ended, used, strict=False)})

    def on_event_handled(self, event: CommandEvent) -> None:
        """Emit the events that follow from a scheduler event.

        This must be called after the actions for the scheduler event were executed.
        """
        self._emit_happenings(self._projector.effects_of_event(event))

    def on_turn_end(self) -> None:
        """Finish a turn: write the events. At intervals, also emit a progress event and save durations."""
        now = self._running_ns()
        if now >= self._next_progress_ns and (self._conductor.running_items or self._conductor.closed_pools):
            self._update_progress(now)
        if self._estimator is not None and now - self._saved_ns >= _SAVE_INTERVAL_SECONDS * 1e9:
            self._saved_ns = now
            self._estimator.save_durations()
        looks = now - self._looked_ns >= _FILE_CHECK_SECONDS * 1e9
        if looks:
            self._looked_ns = now
        self._writer.flush(looks=looks)
        if self._notifier is not None:
            self._notifier.record_results()

    def _update_progress(self, now_ns: int) -> None:
        if self._estimator is not None:
            waiting = self._projector.waiting_items
            delays = pool_delays(self._conductor, self._wall_ns())
            running = self._running_seconds()
            forecast = self._estimator.make_forecast(self._conductor.agenda, waiting, running, delays)
            self._forecast = None if forecast is None else (forecast, now_ns)
        eta = self.eta
        self._emit_batch_event(
            events.BatchProgress,
            eta_seconds=None if eta is None else eta.seconds,
            without_estimate=0 if eta is None else eta.unknown,
            running=tuple(map(self._running_task, sorted(self._conductor.running_items))),
            closed_pools=closed_pool_fields(self._conductor),
            paused=self._conductor.is_paused,
            **cost_fields(self._conductor),
        )
        elapsed_ns = self._running_ns() - now_ns
        self._next_progress_ns = now_ns + max(round(PROGRESS_SECONDS * 1e9), _INTERVAL_FACTOR * elapsed_ns)

    @property
    def eta(self) -> Eta | None:
        """The estimated remaining time: the last forecast, minus the time that has passed since.

        None without a forecast.
        """
        if self._forecast is None:
            return None
        forecast, at_ns = self._forecast
        past = (self._running_ns() - at_ns) / 1e9
        low, middle, high = (
            max(0.0, round(estimate - past, 1)) for estimate in (forecast.low, forecast.middle, forecast.high)
        )
        return Eta((low, middle, high), forecast.unknown)

    def record_drain(self, reason: str) -> None:
        """Record the name of the signal that caused a drain."""
        self._signal = reason

    def end(self, how: CompleteSession | EndDrained | EndBroken | None, why: str = "") -> None:
        """Emit the last event. `how` is the way in which the run ended, `why` the coordinator's error or empty."""
        self._emit_happenings(self._projector.remaining_changes())
        if self._held_resume is not None and self._conductor.batch_state().is_final:
            return
        if isinstance(how, CompleteSession) and self._conductor.batch_state().is_final:
            self._emit_batch_end()
        else:
            self._emit_batch_event(events.BatchDrained, signal=self._signal, error="" if self._signal else why)
        self._writer.finish()

    def close(self) -> None:
        """Close the event file. Results of notifications are recorded until then."""
        self._writer.close()

    def _emit_batch_event(self, type_: Callable[..., events.BatchEvent], **fields: object) -> events.BatchEvent:
        """Emit an event of the batch. The sequence number and the current counts are added to `fields`."""
        if type_ is not events.BatchNotified:
            self._emit_held_resume()
        self._last_seq += 1
        event = type_(
            cursor=events.cursor_text(self._batch.id, events.EventCursor(self._epoch, self._last_seq)),
            seq=self._last_seq,
            at=events.instant_ms(self._wall_ns()),
            batch_id=self._batch.id,
            counts=dict(self._projector.counts),
            **fields,
        )
        self._writer.add(event)
        if self._notifier is not None and self._notifier.is_wanted(event):
            self._notifier.add(make_notification(event, self._batch, self._work, self._conductor))
        return event

    def _emit_held_resume(self) -> None:
        emit, self._held_resume = self._held_resume, None
        if emit is not None:
            emit()

    def _record_notification(self, result: DeliveryResult) -> events.BatchNotified:
        """Record the result of a delivery at once. Otherwise, it would be repeated if this process is killed."""
        event = self._emit_batch_event(
            events.BatchNotified,
            notified=events.event_name(result.event),
            notified_cursor=result.event.cursor,
            tries=result.tries,
            problem=result.problem,
        )
        self._writer.flush()
        assert isinstance(event, events.BatchNotified)
        return event

    def _emit_task_event(self, type_: Callable[..., TaskEvent], item: int, round_: int, **fields: object) -> None:
        id_ = self._ids[item]
        self._emit_batch_event(
            type_,
            task=id_,
            title=self._work.titles.get(id_, ""),
            round=round_,
            try_=self._try_number(item, round_),
            tries_max=1 + self._conductor.retries(item, round_),
            **fields,
        )

    def _try_number(self, item: int, round_: int) -> int:
        """Return the try number of a round: 1, plus the number of failed attempts before it.

        Only attempts since a request last reset the command are counted.
        """
        last, failed_tries = self._conductor.last_outcome(item), self._conductor.state_rule.failed_try_count(item)
        if last is None or last.round < round_:
            return failed_tries + 1
        counts = last.type == "failed" and not self._conductor.state_rule.is_limited(item)
        return max(1, (failed_tries if counts else failed_tries + 1) - (last.round - round_))

    def _emit_happenings(self, happenings: Sequence[ProjectedEvent]) -> None:
        """Emit the events for these happenings, in order."""
        for happening in happenings:
            match happening:
                case CommandQueued(item, round_, position):
                    self._emit_task_event(events.TaskQueued, item, round_, position=position)
                case CommandBegan(start):
                    self._emit_task_started(start)
                case CommandAdopted(item):
                    self._emit_task_adopted(item)
                case AttemptEnded(conclusion, goes_on, asks):
                    self._emit_attempt_end(conclusion, goes_on=goes_on, asks=asks)
                case LiveQuestionAsked(item, round_, question):
                    self._emit_live_question(item, round_, Digest(question))
                case CommandMarked() | CommandSkipped():
                    self._emit_happening(happening)
                case AttemptInterrupted(item, epoch, then):
                    round_ = self._conductor.last_attempt(item)[0]
                    self._emit_task_event(events.TaskInterrupted, item, round_, epoch=epoch, next_action=then)
                case AttemptStopped(item, epoch, (cause, detail, _)):
                    round_ = self._conductor.last_attempt(item)[0]
                    self._emit_task_event(events.TaskStopped, item, round_, epoch=epoch, cause=cause, detail=detail)
                case RequestReceived(request):
                    self._emit_request_event(request)

    def _emit_happening(self, happening: CommandMarked | CommandSkipped) -> None:
        """Emit the event for a command whose state changed without the end of an attempt."""
        match happening:
            case CommandMarked(item, round_, is_done=True):
                self._emit_task_event(events.TaskCompleted, item, round_, marked_done=True)
            case CommandMarked(item, round_):
                self._emit_task_event(events.TaskFailed, item, round_, reason="answer")
            case CommandSkipped(item, round_, cause):
                cause_id = "request" if cause is None else self._ids[cause]
                why = "skipped by user" if cause is None else f"it needs {cause_id}, which is not done"
                self._emit_task_event(events.TaskSkipped, item, round_, cause=cause_id, reason=why)

    def _emit_task_started(self, start: StartCommand) -> None:
        holder, pid = self._members[start.item]
        self._started_at[start.item] = self._running_ns()
        log = layout.log_name(*self._places.place_of_item(start.item), start.round, start.epoch)
        estimate = None if self._estimator is None else self._estimator.expected(start.item)
        self._emit_task_event(
            events.TaskStarted, start.item, start.round, worker=holder, pid=pid, log=log, estimate_seconds=estimate
        )

    def _emit_task_adopted(self, item: int) -> None:
        round_, _ = self._conductor.last_attempt(item)
        since = self._previous_events.started.get((item, round_))
        past = 0 if since is None else max(0, self._wall_ns() - events.instant_ns(since))
        self._started_at[item] = self._running_ns() - past
        self._members.pop(item, None)
        if (lease := self._leases.get(item)) is not None and lease.is_live:
            self._members[item] = lease.holder.holder, lease.holder.pid
        pid = self._members[item][1] if item in self._members else None
        self._emit_task_event(events.TaskAdopted, item, round_, pid=pid, since=since)

    def _emit_attempt_end(self, conclusion: AttemptOutcome, *, goes_on: bool, asks: bool) -> None:
        used = self._resource_usage.pop((conclusion.item, conclusion.round), None)
        self._ended_count[conclusion.item] = self._running_ns()
        seconds = None if used is None else round(used.seconds, 3)
        status = conclusion.exit_status
        if conclusion.type == "result" and not conclusion.reason and used is not None and self._estimator is not None:
            self._estimator.record_duration(conclusion.item, used.seconds)
        match conclusion.type:
            case "result":
                self._emit_task_event(
                    events.TaskCompleted,
                    conclusion.item,
                    conclusion.round,
                    seconds=seconds,
                    cpu_seconds=None if used is None else round(used.cpu_seconds, 3),
                    memory_peak_bytes=None if used is None else used.memory_peak_bytes,
                    exit_status=status,
                    reason=conclusion.reason or UNSET,
                    cost=attempts_cost([conclusion]),
                    unrecorded=conclusion.unrecorded,
                    notes=conclusion.notes,
                )
            case "failed" if not asks:
                wait = wait_fields(self._conductor, conclusion) if goes_on else {}
                self._emit_task_event(
                    events.TaskRetrying if goes_on else events.TaskFailed,
                    conclusion.item,
                    conclusion.round,
                    **wait,
                    reason=conclusion.reason,
                    exit_status=status,
                    signal="" if status is None or status >= 0 else signal_name(-status),
                    seconds=seconds,
                    cost=attempts_cost([conclusion]),
                    log_tail=self._log_tail(conclusion),
                    notes=conclusion.notes,
                )
            case "blocked" | "failed":
                self._emit_task_event(
                    events.TaskBlocked, conclusion.item, conclusion.round, question=self._asked_question(conclusion)
                )
            case "cancelled":
                self._emit_task_event(events.TaskCancelled, conclusion.item, conclusion.round, seconds=seconds)

    def _asked_question(self, conclusion: AttemptOutcome) -> events.AskedQuestion:
        if conclusion.question:
            return self._question_field(conclusion.question)
        return coordinator_question(conclusion, self._conductor.agenda)

    def _emit_live_question(self, item: int, round_: int, digest: Digest) -> None:
        field = self._question_field(digest)
        if (cap := self._conductor.asked_cap(item)) is not None:
            text = cap_question_text(cap.scope, cap.name, cap.limit)
            field = events.AskedQuestion(digest=digest, text=text, human=True)
        self._emit_task_event(events.TaskBlocked, item, round_, question=field, is_live=True)

    def _question_field(self, digest: Digest) -> events.AskedQuestion:
        """Return a question of a command as an event field. If it cannot be read, its text is empty."""
        question = self._read_question(digest)
        if question is None:
            return events.AskedQuestion(digest=digest, text="")
        return events.AskedQuestion(
            digest=digest, text=question.text, choices=question.choices, human=question.is_human
        )

    def _log_tail(self, conclusion: AttemptOutcome) -> tuple[str, ...]:
        name = layout.log_name(*self._places.place_of_item(conclusion.item), conclusion.round, conclusion.epoch)
        with contextlib.suppress(StoreError, OSError):
            return tuple(last_lines(self._batch.files, self._batch.root / layout.LOGS / name, _FAILED_LOG_LINES_MAX))
        return ()

    def _emit_request_event(self, request: Request) -> None:
        by, n = request.head.by, request.n
        match request.body:
            case Answer(task=task, round=round_, text=text):
                if (item := self._projector.item_of_command(task)) is not None:
                    self._emit_task_event(events.TaskAnswered, item, round_, by=by, text=text, request=n)
            case Pause():
                self._emit_batch_event(events.BatchPaused, by=by, request=n)
            case Unpause():
                self._emit_batch_event(events.BatchUnpaused, by=by, request=n)
            case Set() as body:
                changed = msgspec.to_builtins(body)
                del changed["request"]
                self._emit_batch_event(events.BatchChanged, by=by, request=n, set_=changed)
            case Add(commands=commands):
                self._work.titles.update((command.id, command.title) for command in commands)
                self._emit_batch_event(
                    events.BatchChanged, by=by, request=n, added=tuple(command.id for command in commands)
                )
            case Stop(cause=cause, detail=detail, attempts=attempts, terminates=True):
                self._emit_batch_event(
                    events.BatchStopped, request=n, tasks=tuple(attempts), cause=cause, detail=detail
                )
            case _:
                pass

    def _running_seconds(self) -> dict[int, float]:
        """Return the running time in seconds of each running item."""
        now = self._running_ns()
        return {
            item: (now - self._started_at.get(item, self._began_ns)) / 1e9 for item in self._conductor.running_items
        }

    def _emit_batch_end(self) -> None:
        """Emit the event for the end of the batch."""
        seconds = (self._running_ns() - self._began_ns) / 1e9
        self._emit_batch_event(
            events.END_EVENT_TYPES[self._conductor.batch_state().value],
            seconds=round(seconds, 3),
            total_seconds=round(self._previous_events.total_seconds + seconds, 3),
            task_count=len(self._ids),
            critical_path=tuple(self._ids[item] for item in critical_path(self._ended_count, self._conductor.agenda)),
            **cost_fields(self._conductor),
        )

    def _running_task(self, item: int) -> events.RunningTask:
        holder, _ = self._members.get(item, ("", 0))
        child = None
        with contextlib.suppress(StoreError, OSError):
            child = read_running_child(self._batch, HolderId(holder)) if holder else None
        return events.RunningTask(
            task=self._ids[item],
            seconds=round((self._running_ns() - self._started_at.get(item, self._began_ns)) / 1e9, 1),
            output_bytes=0 if child is None else child.output_bytes,
            worker=holder or None,
        )
