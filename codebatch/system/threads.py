"""Calls in other threads: as much of concurrent.futures as is needed, which takes 12 ms to import."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Generic, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")


class ThreadCall(Generic[T]):
    """A call that a thread makes, or has made."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._error: BaseException | None = None
        self._pending = threading.Lock()
        self._pending.acquire()

    def make(self) -> None:
        """Make it, in the thread that is to."""
        try:
            self._result = self._function()
        except BaseException as error:
            self._error = error
        finally:
            self._pending.release()

    def result(self) -> T:
        """What it returned, once it has. Raises what it raised. Not to be asked of one that was dropped."""
        with self._pending:
            if self._error is not None:
                raise self._error
            return self._result


class Threads:
    """At most this many threads, started as there are calls for them; they end with the process, or by `end`.

    Where the system grants none, who submits a call makes it.

    As a context manager it makes every call before it ends.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._calls: SimpleQueue[ThreadCall[object] | None] = SimpleQueue()
        self._started: list[threading.Thread] = []

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: TracebackType | None) -> None:
        self.end()

    def submit(self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> ThreadCall[T]:
        """Have a call made, in the order of submission."""
        call = ThreadCall(lambda: function(*arguments, **options))
        self._calls.put(cast("ThreadCall[object]", call))
        if len(self._started) < self._most:
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
        """Make no call that has not begun."""
        try:
            while True:
                self._calls.get_nowait()
        except Empty:
            pass

    def end(self) -> None:
        """Wait until all calls are made, and end the threads."""
        for _ in self._started:
            self._calls.put(None)
        for thread in self._started:
            thread.join()
        self._started.clear()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call.make()
