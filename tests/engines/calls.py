"""Functions that engines call in other processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any


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
    """Sleep for longer than any test in the process whose pid is the argument. Return at once in all others."""
    if int(argument) == os.getpid():
        time.sleep(100_000)
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


class Malicious:
    """An object whose pickle makes the process that reads it write a file with its pid into a directory."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def __reduce__(self) -> tuple[object, ...]:
        return exec, (f"import os; open(os.path.join({self.directory!r}, str(os.getpid())), 'w').close()",)


class MaliciousError(Exception):
    """An exception with such a pickle."""

    def __reduce__(self) -> tuple[object, ...]:
        return Malicious(str(self.args[0])).__reduce__()


def return_malicious(directory: bytes) -> Any:
    """Return an object that runs code when it is read."""
    return Malicious(directory.decode())


def return_malicious_in_containers(directory: bytes) -> Any:
    """Return such an object in containers."""
    return {"a": [b"x", (Malicious(directory.decode()), 1)], "b": {1: {Malicious(directory.decode())}}}


def raise_malicious(directory: bytes) -> Any:
    """Raise an exception that runs code when it is read."""
    raise MaliciousError(directory.decode())


def raise_with_malicious_argument(directory: bytes) -> Any:
    """Raise an exception of Python that contains such an object."""
    raise ValueError("text", [Malicious(directory.decode())])


MALICIOUS = (return_malicious, return_malicious_in_containers, raise_malicious, raise_with_malicious_argument)
