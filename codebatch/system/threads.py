"""A thread pool with the part of concurrent.futures that is needed here, which imports faster."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Generic, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")


class ThreadCall(Generic[T]):
    """A call that is made in a thread, and its result."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._error: BaseException | None = None
        self._pending = threading.Lock()
        self._pending.acquire()

    def make(self) -> None:
        """Make the call. Called once, in the thread of the pool."""
        try:
            self._result = self._function()
        except BaseException as error:
            self._error = error
        finally:
            self._pending.release()

    def result(self) -> T:
        """Wait for the call and return its result or raise its exception. Waits forever for a dropped call."""
        with self._pending:
            if self._error is not None:
                raise self._error
            return self._result


class Threads:
    """A pool of at most `limit` threads, started as calls are submitted. They end with the process or by `end`.

    If the system refuses to start the first thread, the caller of `submit` makes the call. As a context manager, the
    pool finishes all calls on exit.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._calls: SimpleQueue[ThreadCall[object] | None] = SimpleQueue()
        self._started: list[threading.Thread] = []

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: TracebackType | None) -> None:
        self.end()

    def submit(self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> ThreadCall[T]:
        """Queue a call. Calls start in the order of submission."""
        call = ThreadCall(lambda: function(*arguments, **options))
        self._calls.put(cast("ThreadCall[object]", call))
        if len(self._started) < self._limit:
            thread = threading.Thread(target=self._work, daemon=True)
            try:
                thread.start()
                self._started.append(thread)
            except RuntimeError:
                if not self._started:
                    self.drop()
                    call.make()
        return call

    def drop(self) -> None:
        """Discard all calls that have not started."""
        try:
            while True:
                self._calls.get_nowait()
        except Empty:
            pass

    def end(self) -> None:
        """Wait for all calls, then end the threads."""
        for _ in self._started:
            self._calls.put(None)
        for thread in self._started:
            thread.join()
        self._started.clear()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call.make()
