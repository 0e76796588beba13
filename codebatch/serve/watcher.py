"""Watchers: one for each batch that clients look at. A watcher reads its batch once for all clients.

A watcher is a thread. It reads new events ten times a second, keeps the latest as encoded JSON, and wakes the clients.
It derives the status of the batch only when a client asks for it. It ends some seconds after its last client.
"""

from __future__ import annotations

import asyncio
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import anyio
import msgspec

from codebatch.errors import CodebatchError
from codebatch.model.work.event import FIRST_CURSOR, EventCursor, cursor_text
from codebatch.operations.queries.batch_status import StatusAnswer, make_status_answer
from codebatch.serve.bodies import ProgressFrame
from codebatch.store.batches.batch_directory import BatchDir, is_work
from codebatch.store.batches.store_directory import StoreDir
from codebatch.work.control.batches import WorkBatch, load_work_batch
from codebatch.work.control.event_feed import EventFeed
from codebatch.work.control.follow import POLL_SECONDS
from codebatch.work.control.status import WorkStatus, make_work_status

FRAME_EVENTS_MAX = 500
CATCHING_UP_SECONDS_MAX = 10.0
LINGER_SECONDS = 10.0
"""The time after its last client for which a watcher continues, because pages reconnect."""
KEPT_BYTES_MAX = 32 * 1024 * 1024
"""Number of bytes of encoded events that a watcher keeps. Older events are read from disk."""
READING_SECONDS_MIN = 1.0
_READING_TIME_SHARE = 20
"""The status and the progress are read at most once a second, and for at most 1/20 of the time."""


@dataclass(frozen=True)
class Frame:
    """Events of a batch in order, each as encoded JSON, and the position after the last of them."""

    batch_id: str
    events: list[bytes]
    cursor: EventCursor

    def encode(self) -> bytes:
        """Return the frame as a JSON document."""
        cursor = cursor_text(self.batch_id, self.cursor).encode()
        return b'{"events":[%b],"cursor":"%b"}' % (b",".join(self.events), cursor)


@dataclass(frozen=True)
class DerivedStatus:
    """The status of a batch at a time, and the position in the event stream before it was read.

    `work_batch` is the batch that `document` describes, or None for an analysis.
    """

    cursor: EventCursor
    document: WorkStatus | StatusAnswer
    work_batch: WorkBatch | None


