"""The engine `local:N`: N processes on this machine. It is also the example for authors of engines."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeVar

from codebatch.coordinator.engines.foreign_objects import RemoteError, describe_object, read_foreign
from codebatch.coordinator.engines.interface import Engine, EngineReply, RunPart
from codebatch.engines.local_process import ANSWER_HEADER
from codebatch.engines.opening import EngineOptions, reject_tls_files
from codebatch.engines.probes import call_each_process
from codebatch.errors import InvalidInput
from codebatch.system.processes.python_start import python_start

SLOTS_MAX = 1_000

_PROCESS_MODULE = "codebatch.engines.local_process"

_P = ParamSpec("_P")
_T = TypeVar("_T")


class LocalEngine:
    """A pool of processes on this machine."""

    cores_per_slot = 1

    def __init__(self, slots: int) -> None:
        self.name = f"local:{slots}"
        self._slots = slots
        self._executor = ProcessPool(slots)

    @property
    def executor(self) -> Executor:
        """The executor. If a process of the pool dies, its call ends with BrokenExecutor."""
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
        """End all processes. The futures of running calls end with BrokenExecutor."""
        self._executor.shutdown(wait=False, cancel_futures=True)


class ProcessPool(Executor):
    """A pool of processes, each with a thread of this process that waits for it. A process that dies is replaced.

    The processes end with the pool, also if they run a call, and if this process is killed.
    """

    def __init__(self, slots: int) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], bytes] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self.is_open = True
        self._threads = [threading.Thread(target=self._run_calls, daemon=True) for _ in range(slots)]
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Submit a call."""
        future: Future[_T] = Future()
        self._calls.put((future, pickle.dumps(partial(fn, *args, **kwargs))))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes: after their calls if `wait`, otherwise at once."""
        with suppress(Empty):
            while cancel_futures and (call := self._calls.get_nowait()) is not None:
                call[0].cancel()
        with self._lock:
            self.is_open = False
            if not wait:
                for process in self._processes:
                    process.terminate()
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join()

    def _run_calls(self) -> None:
        """Execute calls in a process that starts with the first call."""
        process: subprocess.Popen[bytes] | None = None
        while (call := self._calls.get()) is not None:
            future, request = call
            if not future.set_running_or_notify_cancel():
                continue
            try:
                process = process or self._start_process()
                future.set_result(_exchange(process, request))
            except BrokenExecutor as error:
                self._end_process(process)
                process = None
                future.set_exception(error)
            except Exception as error:
                future.set_exception(error)
        self._end_process(process)

    def _start_process(self) -> subprocess.Popen[bytes]:
        start = python_start(_PROCESS_MODULE, environment=os.environ)
        with self._lock:
            if not self.is_open:
                raise BrokenExecutor("the pool was closed")
            process = subprocess.Popen(
                start.arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=start.environment
            )
            self._processes.add(process)
        return process

    def _end_process(self, process: subprocess.Popen[bytes] | None) -> None:
        if process is not None:
            with self._lock:
                self._processes.discard(process)
            with suppress(BrokenPipeError):
                process.communicate()


def _exchange(process: subprocess.Popen[bytes], request: bytes) -> object:
    """Execute a call in a process, and return its result. Raises its exception, or BrokenExecutor at its death."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.write(request)
        process.stdin.flush()
    header = process.stdout.read(ANSWER_HEADER.size)
    is_raised, size = ANSWER_HEADER.unpack(header) if len(header) == ANSWER_HEADER.size else (False, -1)
    answer = process.stdout.read(size) if size >= 0 else b""
    if len(answer) != size:
        raise BrokenExecutor("the process ended during the call")
    result = read_foreign(answer)
    if not is_raised:
        return result
    raise result if isinstance(result, Exception) else RemoteError(describe_object(result))


def open_engine(target: str, options: EngineOptions) -> Engine:
    """Return the engine with the number of processes in `target`. Raises InvalidInput."""
    reject_tls_files("local", options)
    if not re.fullmatch("[0-9]{1,4}", target) or not 1 <= int(target) <= SLOTS_MAX:
        raise InvalidInput(
            f"'local:{target}' is not valid: {target!r} is not a number from 1 to {SLOTS_MAX:,}",
            hint="give the number of processes, such as local:2",
        )
    return LocalEngine(int(target))
