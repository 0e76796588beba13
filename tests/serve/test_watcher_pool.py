"""The pool of watchers: when a watcher starts, is shared, and ends."""

from __future__ import annotations

import asyncio

from codebatch.serve.watcher import LINGER_SECONDS, WatcherPool
from tests.serve.watching import Stream, run


class ManualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock a test advances."""

    now = 0.0

    def time(self) -> float:
        """Return the time of the test."""
        return self.now


def test_watcher_ends_some_time_after_its_last_client(stream: Stream) -> None:
    loop = ManualLoop()
    pool = WatcherPool(stream.store)

    async def advance(seconds: float) -> None:
        loop.now += seconds
        for _ in range(3):  # The loop runs what is due in its next round.
            await asyncio.sleep(0)

    async def look() -> None:
        with pool.watch(stream.batch) as first, pool.watch(stream.batch) as second:
            assert first is second
        for _ in range(3):
            await advance(LINGER_SECONDS - 0.1)
            with pool.watch(stream.batch) as again:
                assert again is first, "a client that comes back in time finds the same watcher"
                await advance(2 * LINGER_SECONDS)
        await advance(LINGER_SECONDS - 0.1)
        assert not first._is_stopped.is_set()
        await advance(0.2)
        assert first._is_stopped.is_set()
        with pool.watch(stream.batch) as new:
            assert new is not first
        pool.stop_all()
        assert new._is_stopped.is_set()

    try:
        loop.run_until_complete(look())
    finally:
        loop.close()


def test_watcher_that_failed_is_replaced(stream: Stream) -> None:
    async def look() -> None:
        pool = WatcherPool(stream.store)
        with pool.watch(stream.batch) as first:
            first.error = OSError()
            with pool.watch(stream.batch) as second:
                assert second is not first
        first.stop()
        pool.stop_all()

    run(look)
