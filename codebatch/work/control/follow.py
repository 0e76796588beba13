"""Following a batch from anywhere: what is told of it, and whether anybody is at work on it.

A work batch has its stream of events; where each command stands follows from the disk all the same, be the stream gone.
Of an analysis one is made up (operations/runs/events.py). Nobody who is followed notices.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Protocol

from codebatch.errors import InvalidInput
from codebatch.model.work.event import BEGINNING, AnyEvent, BatchDrained, BatchEnded, Cursor, parse_cursor
from codebatch.operations.runs.events import AnalysisFollowed, Seen
from codebatch.scheduling.lifecycle import CommandState
from codebatch.store.batches.batches import BatchDir, is_work
from codebatch.store.batches.holders import LeaseReader
from codebatch.store.batches.store import StoreDir
from codebatch.store.work.events import EventReader
from codebatch.work.control.batches import load_work_batch

POLL_SECONDS = 0.1
LOOK_SECONDS = 1.0
_SILENCE_SECONDS = 12.0
"""Without an event for so long, of who tells one each 5 s, what stands is looked at on disk."""
_SHARE = 20
"""Of the time that passes, looks at all of the disk take a part of so many at most."""


class Followed(Protocol):
    """A batch that is followed."""

    def read(self) -> list[AnyEvent]:
        """What was told since."""

    def look(self, *, closely: bool) -> Seen:
        """Who is at work on it; `closely`: and where it stands, though somebody conducts it."""


def cursor_of(text: str | None) -> Cursor:
    """The place that is named; the beginning where none is. Raises InvalidInput."""
    found = BEGINNING if text is None else parse_cursor(text)
    if found is None:
        raise InvalidInput(f"{text!r} is not a cursor", hint="use the `cursor` of an event, for example 1.42")
    return found


def followed_of(store: StoreDir, batch: BatchDir, since: Cursor = BEGINNING) -> Followed:
    """A batch of either kind, from a place in its stream on. Raises StoreCorrupt."""
    return WorkFollowed(store, batch, since) if is_work(batch) else AnalysisFollowed(batch, since)


def iter_followed(
    followed: Followed, *, keeps: bool = False, sleep: Callable[[float], None] = time.sleep
) -> Iterator[AnyEvent | Seen | None]:
    """What is told of a batch as it comes, and now and then who is at work on it; None ten times a second besides.

    The last is who was at work when it was over, or, unless it `keeps` on, when nobody was any more. Raises
    CollectedMeanwhile, StoreCorrupt.
    """
    now = heard_at = time.monotonic()
    next_look = 0.0
    was_nobody = False
    last: AnyEvent | None = None
    while True:
        found = followed.read()
        yield from found
        now = time.monotonic()
        heard_at = now if found else heard_at
        last = found[-1] if found else last
        if (found and isinstance(last, BatchEnded | BatchDrained)) or now >= next_look:
            seen = followed.look(closely=now - heard_at > _SILENCE_SECONDS)
            next_look = now + max(LOOK_SECONDS, _SHARE * (time.monotonic() - now))
            is_nobody = not seen.is_conducted and not seen.alone
            is_sure = was_nobody or (seen.is_over and isinstance(last, BatchEnded))
            if is_nobody and is_sure and (seen.is_over or not keeps):
                yield from followed.read()
                yield seen
                return
            if is_nobody:  # So it is for an instant between two leases, or before the end is told: look again.
                next_look = min(next_look, now + LOOK_SECONDS / 2)
            was_nobody = is_nobody
            yield seen
        yield None
        sleep(POLL_SECONDS)


class WorkFollowed:
    """Implements Followed."""

    def __init__(self, store: StoreDir, batch: BatchDir, since: Cursor) -> None:
        self._store = store
        self._batch = batch
        self._reader = EventReader(batch.files, batch.root, since)
        self._leases = LeaseReader(batch.files, batch.root)

    def read(self) -> list[AnyEvent]:
        return self._reader.read()

    def look(self, *, closely: bool) -> Seen:
        if not closely and self._leases.leader()[1] is not None:
            return Seen(is_conducted=True)
        found = load_work_batch(self._store, self._batch)
        stands = found.standing
        if stands.coordinator is not None:
            return Seen(is_conducted=True, counts=stands.counts)
        return Seen(
            is_conducted=False,
            is_over=stands.state.is_final and not stands.workers,
            alone=len(found.of(CommandState.RUNNING)),
            counts=stands.counts,
            shortfall=found.shortfall,
        )
