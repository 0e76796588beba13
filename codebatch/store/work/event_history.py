"""What earlier coordinators of a work batch told: read by the next one, so that each end is told once."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from typing import Literal

from codebatch.errors import StoreError
from codebatch.model.outcome import Used
from codebatch.model.work import event as events
from codebatch.scheduling.work.event_projection import EmittedEvents
from codebatch.store.batches import journal
from codebatch.store.batches.batches import BatchDir
from codebatch.store.work.attempts import CommandPlaces
from codebatch.store.work.events import EventReader

_ENDS = (
    events.TaskCompleted,
    events.TaskFailed,
    events.TaskRetrying,
    events.TaskBlocked,
    events.TaskCancelled,
)

_REQUESTED = (
    events.TaskAnswered,
    events.BatchPaused,
    events.BatchUnpaused,
    events.BatchChanged,
    events.BatchStopped,
)


class ToldBefore:
    """What was told by coordinators before an epoch. `started`: when each (item, round) was told to have begun."""

    def __init__(self, batch: BatchDir, epoch: int, items: Mapping[str, int]) -> None:
        """`items` are the commands' by their ids. What cannot be read was not told."""
        self.told = EmittedEvents()
        self.started: dict[tuple[int, int], str] = {}
        self.last: events.AnyEvent | None = None
        self._spans: dict[int, tuple[int, int]] = {}
        self._items = items
        found: list[events.AnyEvent] = []
        with contextlib.suppress(StoreError, OSError):
            found = EventReader(batch.files, batch.root).read()
        for event in found:
            if event.place.epoch < epoch:
                self.last = event
                at_ns = events.instant_ns(event.at)
                self._spans[event.place.epoch] = self._spans.get(event.place.epoch, (at_ns, at_ns))[0], at_ns
                self._note(event)

    @property
    def seconds(self) -> float:
        """How long the batch was conducted, from the first to the last event of each who did."""
        return sum(max(0, last - first) for first, last in self._spans.values()) / 1e9

    @property
    def left_by(self) -> Literal["kill", "drain", "request"]:
        """How the last coordinator came to its end."""
        if isinstance(self.last, events.BatchDrained):
            return "drain"
        return "request" if isinstance(self.last, events.BatchEnded) else "kill"

    def _note(self, event: events.AnyEvent) -> None:
        told = self.told
        if isinstance(event, events.BatchStarted | events.BatchResumed):
            told.requests = max(told.requests, event.requests)
        elif isinstance(event, _REQUESTED):
            told.requests = max(told.requests, event.request)
        if isinstance(event, events.TaskEvent) and (item := self._items.get(event.task)) is not None:
            self._note_task(event, item)

    def _note_task(self, event: events.TaskEvent, item: int) -> None:
        told, place = self.told, (item, event.round)
        if isinstance(event, events.TaskSkipped):
            told.skipped.add(item)
        elif isinstance(event, events.TaskQueued):
            told.queued.add(place)
            told.skipped.discard(item)
        elif isinstance(event, events.TaskStarted):
            self.started[place] = event.at
        elif isinstance(event, events.TaskInterrupted | events.TaskStopped):
            told.interrupted.add((item, event.epoch))
        elif isinstance(event, events.TaskBlocked) and event.is_live:
            told.asked.add(event.question.digest)
        elif is_counted(event):
            told.counted.add(place)
        elif is_end(event):
            told.ends.add(place)
            if isinstance(event, events.TaskBlocked):
                told.blocked.add(place)


def is_counted(event: events.TaskEvent) -> bool:
    """Whether an event is of a command that counts as ended for a request, and of no attempt's end."""
    if isinstance(event, events.TaskFailed):
        return event.reason == "answer"
    return isinstance(event, events.TaskCompleted) and event.marked_done


def is_end(event: events.TaskEvent) -> bool:
    """Whether an event is of an attempt's end."""
    if isinstance(event, events.TaskBlocked) and event.is_live:
        return False
    return isinstance(event, _ENDS) and not is_counted(event)


def used_by_the_journals(
    batch: BatchDir, places: CommandPlaces, wanted: Collection[tuple[int, int]]
) -> dict[tuple[int, int], Used]:
    """What attempts took, by (item, round), as far as workers wrote it down."""
    found: dict[tuple[int, int], Used] = {}
    lines: list[journal.JournalLine] = []
    with contextlib.suppress(StoreError, OSError):
        lines = journal.read_journal(batch.files, batch.root)
    for line in lines:
        ran = line.event
        item = places.item(ran.shard, ran.start) if isinstance(ran, journal.Ran) else None
        if isinstance(ran, journal.Ran) and item is not None and (item, ran.round) in wanted:
            used = Used(seconds=ran.seconds, cpu_seconds=ran.cpu_seconds, memory_peak_bytes=ran.memory_peak_bytes)
            found[item, ran.round] = used
    return found