class BatchWatcher:
    """The watcher of a batch. Clients call its coroutines in the event loop `loop`, which it wakes.

    `error` is the error that ended it, or None. `newest` is the cursor after the last event that was read, `kept_after`
    that before the oldest event that is kept.
    """

    def __init__(self, store: StoreDir, batch: BatchDir, loop: asyncio.AbstractEventLoop) -> None:
        """Start the thread."""
        self.batch = batch
        self.error: Exception | None = None
        self.progress = b""
        self._store = store
        self._loop = loop
        self._changed = asyncio.Event()
        self._is_stopped = threading.Event()
        self._caught_up = threading.Event()
        self._lock = threading.Lock()
        self._events: list[bytes] = []
        self._cursors: list[EventCursor] = []
        self._kept_bytes = 0
        self.kept_after = self.newest = FIRST_CURSOR
        self._status_lock = threading.Lock()
        self._status: DerivedStatus | None = None
        self._next_status_at = self._next_progress_at = 0.0
        threading.Thread(target=self._run, name=f"watch {batch.id}", daemon=True).start()

    def stop(self) -> None:
        """Let the thread end soon."""
        self._is_stopped.set()

    @property
    def has_caught_up(self) -> bool:
        """Whether all events that existed when the watcher started have been read, or can no longer be read."""
        return self._caught_up.is_set()

    def wait_until_caught_up(self) -> None:
        """Wait for `has_caught_up` in a thread, but not longer than a client would wait."""
        self._caught_up.wait(CATCHING_UP_SECONDS_MAX)

    async def wait(self, seconds: float) -> None:
        """Wait until there is something new for clients, at most for some seconds."""
        # `asyncio.wait_for` of Python 3.11 loses a cancellation that comes together with the event.
        with anyio.move_on_after(seconds):
            await self._changed.wait()

    def frame_after(self, since: EventCursor, limit: int = FRAME_EVENTS_MAX) -> Frame | None:
        """Return the first events after a cursor, at most `limit`, or None if some of these are no longer kept.

        If there are no events yet, return a frame without events.
        """
        with self._lock:
            if since < self.kept_after:
                return None
            start = bisect_right(self._cursors, since)
            events = self._events[start : start + limit]
            return Frame(self.batch.id, events, self._cursors[start + len(events) - 1] if events else since)

    def count_after(self, since: EventCursor) -> int:
        """Return the number of kept events after a cursor."""
        with self._lock:
            return len(self._cursors) - bisect_right(self._cursors, since)

    def read_status(self) -> DerivedStatus:
        """Return the status of the batch, which is derived again if it may have changed. This can take a second.

        Raises CodebatchError.
        """
        # Without the cursor of the present, a client would receive the whole history as new events.
        self.wait_until_caught_up()
        with self._status_lock:
            if self._status is None or time.monotonic() >= self._next_status_at:
                began = time.monotonic()
                cursor = self.newest
                if is_work(self.batch):
                    self._keep_status(cursor, load_work_batch(self._store, self.batch))
                else:
                    self._status = DerivedStatus(cursor, make_status_answer(self._store, self.batch), None)
                self._next_status_at = _next_reading_at(began)
            assert self._status is not None
            return self._status

    def put_status(self, cursor: EventCursor, work_batch: WorkBatch) -> DerivedStatus:
        """Replace the status by a newer one, which a request returned. `cursor` is from before the request."""
        with self._status_lock:
            return self._keep_status(cursor, work_batch)

    def _keep_status(self, cursor: EventCursor, work_batch: WorkBatch) -> DerivedStatus:
        self._status = DerivedStatus(cursor, make_work_status(work_batch), work_batch)
        return self._status

    def _run(self) -> None:
        try:
            feed = EventFeed(self._store, self.batch, FIRST_CURSOR)
            while not self._is_stopped.is_set():
                while not self._is_stopped.is_set() and self._read_events(feed):
                    pass
                if not self.has_caught_up:
                    self._caught_up.set()
                    self._wake()
                if not is_work(self.batch) and time.monotonic() >= self._next_progress_at:
                    self._read_progress(feed)
                self._is_stopped.wait(POLL_SECONDS)
        except (CodebatchError, OSError) as error:  # The clients report it.
            self.error = error
            self._caught_up.set()
            self._wake()

    def _read_events(self, feed: EventFeed) -> bool:
        """Read some new events. Return whether there were any."""
        events = feed.read(FRAME_EVENTS_MAX)
        if not events:
            return False
        encoded = list(map(msgspec.json.encode, events))
        with self._lock:
            self._events += encoded
            self._cursors += [event.place for event in events]
            self._kept_bytes += sum(map(len, encoded))
            self.newest = self._cursors[-1]
            if self._kept_bytes > KEPT_BYTES_MAX:
                self._drop_oldest()
        self._wake()
        return True

    def _drop_oldest(self) -> None:
        """Drop the older half of the events, so that dropping them costs little for each."""
        count = len(self._events) // 2 or 1
        self._kept_bytes -= sum(map(len, self._events[:count]))
        self.kept_after = self._cursors[count - 1]
        del self._events[:count], self._cursors[:count]

    def _read_progress(self, feed: EventFeed) -> None:
        began = time.monotonic()
        progress = feed.progress()
        self._next_progress_at = _next_reading_at(began)
        if progress is None:
            return
        encoded = msgspec.json.encode(ProgressFrame(progress=progress))
        if encoded != self.progress:
            self.progress = encoded
            self._wake()

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._wake_clients)
        except RuntimeError:  # The server has ended, and its event loop is closed.
            self.stop()

    def _wake_clients(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def _next_reading_at(began: float) -> float:
    """Return the time before which nothing is read again that was read since `began`, on the monotonic clock."""
    now = time.monotonic()
    return now + max(READING_SECONDS_MIN, _READING_TIME_SHARE * (now - began))


class WatcherPool:
    """The watchers of a server. Its methods must be called in the event loop."""

    def __init__(self, store: StoreDir) -> None:
        self._store = store
        self._watchers: dict[str, BatchWatcher] = {}
        self._client_counts: dict[str, int] = {}
        self._stop_timers: dict[str, asyncio.TimerHandle] = {}

    @contextmanager
    def watch(self, batch: BatchDir) -> Iterator[BatchWatcher]:
        """Give a client the watcher of a batch, and start one if there is none."""
        watcher = self._watchers.get(batch.id)
        if watcher is None or watcher.error is not None:
            watcher = self._watchers[batch.id] = BatchWatcher(self._store, batch, asyncio.get_running_loop())
        self._client_counts[batch.id] = self._client_counts.get(batch.id, 0) + 1
        if (timer := self._stop_timers.pop(batch.id, None)) is not None:
            timer.cancel()
        try:
            yield watcher
        finally:
            self._client_counts[batch.id] -= 1
            if not self._client_counts[batch.id]:
                loop = asyncio.get_running_loop()
                self._stop_timers[batch.id] = loop.call_later(LINGER_SECONDS, self._stop, batch.id)

    def stop_all(self) -> None:
        """Stop all watchers, because the server ends."""
        for watcher in self._watchers.values():
            watcher.stop()

    def _stop(self, id_: str) -> None:
        """Stop the watcher of a batch, which has no client."""
        self._watchers.pop(id_).stop()
        del self._client_counts[id_], self._stop_timers[id_]
