"""Events of earlier coordinators of a work batch.

The next coordinator reads them, so that it does not emit the same event again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from typing import Literal

from codebatch.errors import StoreError
from codebatch.model.outcome import ResourceUsage
from codebatch.model.work import event as events
from codebatch.scheduling.work.event_projection import EmittedEvents
from codebatch.store.batches import journal
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.work.attempts import CommandPlaces
from codebatch.store.work.events import EventReader

_END_EVENTS = (
    events.TaskCompleted,
    events.TaskFailed,
    events.TaskRetrying,
    events.TaskBlocked,
    events.TaskCancelled,
)

_REQUEST_EVENTS = (
    events.TaskAnswered,
    events.BatchPaused,
    events.BatchUnpaused,
    events.BatchChanged,
    events.BatchStopped,
)


class PreviousEvents:
    """The events that earlier coordinators of a work batch have emitted: those with a lower epoch.

    `started` maps each (item, round) to the time at which its start was reported.
    """

    def __init__(self, batch: BatchDir, epoch: int, items: Mapping[str, int]) -> None:
        """Read the events of a batch. `items` maps command IDs to items. Unreadable events count as not emitted."""
        self.emitted_events = EmittedEvents()
        self.started: dict[tuple[int, int], str] = {}
        self.last: events.AnyEvent | None = None
        self._run_spans: dict[int, tuple[int, int]] = {}
        self._items = items
        events_: list[events.AnyEvent] = []
        with contextlib.suppress(StoreError, OSError):
            events_ = EventReader(batch.files, batch.root).read()
        for event in events_:
            # A notification can be recorded long after the end of the batch.
            if event.place.epoch < epoch and not isinstance(event, events.BatchNotified):
                self.last = event
                at_ns = events.instant_ns(event.at)
                self._run_spans[event.place.epoch] = self._run_spans.get(event.place.epoch, (at_ns, at_ns))[0], at_ns
                self._record_event(event)

    @property
    def total_seconds(self) -> float:
        """Total running time of the earlier coordinators in seconds, each from its first to its last event."""
        return sum(max(0, last - first) for first, last in self._run_spans.values()) / 1e9

    @property
    def ending_cause(self) -> Literal["kill", "drain", "request"]:
        """The reason why the last coordinator ended.

        - `kill`: it was killed.
        - `drain`: it stopped early, with tasks left.
        - `request`: the batch had ended. A later request has opened tasks again.
        """
        if isinstance(self.last, events.BatchDrained):
            return "drain"
        return "request" if isinstance(self.last, events.BatchEnded) else "kill"

    def _record_event(self, event: events.AnyEvent) -> None:
        emitted = self.emitted_events
        if isinstance(event, events.BatchStarted | events.BatchResumed):
            emitted.requests = max(emitted.requests, event.requests)
        elif isinstance(event, _REQUEST_EVENTS):
            emitted.requests = max(emitted.requests, event.request)
        if isinstance(event, events.TaskEvent) and (item := self._items.get(event.task)) is not None:
            self._record_task(event, item)

    def _record_task(self, event: events.TaskEvent, item: int) -> None:
        emitted, place = self.emitted_events, (item, event.round)
        if isinstance(event, events.TaskSkipped):
            emitted.skipped.add(item)
        elif isinstance(event, events.TaskQueued):
            emitted.queued.add(place)
            emitted.skipped.discard(item)
        elif isinstance(event, events.TaskStarted):
            self.started[place] = event.at
        elif isinstance(event, events.TaskInterrupted | events.TaskStopped):
            emitted.interrupted.add((item, event.epoch))
        elif isinstance(event, events.TaskBlocked) and event.is_live:
            emitted.questioned.add(event.question.digest)
        elif is_counted(event):
            emitted.counted.add(place)
        elif is_end(event):
            emitted.ends.add(place)
            if isinstance(event, events.TaskBlocked):
                emitted.blocked.add(place)


def is_counted(event: events.TaskEvent) -> bool:
    """Return whether a request or an answer, and not the end of an attempt, made a task failed or done."""
    if isinstance(event, events.TaskFailed):
        return event.reason == "answer"
    return isinstance(event, events.TaskCompleted) and event.marked_done


def is_end(event: events.TaskEvent) -> bool:
    """Return whether a TaskEvent reports the end of an attempt."""
    if isinstance(event, events.TaskBlocked) and event.is_live:
        return False
    return isinstance(event, _END_EVENTS) and not is_counted(event)


def read_journal_usage(
    batch: BatchDir, places: CommandPlaces, attempt_keys: Collection[tuple[int, int]]
) -> dict[tuple[int, int], ResourceUsage]:
    """Map attempts to their resource use, read from the journals. Attempts that are in no journal are omitted.

    `attempt_keys` are the requested attempts as (item, round).
    """
    used_by_attempt: dict[tuple[int, int], ResourceUsage] = {}
    lines: list[journal.JournalLine] = []
    with contextlib.suppress(StoreError, OSError):
        lines = journal.read_journal(batch.files, batch.root)
    for line in lines:
        attempt = line.event
        item = places.item_at_place(attempt.shard, attempt.start) if isinstance(attempt, journal.Ran) else None
        if isinstance(attempt, journal.Ran) and item is not None and (item, attempt.round) in attempt_keys:
            used = ResourceUsage(
                seconds=attempt.seconds, cpu_seconds=attempt.cpu_seconds, memory_peak_bytes=attempt.memory_peak_bytes
            )
            used_by_attempt[item, attempt.round] = used
    return used_by_attempt
