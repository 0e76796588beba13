"""Following a batch from any process. A follower returns the events of the batch, and whether a process runs the batch.

The events of a work batch are read from its event stream. The states of commands are also read from disk, because the
stream may be missing. The events of an analysis are derived from its files (operations/runs/events.py). A follower does
not affect the batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Protocol

from codebatch.errors import InvalidInput, UnknownCursor
from codebatch.model.work.event import (
    FIRST_CURSOR,
    AnyEvent,
    BatchDrained,
    BatchEnded,
    BatchNotified,
    EventCursor,
    parse_cursor,
)
from codebatch.operations.runs.events import AnalysisFollower, BatchActivity
from codebatch.scheduling.lifecycle import CommandState
from codebatch.store.batches.batch_directory import BatchDir, check_batch_exists, is_work
from codebatch.store.batches.holders import LeaseReader
from codebatch.store.batches.progress_cells import silent_since_ns
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.work.events import EventReader
from codebatch.work.control.batches import load_work_batch

POLL_SECONDS = 0.1
ACTIVITY_CHECK_SECONDS = 1.0
_SILENCE_SECONDS_MAX = 12.0
"""Seconds without events after which the states are read from disk.

A coordinator writes an event at least every 5 s, so it is then probably dead.
"""
_READING_TIME_SHARE = 20
"""Reading the states takes at most 1/_SHARE of the time of a follower."""


class BatchFollower(Protocol):
    """The interface to a batch that is followed: a task list or an analysis."""

    def read(self, limit: int | None = None) -> list[AnyEvent]:
        """Return the events since the last call, but at most `limit` of them."""

    def read_activity(self, *, closely: bool) -> BatchActivity:
        """Return whether processes run the batch.

        If a coordinator is alive, the counts of the batch are read only with `closely`.
        """


def read_cursor(text: str | None, store: StoreDir, batch: BatchDir) -> EventCursor:
    """Return the position in the events of a batch that a text names. For None, return the beginning.

    Raises UnknownCursor if the batch has no event at the position, and the errors of `parse_batch_cursor`.
    """
    place = parse_batch_cursor(text, batch)
    check_cursor(place, store, batch)
    return place


def parse_batch_cursor(text: str | None, batch: BatchDir) -> EventCursor:
    """Return the position that a text names. The events are not read.

    Raises InvalidInput if it is not a cursor, and UnknownCursor if it is that of another batch.
    """
    if text is None:
        return FIRST_CURSOR
    parsed = parse_cursor(text)
    if parsed is None:
        raise InvalidInput(f"{text[:200]!r} is not a cursor", hint=f"use the `cursor` of an event: {batch.id}:1.42")
    id_, place = parsed
    if id_ != batch.id:
        hint = f"to read the events of that batch, add: --batch {id_}"
        raise UnknownCursor(f"cursor {text} belongs to another batch than {batch.id}", hint=hint)
    return place


def check_cursor(place: EventCursor, store: StoreDir, batch: BatchDir, newest: EventCursor = FIRST_CURSOR) -> None:
    """Raise UnknownCursor if a position is after all events of a batch, at least one of which is at `newest`."""
    if place > newest and not make_follower(store, batch, EventCursor(place.epoch, place.seq - 1)).read(1):
        hint = "read all its events, without a cursor"
        raise UnknownCursor(f"batch {batch.id} has no event {place}: it was never written, or was removed", hint=hint)


def make_follower(store: StoreDir, batch: BatchDir, since: EventCursor = FIRST_CURSOR) -> BatchFollower:
    """Return a follower of a batch. It yields the events after the cursor `since`. Raises StoreCorrupt."""
    return WorkFollower(store, batch, since) if is_work(batch) else AnalysisFollower(store, batch, since)


def iter_followed_events(
    followed: BatchFollower, *, keeps: bool = False, sleep: Callable[[float], None] = time.sleep
) -> Iterator[AnyEvent | BatchActivity | None]:
    """Yield the events of a batch as they appear, a BatchActivity at intervals, and None after each poll.

    The last value is a BatchActivity. It is yielded when the batch has ended or, unless `keeps` is set, when no process
    runs the batch. Raises CollectedMeanwhile, StoreCorrupt.
    """
    now = last_event_at = time.monotonic()
    next_look = 0.0
    was_idle = False
    last: AnyEvent | None = None
    while True:
        events = followed.read()
        yield from events
        now = time.monotonic()
        last_event_at = now if events else last_event_at
        last = next((event for event in reversed(events) if not isinstance(event, BatchNotified)), last)
        if (events and isinstance(last, BatchEnded | BatchDrained)) or now >= next_look:
            activity = followed.read_activity(closely=now - last_event_at > _SILENCE_SECONDS_MAX)
            next_look = now + max(ACTIVITY_CHECK_SECONDS, _READING_TIME_SHARE * (time.monotonic() - now))
            is_idle = not activity.is_conducted and not activity.orphaned_commands
            is_sure = was_idle or (activity.is_over and isinstance(last, BatchEnded))
            if is_idle and is_sure and (activity.is_over or not keeps):
                yield from followed.read()
                yield activity
                return
            # This is also true for a short time between two leases, and before the last event is written. So check
            # again soon.
            if is_idle:
                next_look = min(next_look, now + ACTIVITY_CHECK_SECONDS / 2)
            was_idle = is_idle
            yield activity
        yield None
        sleep(POLL_SECONDS)


class WorkFollower:
    """The follower of a work batch. It implements BatchFollower."""

    def __init__(self, store: StoreDir, batch: BatchDir, since: EventCursor) -> None:
        self._store = store
        self._batch = batch
        self._reader = EventReader(batch.files, batch.root, since)
        self._leases = LeaseReader(batch.files, batch.root)

    def read(self, limit: int | None = None) -> list[AnyEvent]:
        events = self._reader.read(limit)
        if not events:
            check_batch_exists(self._batch.files, self._batch.root)
        return events

    def read_activity(self, *, closely: bool) -> BatchActivity:
        if not closely and (leader := self._leases.read_leader()[1]) is not None:
            return BatchActivity(is_conducted=True, silent_since_ns=silent_since_ns(self._batch, leader))
        work_batch = load_work_batch(self._store, self._batch)
        status = work_batch.standing
        if status.coordinator is not None:
            return BatchActivity(is_conducted=True, silent_since_ns=status.silent_since_ns, counts=status.counts)
        return BatchActivity(
            is_conducted=False,
            is_over=status.state.is_final and not status.workers,
            orphaned_commands=len(work_batch.commands_in(CommandState.RUNNING)),
            counts=status.counts,
            shortfall=work_batch.shortfall,
        )
