"""Functions that engines call in other processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def process_id(argument: bytes) -> bytes:
    """Return the argument and the pid of the process."""
    return argument + b" %d" % os.getpid()


def fail(argument: bytes) -> bytes:
    """Raise an exception."""
    raise ValueError(argument.decode())


def kill_process(argument: bytes) -> bytes:
    """Kill the process that executes this function."""
    os.kill(os.getpid(), signal.SIGKILL)
    return argument


def sleep_if_named(argument: bytes) -> bytes:
    """Sleep for 60 seconds in the process whose pid is the argument. Return at once in all others."""
    if int(argument) == os.getpid():
        time.sleep(60)
    return argument


def note_start_and_wait(argument: bytes) -> bytes:
    """Write the pid to `started` in a directory, wait for the file `finish`, and return the pid."""
    directory = Path(argument.decode())
    started = directory / f"started-{os.getpid()}"
    started.touch()
    deadline = time.monotonic() + 60
    while not (directory / "finish").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return b"%d" % os.getpid()
