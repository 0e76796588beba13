"""Publication of the events of a work batch for followers (SPEC.md "Events").

Events have no effect on scheduling. If the disk refuses an event, the event is written later or never. Damaged earlier
events are treated as absent. In both cases the batch continues and command states are unaffected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from codebatch.coordinator.processes.worker_backend import WorkerHandle
from codebatch.coordinator.work.duration_estimates import Estimator
from codebatch.coordinator.work.event_builder import EventBuilder
from codebatch.coordinator.work.notifications import Notifier
from codebatch.model.digest import Digest
from codebatch.model.outcome import Used
from codebatch.model.work import event as events
from codebatch.model.work.question import Question
from codebatch.model.work.request import Request
from codebatch.model.work.work_batch import Work
from codebatch.scheduling.actions import Break, Complete, Drained
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.estimate import Eta, Forecast
from codebatch.scheduling.work.event_projection import EventProjector
from codebatch.scheduling.work.events import CommandEvent, Concluded, Conclusion, StartCommand
from codebatch.store.batches.batches import BatchDir
from codebatch.store.batches.holders import Lease
from codebatch.store.work.attempts import Attempts
from codebatch.store.work.event_history import ToldBefore, used_by_the_journals

PROGRESS_SECONDS = 5.0
_INTERVAL_FACTOR = 50
"""Lower bound of the progress interval, as a multiple of the time that one estimate takes."""
_FIRST_SECONDS = 1.0
_SAVE_SECONDS = 60.0
_LOOK_SECONDS = 1.0


class DiskState(NamedTuple):
    """State of the batch on disk at the start: conclusions, requests, and leases of commands by item."""

    concluded: Concluded
    requests: Sequence[Request]
    leases: Mapping[int, Lease]


class Clocks(NamedTuple):
    """The wall clock and a clock that stops during suspend, both in nanoseconds."""

    wall_ns: Callable[[], int]
    running_ns: Callable[[], int]


class Observers(NamedTuple):
    """Optional observers: the estimator of durations and the notifier of the user's command."""

    estimator: Estimator | None = None
    notifier: Notifier | None = None


NO_HELPERS = Observers()


class EventPublisher:
    """Publisher of the events of one coordinator."""

    def __init__(
        self,
        batch: BatchDir,
        work: Work,
        conductor: Conductor,
        attempts: Attempts,
        epoch: int,
        state: DiskState,
        question_of: Callable[[Digest], Question | None],
        *,
        clocks: Clocks,
        helpers: Observers,
    ) -> None:
        """Read earlier events, and emit events for everything that happened without an event.

        The caller must hold the lease of the batch.
        """
        concluded, requests, leases = state
        wall_ns, running_ns = clocks
        estimator, notifier = helpers
        self._conductor = conductor
        self._running_ns = running_ns
        self._estimator = estimator
        self._saved_ns = self._looked_ns = running_ns()
        self._next_progress_ns = self._saved_ns + round(_FIRST_SECONDS * 1e9)
        self._forecast: tuple[Forecast, int] | None = None
        self._signal = ""
        ids = conductor.agenda.ids
        before = ToldBefore(batch, epoch, {id_: item for item, id_ in enumerate(ids)})
        self._projector = EventProjector(conductor, requests, before.told)
        self._builder = EventBuilder(
            batch,
            work,
            attempts.places,
            epoch,
            conductor,
            self._projector,
            question_of=question_of,
            leases=leases,
            started=before.started,
            wall_ns=wall_ns,
            running_ns=running_ns,
            estimator=estimator,
            notifier=notifier,
        )
        self._builder.seconds_before = before.seconds
        unreported = {(one.item, one.round) for one in concluded.conclusions} - before.told.ends
        if unreported:
            self._builder.used.update(used_by_the_journals(batch, attempts.places, unreported))
        opened = tuple(ids[item] for item in self._projector.opened_before)
        happened = self._projector.initial_events(concluded)
        if before.last is None:
            self._builder.started(len(requests))
        else:
            self._builder.emit(
                events.BatchResumed,
                after=before.left_by,
                reopened=opened,
                adopted=tuple(ids[item] for item in sorted(conductor.foreign)),
                requests=len(requests),
            )
        self._builder.emit_all(happened)
        self._builder.flush()

    def starts(self, start: StartCommand, member: WorkerHandle) -> None:
        """Record that a command is assigned to a worker."""
        self._builder.members[start.item] = member.holder, member.pid
        self._projector.start(start)

    def record_use(self, ended: Sequence[Conclusion], used: Sequence[Used]) -> None:
        """Record the resource use of ended attempts. Call this before their end is handled."""
        self._builder.used.update({(one.item, one.round): each for one, each in zip(ended, used, strict=False)})

    def handled(self, event: CommandEvent) -> None:
        """Emit the events that follow from a scheduler event. Call this after the actions of the event are executed."""
        self._builder.emit_all(self._projector.effects(event))

    def turned(self) -> None:
        """Finish a turn: emit a progress event if one is due, save durations if due, and write the events."""
        now = self._running_ns()
        if now >= self._next_progress_ns and (self._conductor.running or self._conductor.closed_pools):
            self._emit_progress(now)
        if self._estimator is not None and now - self._saved_ns >= _SAVE_SECONDS * 1e9:
            self._saved_ns = now
            self._estimator.save()
        looks = now - self._looked_ns >= _LOOK_SECONDS * 1e9
        if looks:
            self._looked_ns = now
        self._builder.flush(looks=looks)

    def _emit_progress(self, now_ns: int) -> None:
        if self._estimator is not None:
            waiting = self._projector.waiting
            forecast = self._estimator.forecast(self._conductor.agenda, waiting, self._builder.running_seconds())
            self._forecast = None if forecast is None else (forecast, now_ns)
        self._builder.progress(self.eta)
        elapsed_ns = self._running_ns() - now_ns
        self._next_progress_ns = now_ns + max(round(PROGRESS_SECONDS * 1e9), _INTERVAL_FACTOR * elapsed_ns)

    @property
    def eta(self) -> Eta | None:
        """The estimated remaining time: the last forecast minus the time since then."""
        if self._forecast is None:
            return None
        forecast, at_ns = self._forecast
        past = (self._running_ns() - at_ns) / 1e9
        low, middle, high = (max(0.0, round(each - past, 1)) for each in (forecast.low, forecast.middle, forecast.high))
        return Eta((low, middle, high), forecast.unknown)

    def record_drain(self, reason: str) -> None:
        """Record the name of the signal for which the batch drains."""
        self._signal = reason

    def end(self, how: Complete | Drained | Break | None, why: str = "") -> None:
        """Emit the last event. `why` is the error for which the coordinator leaves, or empty."""
        self._builder.emit_all(self._projector.remaining())
        if isinstance(how, Complete) and self._conductor.verdict().is_final:
            self._builder.end()
        else:
            self._builder.emit(events.BatchDrained, signal=self._signal, error="" if self._signal else why)
        self._builder.finish()

    def close(self) -> None:
        """Close the event file."""
        self._builder.close()
