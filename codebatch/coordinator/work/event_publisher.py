"""Publication of the events of a work batch for followers (SPEC.md "Events").

The projector translates scheduler events into events for people. The publisher adds the fields that come from files and
clocks, and passes each event to the event file and to the notifier. The watcher of the run gets the projected events.

Events have no effect on scheduling. If an event cannot be written to disk, it is written later or never. If earlier
events are damaged, they are treated as missing. In both cases, the batch continues, and the states of commands are
unaffected.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence

from msgspec import UNSET, UnsetType

from codebatch.coordinator.processes.worker_backend import WorkerHandle
from codebatch.coordinator.work.duration_estimates import DurationEstimator
from codebatch.coordinator.work.event_fields import coordinator_question, critical_path
from codebatch.coordinator.work.interfaces import CommandWatcher
from codebatch.coordinator.work.limit_fields import closed_pool_fields, cost_fields, pool_delays, wait_fields
from codebatch.coordinator.work.notification_messages import make_notification
from codebatch.coordinator.work.notifications import DeliveryResult, Notifier
from codebatch.errors import StoreError
from codebatch.model.digest import Digest
from codebatch.model.outcome import HolderId, ResourceUsage
from codebatch.model.work import event as events
from codebatch.model.work.question import Question, cap_question_text
from codebatch.model.work.request import Request
from codebatch.model.work.work_batch import Work
from codebatch.scheduling.actions import CompleteSession, EndBroken, EndDrained
from codebatch.scheduling.work.caps import attempts_cost
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.estimate import Eta
from codebatch.scheduling.work.event_projection import EventProjector, ProjectedEvent
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
        self.watcher: CommandWatcher | None = None
        """Receives each further event of a task or a request."""
        self._previous_events = PreviousEvents(batch, epoch, {id_: item for item, id_ in enumerate(self._ids)})
        self._projector = EventProjector(conductor, requests, self._previous_events.emitted_events, work.titles)
        self._writer = EventWriter(batch.files, batch.root, epoch, locks=notifier is not None)
        self._held_resume: Callable[[], object] | None = None
        """Emits BATCH_RESUMED. It is called before the first other event, if there is one."""
        self._last_seq = 0
        self._began_ns = self._saved_ns = self._looked_ns = running_ns()
        self._next_progress_ns = self._began_ns + round(_FIRST_PROGRESS_SECONDS * 1e9)
        self._forecast: tuple[Eta, int] | None = None
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
        self._emit_projected(happened)
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
        self._emit_projected(self._projector.effects_of_event(event))

    def on_turn_end(self) -> None:
        """Finish a turn: write the events. At intervals, also emit a progress event and save durations."""
        now = self._running_ns()
        if now >= self._next_progress_ns and (self._conductor.running_items or self._conductor.has_timers):
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
        low, middle, high = (max(0.0, round(estimate - past, 1)) for estimate in forecast.seconds)
        return Eta((low, middle, high), forecast.unknown)

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of commands in each state."""
        return self._projector.counts

    def record_drain(self, reason: str) -> None:
        """Record the name of the signal that caused a drain."""
        self._signal = reason

    def end(self, how: CompleteSession | EndDrained | EndBroken | None, why: str = "") -> None:
        """Emit the last event. `how` is the way in which the run ended, `why` the coordinator's error or empty."""
        self._emit_projected(self._projector.remaining_changes())
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

    def _emit_projected(self, projected: Sequence[ProjectedEvent]) -> None:
        """Emit projected events, in order."""
        for one in projected:
            event = self._emit_batch_event(one.type, **one.fields, **self._observed_fields(one))
            if self.watcher is not None:
                self.watcher.on_event(event, one)

    def _observed_fields(self, projected: ProjectedEvent) -> dict[str, object]:
        """Return the fields of a projected event that are read from files and clocks."""
        if projected.item is None:
            return {}
        if projected.outcome is not None:
            return self._end_fields(projected.type, projected.outcome)
        match projected.type:
            case events.TaskStarted:
                return self._start_fields(projected.item)
            case events.TaskAdopted:
                return self._adoption_fields(projected.item)
            case events.TaskBlocked if projected.question is not None:
                return {"question": self._live_question(projected.item, Digest(projected.question))}
            case _:
                return {}

    def _start_fields(self, item: int) -> dict[str, object]:
        holder, pid = self._members[item]
        self._started_at[item] = self._running_ns()
        log = layout.log_name(*self._places.place_of_item(item), *self._conductor.last_attempt(item))
        estimate = None if self._estimator is None else self._estimator.expected(item)
        return {"worker": holder, "pid": pid, "log": log, "estimate_seconds": estimate}

    def _adoption_fields(self, item: int) -> dict[str, object]:
        round_, _ = self._conductor.last_attempt(item)
        since = self._previous_events.started.get((item, round_))
        past = 0 if since is None else max(0, self._wall_ns() - events.instant_ns(since))
        self._started_at[item] = self._running_ns() - past
        self._members.pop(item, None)
        if (lease := self._leases.get(item)) is not None and lease.is_live:
            self._members[item] = lease.holder.holder, lease.holder.pid
        return {"pid": self._members[item][1] if item in self._members else None, "since": since}

    def _end_fields(self, type_: type[events.BatchEvent], outcome: AttemptOutcome) -> dict[str, object]:
        used = self._resource_usage.pop((outcome.item, outcome.round), None)
        self._ended_count[outcome.item] = self._running_ns()
        seconds = None if used is None else round(used.seconds, 3)
        status = outcome.exit_status
        if outcome.type == "result" and not outcome.reason and used is not None and self._estimator is not None:
            self._estimator.record_duration(outcome.item, used.seconds)
        if type_ is events.TaskBlocked:
            return {"question": self._asked_question(outcome), "seconds": seconds}
        if type_ is events.TaskCancelled:
            return {"seconds": seconds}
        fields: dict[str, object] = {
            "seconds": seconds,
            "exit_status": status,
            "cost": attempts_cost([outcome]),
            "notes": self._conductor.state_rule.notes(outcome),
        }
        if type_ is events.TaskCompleted:
            return fields | {
                "cpu_seconds": None if used is None else round(used.cpu_seconds, 3),
                "memory_peak_bytes": None if used is None else used.memory_peak_bytes,
                "reason": outcome.reason or UNSET,
                "unrecorded": outcome.unrecorded,
            }
        wait = wait_fields(self._conductor, outcome) if type_ is events.TaskRetrying else {}
        return (
            fields
            | wait
            | {
                "reason": outcome.reason,
                "signal": "" if status is None or status >= 0 else signal_name(-status),
                "log_tail": self._log_tail(outcome),
            }
        )

    def _asked_question(self, conclusion: AttemptOutcome) -> events.AskedQuestion:
        if conclusion.question:
            return self._question_field(conclusion.question)
        return coordinator_question(conclusion, self._conductor.agenda)

    def _live_question(self, item: int, digest: Digest) -> events.AskedQuestion:
        if (cap := self._conductor.asked_cap(item)) is not None:
            return events.AskedQuestion(digest=digest, text=cap_question_text(*cap), human=True)
        return self._question_field(digest)

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
