"""Function calls in forks of this process. The forks send results through a pipe, one frame each.

`map_forked` distributes the calls of a function over several forks. `call_isolated` makes calls that run foreign code,
all in one fork. That fork leads its own session and has no descriptors of this process, so its code cannot affect this
process. If a fork ends or takes too long, only the result of its current call is lost.
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

from codebatch.system.files.os_errors import translating_start_errors
from codebatch.system.processes.process_timer import ProcessTimer
from codebatch.system.processes.processes import describe_end, die_with_parent, is_dead_child, killing_orphans

A = TypeVar("A")
T = TypeVar("T")

_ARGUMENTS_PER_BLOCK = 16
_FRAME_HEADER = struct.Struct("<?I")
_READ_BYTES = 1 << 16
_POLL_SECONDS = 0.05
_STDIN, _STDOUT, _STDERR = 0, 1, 2
_ANSWER_BYTES_MAX = 1 << 28
"""Maximum bytes of a result from an isolated fork.

The limit is needed because foreign code may write anything to the pipe.
"""
_DESCRIPTORS_CLOSED_MAX = 1 << 16
"""If the system cannot list the open descriptors, this number of descriptors is closed one by one."""


class ForkFailure(msgspec.Struct, frozen=True):
    """The value in place of a result that a fork did not return.

    `reason` is for people, for example `it took longer than 30 s`.
    """

    reason: str


class ForkException(msgspec.Struct, frozen=True):
    """The value in place of a result if the function raised an exception. The exception itself stays in the fork."""


@contextlib.contextmanager
def map_forked(
    function: Callable[[A], T],
    arguments: Sequence[A],
    processes: int,
    answer: type[T],
    *,
    seconds: float | None = None,
) -> Iterator[Iterator[T | ForkFailure]]:
    """Call a function with each argument. Yield an iterator over the results, in the order of the arguments.

    The forks end at the end of the `with`. `answer` is the type of a result, which msgspec must be able to encode. If a
    call takes longer than `seconds`, its fork is killed. If `processes` is 1 and there is no time limit, no fork is
    made. If a call raises in a fork, the function is called again in this process, so that it raises here.
    """
    if processes <= 1 and seconds is None:
        yield map(function, arguments)
        return
    shares = [_ArgumentShare(function, arguments, number, processes, answer, seconds) for number in range(processes)]
    try:
        yield (
            shares[position // _ARGUMENTS_PER_BLOCK % processes].next_answer(position)
            for position in range(len(arguments))
        )
    finally:
        for share in shares:
            share.end_fork()


@contextlib.contextmanager
def call_isolated(
    function: Callable[[A], T], arguments: Sequence[A], answer: type[T], *, seconds: float
) -> Iterator[Iterator[T | ForkFailure]]:
    """Call a function that runs foreign code with each argument, all in one fork.

    The fork ends at the end of the `with`. Yield an iterator over the results. `answer` is the type of a result, which
    msgspec must be able to encode. `seconds` is the time limit of each call. After the first failure there are no more
    results. All processes that the code starts end with the fork, in the main thread also if they leave its session.
    """
    with killing_orphans():
        fork = WorkerFork(function, arguments, is_isolated=True)
        try:
            yield _iter_decoded(fork, len(arguments), answer, seconds)
        finally:
            fork.end_fork()


def _iter_decoded(fork: WorkerFork[A], count: int, answer: type[T], seconds: float) -> Iterator[T | ForkFailure]:
    for _ in range(count):
        reply = fork.read(seconds)
        if isinstance(reply, ForkException):
            reply = ForkFailure("it raised an exception without a text")
        if isinstance(reply, ForkFailure):
            yield reply
            return
        try:
            decoded = msgspec.msgpack.decode(reply, type=answer)
        except (msgspec.DecodeError, msgspec.ValidationError):
            yield ForkFailure("it wrote to file descriptors that it does not own")
            return
        yield decoded


class WorkerFork(Generic[A]):
    """A fork that calls a function with each argument in turn, and writes each result to its pipe.

    If the pipe is full, the fork waits until this process reads results.
    """

    def __init__(self, function: Callable[[A], object], arguments: Iterable[A], *, is_isolated: bool = False) -> None:
        self._is_isolated = is_isolated
        self._buffer = bytearray()
        self._is_at_end = False
        self._ended: str | None = None
        parent = os.getpid()
        _flush_streams()
        self._pipe, writing = os.pipe()
        with translating_start_errors():
            self._pid = os.fork()
        if self._pid == 0:
            _run_fork(function, arguments, writing, parent, is_isolated=is_isolated)
        os.close(writing)

    def read(self, seconds: float | None = None) -> bytes | ForkException | ForkFailure:
        """Wait for the next result and return it in encoded form. If there is none, return the reason."""
        timer = None if seconds is None else ProcessTimer(self._pid)
        while (frame := self._next_frame()) is None:
            if timer is not None and seconds is not None and timer.seconds() > seconds:
                return ForkFailure(f"it took longer than {seconds:g} s")
            is_dead = self._is_dead()  # Test this before reading. So if the fork is dead, all its output is read.
            if not self._receive_bytes(0.0 if is_dead else _POLL_SECONDS) and is_dead:
                return ForkFailure(f"its process ended ({self.end_fork()})")
        return frame

    def end_fork(self) -> str:
        """Kill the fork and, if it is isolated, its session.

        Wait for its end, and return a description for people of how it ended.
        """
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

    def _receive_bytes(self, seconds: float) -> bool:
        """Wait for bytes for at most `seconds`. Return whether any arrived."""
        poll = select.poll()
        # After the end of the output, only wait until the fork ends. It may have closed the pipe while it still runs.
        if not self._is_at_end:
            poll.register(self._pipe, select.POLLIN)
        if not poll.poll(seconds * 1e3):
            return False
        data = os.read(self._pipe, _READ_BYTES)
        self._is_at_end = not data
        self._buffer += data
        return bool(data)

    def _next_frame(self) -> bytes | ForkException | ForkFailure | None:
        if len(self._buffer) < _FRAME_HEADER.size:
            return None
        is_raised, length = _FRAME_HEADER.unpack_from(self._buffer)
        if self._is_isolated and length > _ANSWER_BYTES_MAX:
            return ForkFailure("it wrote to file descriptors that it does not own")
        end = _FRAME_HEADER.size + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_FRAME_HEADER.size : end])
        del self._buffer[:end]
        return ForkException() if is_raised else body


class _ArgumentShare(Generic[A, T]):
    """The arguments that one of several forks gets. If a call fails, a new fork continues with the next argument."""

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
        self._belongs_to_share = lambda position: position // _ARGUMENTS_PER_BLOCK % forks == number
        self._decoder = msgspec.msgpack.Decoder(answer)
        self._seconds = seconds
        self._start_fork(0)

    def next_answer(self, position: int) -> T | ForkFailure:
        """Return the next result, which must be the one of `position`."""
        reply = self._fork.read(self._seconds)
        match reply:
            case ForkException():
                return self._function(self._arguments[position])
            case ForkFailure():
                self.end_fork()
                self._start_fork(position + 1)
                return reply
            case _:
                return self._decoder.decode(reply)

    def end_fork(self) -> None:
        """End the fork."""
        self._fork.end_fork()

    def _start_fork(self, first: int) -> None:
        positions = filter(self._belongs_to_share, range(first, len(self._arguments)))
        self._fork = WorkerFork(self._function, map(self._arguments.__getitem__, positions))


def _run_fork(
    function: Callable[[A], object], arguments: Iterable[A], writing: int, parent: int, *, is_isolated: bool
) -> NoReturn:
    pid, status = os.getpid(), 1
    try:
        if is_isolated:
            _isolate_process(writing)
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
                # Flush before the result is sent, because the reader may kill this process afterwards.
                _flush_streams()
            # If foreign code has forked, this process may be the copy. The copy must not write to the pipe.
            if os.getpid() != pid:
                break
            _write_all(writing, _FRAME_HEADER.pack(is_raised, len(body)) + body)
        status = 0
    finally:
        if is_isolated:
            _flush_streams()
        os._exit(status)  # Buffers and exit handlers are copies that belong to the parent.


def _isolate_process(writing_descriptor: int) -> None:
    """Start a new session, close all other descriptors and reset signal handlers.

    Standard output is redirected to standard error.
    """
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.dup2(os.open(os.devnull, os.O_RDONLY), _STDIN)
    os.dup2(_STDERR, _STDOUT)
    sys.stdout = open(_STDERR, "w", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    for descriptor in _open_descriptors() - {_STDIN, _STDOUT, _STDERR, writing_descriptor}:
        with contextlib.suppress(OSError):  # The descriptor of the listing is already closed.
            os.close(descriptor)


def _open_descriptors() -> set[int]:
    try:
        return set(map(int, os.listdir("/dev/fd")))
    except OSError:  # Without /proc there is no /dev/fd.
        return set(range(_DESCRIPTORS_CLOSED_MAX))


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # Foreign code may have replaced the streams.
            stream.flush()


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
