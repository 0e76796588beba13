"""Watchers of a batch whose event files a test writes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from codebatch.model.work.event import AnyEvent, EventCursor
from codebatch.serve.watcher import BatchWatcher
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.work.control.event_feed import EventFeed
from tests.serve.event_files import EventFiles

PATIENCE_SECONDS = 20.0
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Stream:
    """A batch of a task list whose event files a test writes."""

    store: StoreDir
    batch: BatchDir

    @property
    def files(self) -> EventFiles:
        """The event files."""
        return EventFiles(self.batch.root)


def run(work: Callable[[], Awaitable[Result]]) -> Result:
    """Run a coroutine, which must end in time."""

    async def limited() -> Result:
        return await asyncio.wait_for(work(), PATIENCE_SECONDS)

    return asyncio.run(limited())


@contextmanager
def watching(stream: Stream) -> Iterator[BatchWatcher]:
    """Watch a batch."""
    before = {*threading.enumerate()}
    opened = BatchWatcher(stream.store, stream.batch, asyncio.get_running_loop())
    started = {*threading.enumerate()} - before
    try:
        yield opened
    finally:
        opened.stop()
        for thread in started:
            thread.join(PATIENCE_SECONDS)  # It opens files, which other tests in this process would notice.


async def until_newest(opened: BatchWatcher, cursor: EventCursor) -> None:
    """Wait until a watcher has read an event, or a later one."""
    while opened.newest < cursor:
        assert opened.error is None
        await opened.wait(0.05)


class CountingFeed(EventFeed):
    """A feed that counts how often it found no events."""

    empty_reads = 0

    def read(self, limit: int | None = None) -> list[AnyEvent]:
        """Return new events."""
        events = super().read(limit)
        CountingFeed.empty_reads += not events
        return events


async def until_files_were_read(opened: BatchWatcher) -> None:
    """Wait until a watcher has read the files once more. It notices a cut only while the file is shorter than before.

    A read may have begun before this call, so the watcher must find nothing new twice.
    """
    before = CountingFeed.empty_reads
    while CountingFeed.empty_reads < before + 2:
        assert opened.error is None
        await asyncio.sleep(0.01)
