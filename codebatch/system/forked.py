"""A function of many arguments in several processes, forks of this one, whose answers come in the order of arguments.

A fork does its share of the arguments, block by block in turn, and writes each answer to its pipe, which holds it back
when nobody reads. One that dies takes the answer with it at which it was, and another goes on behind. Whatever the
function raises, it is called again here to raise it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

import msgspec

from codebatch.system.processes import die_with_parent

A = TypeVar("A")
T = TypeVar("T")

_BLOCK = 16
_FRAME = struct.Struct("<?I")


@contextlib.contextmanager
def map_forked(
    function: Callable[[A], T], arguments: Sequence[A], processes: int, answer: type[T]
) -> Iterator[Iterator[T | None]]:
    """What a function says of arguments, each in its turn, until the `with` ends; None where a process died of it.

    `answer` is the type of it, which msgspec can write. With one process it is this one.
    """
    if processes <= 1:
        yield map(function, arguments)
        return
    forks = [_Fork(function, arguments, number, processes, answer) for number in range(processes)]
    try:
        yield (forks[position // _BLOCK % processes].answer(position) for position in range(len(arguments)))
    finally:
        for fork in forks:
            fork.end()


class _Fork(Generic[A, T]):
    """One of several forks, and those that follow it."""

    def __init__(
        self, function: Callable[[A], T], arguments: Sequence[A], number: int, forks: int, answer: type[T]
    ) -> None:
        self._function = function
        self._arguments = arguments
        self._is_mine = lambda position: position // _BLOCK % forks == number
        self._decoder = msgspec.msgpack.Decoder(answer)
        self._begin(0)

    def answer(self, position: int) -> T | None:
        """The next answer, which must be the one of a position."""
        head = self._pipe.read(_FRAME.size)
        is_raised, length = _FRAME.unpack(head) if len(head) == _FRAME.size else (False, 0)
        body = self._pipe.read(length)
        if is_raised:
            return self._function(self._arguments[position])
        if not length or len(body) != length:
            self.end()
            self._begin(position + 1)
            return None
        return self._decoder.decode(body)

    def end(self) -> None:
        """End it and wait for that."""
        self._pipe.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def _begin(self, first: int) -> None:
        reading, writing = os.pipe()
        parent = os.getpid()
        sys.stdout.flush()
        self._pid = os.fork()
        if self._pid == 0:
            self._work(first, writing, parent)
        os.close(writing)
        self._pipe = os.fdopen(reading, "rb")

    def _work(self, first: int, writing: int, parent: int) -> None:
        try:
            if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
                signal.signal(signal.SIGINT, signal.SIG_DFL)
            die_with_parent(parent)
            encode = msgspec.msgpack.encode
            with os.fdopen(writing, "wb", buffering=0) as pipe:
                for position in filter(self._is_mine, range(first, len(self._arguments))):
                    try:
                        is_raised, body = False, encode(self._function(self._arguments[position]))
                    except Exception:
                        is_raised, body = True, b""
                    _write_all(pipe.fileno(), _FRAME.pack(is_raised, len(body)) + body)
        finally:
            os._exit(0)  # Nothing of what was forked is ours to flush or to call.


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
