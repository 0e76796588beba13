"""Functions called in forks of this process, whose answers come back in frames through a pipe.

`map_forked` spreads the calls of a function over several forks. `call_isolated` has one fork make calls that run code
of others: that fork leads a session of its own and has none of our descriptors, so nothing that the code does reaches
us. A fork that ends, or takes too long, before an answer costs that answer.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, NoReturn, TypeVar

import msgspec

from codebatch.system.clock import running_ns
from codebatch.system.files.os_errors import starting_process
from codebatch.system.processes.processes import describe_end, die_with_parent, is_dead_child

A = TypeVar("A")
T = TypeVar("T")

_BLOCK = 16
_FRAME = struct.Struct("<?I")
_READ_BYTES = 1 << 16
_POLL_SECONDS = 0.05
_STDIN, _STDOUT, _STDERR = 0, 1, 2
_ANSWER_BYTES_MAX = 1 << 28
"""An answer of an isolated fork, whose code may write anything to the pipe."""
_DESCRIPTORS_CLOSED_MAX = 1 << 16
"""Descriptors that are closed one by one where the system does not list them."""


class ForkFailure(msgspec.Struct, frozen=True):
    """A fork that gave no answer. `reason` is for people: `it took longer than 30 s`."""

    reason: str


class ForkException(msgspec.Struct, frozen=True):
    """An exception in place of an answer. It stays in the fork."""


@contextlib.contextmanager
def map_forked(
    function: Callable[[A], T],
    arguments: Sequence[A],
    processes: int,
    answer: type[T],
    *,
    seconds: float | None = None,
) -> Iterator[Iterator[T | ForkFailure]]:
    """Call a function with each argument. Yield the answers in the order of arguments, until the `with` ends.

    `answer` is the type of an answer, which msgspec can encode. If an answer takes longer than `seconds`, its fork is
    killed. Without such a limit, one process is this one. If the function raises, it is called again here to raise.
    """
    if processes <= 1 and seconds is None:
        yield map(function, arguments)
        return
    shares = [_Share(function, arguments, number, processes, answer, seconds) for number in range(processes)]
    try:
        yield (shares[position // _BLOCK % processes].answer(position) for position in range(len(arguments)))
    finally:
        for share in shares:
            share.end()


@contextlib.contextmanager
def call_isolated(
    function: Callable[[A], T], arguments: Sequence[A], answer: type[T], *, seconds: float
) -> Iterator[Iterator[T | ForkFailure]]:
    """Call a function that runs code of others with each argument in one fork, until the `with` ends.

    `answer` is the type of an answer, which msgspec can encode. `seconds` is the limit for each. The first failure is
    the last answer. All that the code starts ends with the fork, unless it leaves the fork's session.
    """
    fork = Fork(function, arguments, is_isolated=True)
    try:
        yield _iter_decoded(fork, len(arguments), answer, seconds)
    finally:
        fork.end()


def _iter_decoded(fork: Fork[A], count: int, answer: type[T], seconds: float) -> Iterator[T | ForkFailure]:
    for _ in range(count):
        answered = fork.read(seconds)
        if isinstance(answered, ForkException):
            answered = ForkFailure("it raised an exception without a text")
        if isinstance(answered, ForkFailure):
            yield answered
            return
        try:
            decoded = msgspec.msgpack.decode(answered, type=answer)
        except (msgspec.DecodeError, msgspec.ValidationError):
            yield ForkFailure("it wrote to file descriptors that it does not own")
            return
        yield decoded


class Fork(Generic[A]):
    """One fork: it calls a function with each argument in turn, and writes each answer to its pipe.

    The pipe holds the fork back until its answers are read.
    """

    def __init__(self, function: Callable[[A], object], arguments: Iterable[A], *, is_isolated: bool = False) -> None:
        self._is_isolated = is_isolated
        self._buffer = bytearray()
        self._is_at_end = False
        self._ended: str | None = None
        parent = os.getpid()
        _flush_streams()
        self._pipe, writing = os.pipe()
        with starting_process():
            self._pid = os.fork()
        if self._pid == 0:
            _work(function, arguments, writing, parent, is_isolated=is_isolated)
        os.close(writing)

    def read(self, seconds: float | None = None) -> bytes | ForkException | ForkFailure:
        """Wait for the next answer, encoded."""
        deadline = None if seconds is None else running_ns() + round(seconds * 1e9)
        while (frame := self._next_frame()) is None:
            if deadline is not None and running_ns() > deadline:
                return ForkFailure(f"it took longer than {seconds:g} s")
            is_dead = self._is_dead()  # Asked first: what it wrote before its end is read all the same.
            if not self._receive(0.0 if is_dead else _POLL_SECONDS) and is_dead:
                return ForkFailure(f"its process ended ({self.end()})")
        return frame

    def end(self) -> str:
        """Kill it, with all of its session if it is isolated, and wait. Return how it ended, for people."""
        if self._ended is None:
            os.close(self._pipe)
            for kill in (os.killpg, os.kill) if self._is_isolated else (os.kill,):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    kill(self._pid, signal.SIGKILL)
            self._ended = "its exit status is unknown"
            with contextlib.suppress(ChildProcessError):  # The status is lost if SIGCHLD is ignored.
                self._ended = describe_end(os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1]))
        return self._ended

    def _is_dead(self) -> bool:
        try:
            return is_dead_child(self._pid) if hasattr(os, "waitid") else self._is_at_end
        except ChildProcessError:
            return True

    def _receive(self, seconds: float) -> bool:
        """Wait for bytes at most so long. Return whether there were any."""
        poll = select.poll()
        if not self._is_at_end:  # Else only its end is waited for: it may have closed the pipe, and go on.
            poll.register(self._pipe, select.POLLIN)
        if not poll.poll(seconds * 1e3):
            return False
        data = os.read(self._pipe, _READ_BYTES)
        self._is_at_end = not data
        self._buffer += data
        return bool(data)

    def _next_frame(self) -> bytes | ForkException | ForkFailure | None:
        if len(self._buffer) < _FRAME.size:
            return None
        is_raised, length = _FRAME.unpack_from(self._buffer)
        if self._is_isolated and length > _ANSWER_BYTES_MAX:
            return ForkFailure("it wrote to file descriptors that it does not own")
        end = _FRAME.size + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_FRAME.size : end])
        del self._buffer[:end]
        return ForkException() if is_raised else body


class _Share(Generic[A, T]):
    """The share of one of several forks, and of those that follow it."""

    def __init__(
        self,
        function: Callable[[A], T],
        arguments: Sequence[A],
        number: int,
        forks: int,
        answer: type[T],
        seconds: float | None,
    ) -> None:
        self._function = function
        self._arguments = arguments
        self._is_mine = lambda position: position // _BLOCK % forks == number
        self._decoder = msgspec.msgpack.Decoder(answer)
        self._seconds = seconds
        self._begin(0)

    def answer(self, position: int) -> T | ForkFailure:
        """The next answer, which must be the one of a position."""
        answered = self._fork.read(self._seconds)
        match answered:
            case ForkException():
                return self._function(self._arguments[position])
            case ForkFailure():
                self.end()
                self._begin(position + 1)
                return answered
            case _:
                return self._decoder.decode(answered)

    def end(self) -> None:
        """End the fork."""
        self._fork.end()

    def _begin(self, first: int) -> None:
        positions = filter(self._is_mine, range(first, len(self._arguments)))
        self._fork = Fork(self._function, map(self._arguments.__getitem__, positions))


def _work(
    function: Callable[[A], object], arguments: Iterable[A], writing: int, parent: int, *, is_isolated: bool
) -> NoReturn:
    pid, status = os.getpid(), 1
    try:
        if is_isolated:
            _isolate(writing)
        elif signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        die_with_parent(parent)
        encode = msgspec.msgpack.encode
        for argument in arguments:
            try:
                is_raised, body = False, encode(function(argument))
            except Exception:
                is_raised, body = True, b""
            if is_isolated:
                _flush_streams()  # Who has the answer may kill us.
            if os.getpid() != pid:  # Code of others forked, and its parent may have ended: not the one that is read.
                break
            _write_all(writing, _FRAME.pack(is_raised, len(body)) + body)
        status = 0
    finally:
        if is_isolated:
            _flush_streams()
        os._exit(status)  # Nothing else of what was forked is ours to flush or to call.


def _isolate(kept: int) -> None:
    """Leave the terminal, and let go of descriptors and signal handlers. Standard output becomes standard error."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.dup2(os.open(os.devnull, os.O_RDONLY), _STDIN)
    os.dup2(_STDERR, _STDOUT)
    sys.stdout = open(_STDERR, "w", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    for descriptor in _descriptors() - {_STDIN, _STDOUT, _STDERR, kept}:
        with contextlib.suppress(OSError):  # The listing's own.
            os.close(descriptor)


def _descriptors() -> set[int]:
    try:
        return set(map(int, os.listdir("/dev/fd")))
    except OSError:  # Without /proc.
        return set(range(_DESCRIPTORS_CLOSED_MAX))


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # Code of others may have put anything in their places.
            stream.flush()


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
