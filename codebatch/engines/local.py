"""The engine `local:N`: N processes on this machine. It is also the example for authors of engines."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from typing import NoReturn, ParamSpec, TypeVar

from codebatch.coordinator.engines.interface import Engine, EngineReply, RunPart
from codebatch.engines.opening import EngineOptions, reject_tls_files
from codebatch.engines.probes import call_each_process
from codebatch.errors import InvalidInput

SLOTS_MAX = 1_000

_CLEANUP_SECONDS = 5.0
"""The time limit for a call to end, and to remove its temporary files, when the pool ends."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class LocalEngine:
    """A pool of processes on this machine."""

    cores_per_slot = 1

    def __init__(self, slots: int) -> None:
        self.name = f"local:{slots}"
        self._slots = slots
        self._executor = RestartingPool(slots)

    @property
    def executor(self) -> Executor:
        """The executor. If a process of the pool dies, all its calls end with BrokenProcessPool."""
        return self._executor

    def slots(self) -> int:
        """Return the number of processes."""
        return self._slots

    def is_alive(self) -> bool:
        """Return whether the engine is open."""
        return self._executor.is_open

    def call_everywhere(self, function: RunPart, argument: bytes, seconds: float) -> list[EngineReply]:
        """Call a function in each process of the pool, and return the replies, sorted by process."""
        return call_each_process(self._executor, self._slots, function, argument, seconds)

    def close(self) -> None:
        """End all processes. The futures of running calls end with BrokenProcessPool."""
        self._executor.shutdown(wait=False, cancel_futures=True)


class RestartingPool(Executor):
    """A pool of processes that is replaced after the death of one of its processes.

    The processes end with the pool, also if they run a call, and if this process is killed. For this purpose, each
    waits for the end of a pipe, whose other end is only open in this process.
    """

    def __init__(self, slots: int) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._slots = slots
        self._lock = threading.Lock()
        self.is_open = True
        self._start()

    def _start(self) -> None:
        reader, self._lifeline = self._context.Pipe(duplex=False)
        with _in_root_directory():
            self._pool = ProcessPoolExecutor(
                self._slots, mp_context=self._context, initializer=_start_process, initargs=(reader,)
            )

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Submit a call. If the pool is broken, a new one is started first."""
        call = partial(fn, *args, **kwargs)
        with self._lock:
            try:
                return self._submit(call)
            except BrokenProcessPool:
                self._end(wait=False, cancel_futures=False)
                self._start()
                return self._submit(call)

    def _submit(self, call: Callable[[], _T]) -> Future[_T]:
        with _in_root_directory():
            return self._pool.submit(_call, call)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes: after their calls if `wait`, otherwise at once."""
        with self._lock:
            self.is_open = False
            self._end(wait=wait, cancel_futures=cancel_futures)

    def _end(self, *, wait: bool, cancel_futures: bool) -> None:
        if not wait:
            self._lifeline.close()
        # Without the end of its processes, the pool would leave semaphores behind if this process exits now.
        self._pool.shutdown(wait=True, cancel_futures=cancel_futures)
        self._lifeline.close()


def open_engine(target: str, options: EngineOptions) -> Engine:
    """Return the engine with the number of processes in `target`. Raises InvalidInput."""
    reject_tls_files("local", options)
    if not re.fullmatch("[0-9]{1,4}", target) or not 1 <= int(target) <= SLOTS_MAX:
        raise InvalidInput(
            f"'local:{target}' is not valid: {target!r} is not a number from 1 to {SLOTS_MAX:,}",
            hint="give the number of processes, such as local:2",
        )
    return LocalEngine(int(target))


@contextmanager
def _in_root_directory() -> Iterator[None]:
    """Work in the root directory for a moment.

    New processes of Python import modules from their current directory first. It may be the analysed tree, whose code
    must not run.
    """
    descriptor = os.open(".", getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY)
    try:
        os.chdir("/")
        yield
    finally:
        os.fchdir(descriptor)
        os.close(descriptor)


def _start_process(lifeline: Connection) -> None:
    # Ctrl-C goes to the whole process group. The coordinator handles it, and ends the pool.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end_call)
    threading.Thread(target=_exit_with_pool, args=(lifeline,), daemon=True).start()


def _exit_with_pool(lifeline: Connection) -> None:
    lifeline.poll(None)
    # A process that ends while it waits for a call would print an exception.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_CLEANUP_SECONDS)
    os._exit(0)


def _end_call(*_: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit()


def _call(call: Callable[[], _T]) -> _T:
    try:
        return call()
    except SystemExit:  # The call has removed its temporary files. The pool would return the exception instead.
        os._exit(0)
