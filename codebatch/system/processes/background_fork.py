"""A function call that starts immediately in a fork of this process, while the caller does other work.

The fork has a copy of this process's memory and sends its result through a pipe. If the fork cannot be made, dies, or
raises, the caller's process makes the call when the result is needed. The function must only read. If the result is
never requested, the fork ends by itself.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")

_READ_BYTES = 1 << 16
_STREAMS = (0, 1, 2)


def has_other_processor() -> bool:
    """Return whether this process may use more than one processor."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return processors > 1


class BackgroundFork(Generic[T]):
    """One call of a function."""

    def __init__(self, function: Callable[[], T]) -> None:
        """Start the call. msgspec must be able to encode its result."""
        self._function = function
        self._pid, self._pipe = _start(function)

    def wait(self, answer: type[T]) -> T:
        """Return the result, decoded as `answer`. Raises the function's exceptions. Call this once at most."""
        data = _read(self._pid, self._pipe) if self._pid else b""
        try:
            return msgspec.msgpack.decode(data, type=answer)
        except msgspec.DecodeError:
            return self._function()


def _start(function: Callable[[], object]) -> tuple[int, int]:
    """Return the pid of the fork, 0 if it cannot be made, and the read end of its pipe."""
    try:
        reading, writing = os.pipe()
    except OSError:
        return 0, -1
    # Blocked until the fork has the default handler of SIGINT.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        pid = os.fork()
        if pid == 0:
            _work(function, reading, writing, mask)
    except OSError:
        os.close(reading)
        os.close(writing)
        return 0, -1
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.close(writing)
    return pid, reading


def _work(function: Callable[[], object], reading: int, writing: int, mask: Iterable[int]) -> None:
    try:
        os.close(reading)  # With an open read end, the fork's writes would block forever after the parent's end.
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        # A caller that reads this process's output waits until every copy of the descriptors is closed.
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for stream in _STREAMS:
            os.dup2(nothing, stream, inheritable=False)
        data = msgspec.msgpack.encode(function())
        while data:
            data = data[os.write(writing, data) :]
    finally:
        os._exit(0)  # Buffers and exit handlers are copies that belong to the parent.


def _read(pid: int, pipe: int) -> bytes:
    data = b""
    try:
        while part := os.read(pipe, _READ_BYTES):
            data += part
    finally:
        os.close(pipe)
    with contextlib.suppress(ChildProcessError):  # If SIGCHLD is ignored, the kernel reaps the child.
        os.waitpid(pid, 0)
    return data
