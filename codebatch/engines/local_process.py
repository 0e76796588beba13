"""A process of the engine `local:N`: `python -m codebatch.engines.local_process`. Only `ProcessPool` starts it.

It reads pickled calls on standard input, executes one after another, and writes an answer for each to standard output:
ANSWER_HEADER, then a pickle of the result or of the exception.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import NoReturn

from codebatch.coordinator.engines.foreign_objects import RemoteError, describe_error

ANSWER_HEADER = struct.Struct("<?Q")
"""Whether the call raised an exception, and the size of the pickle."""

_CLEANUP_SECONDS = 5
"""The time limit for a call to end, and to remove its temporary files, when the pool ends."""


def main() -> None:
    """Execute calls until standard input ends."""
    # Ctrl-C goes to the whole process group. The coordinator handles it, and ends the pool.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end_call)
    calls: SimpleQueue[Callable[[], object]] = SimpleQueue()
    with os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)  # Calls must not write to the answers.
        threading.Thread(target=_read_calls, args=(calls,), daemon=True).start()
        while True:
            is_raised, answer = _answer_call(calls.get())
            output.write(ANSWER_HEADER.pack(is_raised, len(answer)) + answer)
            output.flush()


def _read_calls(calls: SimpleQueue[Callable[[], object]]) -> None:
    """Read calls. At the end of standard input the pool has ended, so end this process.

    A signal can end this process while this thread reads. Python would then abort, because `sys.stdin` is locked.
    """
    stdin = os.fdopen(0, "rb", closefd=False)
    try:
        while True:
            calls.put(pickle.load(stdin))  # noqa: S301 - from the coordinator
    except EOFError:
        os.kill(os.getpid(), signal.SIGTERM)


def _answer_call(call: Callable[[], object]) -> tuple[bool, bytes]:
    try:
        return False, pickle.dumps(call())
    except Exception as error:
        try:
            return True, pickle.dumps(error)
        except Exception:
            return True, pickle.dumps(RemoteError(describe_error(error)))


def _end_call(*_: object) -> NoReturn:
    """End this process, after its call has removed its temporary files."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.alarm(_CLEANUP_SECONDS)
    sys.exit()


if __name__ == "__main__":
    main()
