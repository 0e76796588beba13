"""A function that is called at once, in a fork of this process, and whose answer is wanted later.

So it is done on another processor beside what we do. The fork has a copy of what we know, and gives back bytes through
a pipe; whatever becomes of it (it cannot be made, it dies, the function raises), the function is called here when its
answer is wanted. It is for what only reads: a fork whose answer nobody wants ends by itself.
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
    """Whether there is a processor beside the one that we are on."""
    able = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return able > 1


class BackgroundFork(Generic[T]):
    """One call of a function."""

    def __init__(self, function: Callable[[], T]) -> None:
        """Begin it. msgspec can write what it answers."""
        self._function = function
        self._pid, self._pipe = _start(function)

    def wait(self, answer: type[T]) -> T:
        """What it answers, which is of such a type. Raises what it raises. Once only."""
        told = _read(self._pid, self._pipe) if self._pid else b""
        try:
            return msgspec.msgpack.decode(told, type=answer)
        except msgspec.DecodeError:
            return self._function()


def _start(function: Callable[[], object]) -> tuple[int, int]:
    """The fork, 0 where it cannot be made, and the end of its pipe that is ours."""
    try:
        reading, writing = os.pipe()
    except OSError:
        return 0, -1
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))  # Until the fork's has its default effect there.
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
        os.close(reading)  # Else who goes before all is written leaves a pipe that has a reader: us, who wait for ever.
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        # Whoever reads what we write waits until nobody can write there any more.
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for stream in _STREAMS:
            os.dup2(nothing, stream, inheritable=False)
        told = msgspec.msgpack.encode(function())
        while told:
            told = told[os.write(writing, told) :]
    finally:
        os._exit(0)  # Nothing of what was copied is the fork's to flush or to call.


def _read(pid: int, pipe: int) -> bytes:
    told = b""
    try:
        while part := os.read(pipe, _READ_BYTES):
            told += part
    finally:
        os.close(pipe)
    with contextlib.suppress(ChildProcessError):  # Whoever ignores SIGCHLD is told of no child.
        os.waitpid(pid, 0)
    return told
