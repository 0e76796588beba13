"""The interface for running commands. Real and simulated processes implement it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec


class ProcessStart(msgspec.Struct, frozen=True, kw_only=True):
    """A command to start: arguments, directory and environment. `stdin` is the input file, or None for no input.

    `mark` is the value of ATTEMPT_VARIABLE in the environment. It identifies all processes that the command starts.
    """

    arguments: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    stdin: Path | None
    mark: str


class ProcessNotStarted(Exception):
    """The error that a command could not be started. The message is for people."""


class ProcessEnded(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a command: its exit status and its CPU seconds. If a signal ended it, the status is negative.

    `memory_peak_bytes` is the largest resident memory of any of its processes, or 0 if unknown.
    """

    exit_status: int
    cpu_seconds: float = 0.0
    memory_peak_bytes: int = 0


class RunningProcess(Protocol):
    """A running command. It leads a session. Its descendants belong to this session, unless they create another one."""

    pid: int
    start_ticks: int

    def wait(self, seconds: float, channel: int | None) -> None:
        """Wait until the command writes output or ends, or `channel` is readable, but at most `seconds`."""

    def read(self) -> bytes:
        """Return what the command has written to standard output and error since the last call. Never waits."""

    def has_ended(self) -> bool:
        """Return whether the command has ended, even if processes that it started still run.

        Until `end` or `close` is called, the kernel does not use the pid of the command for another process.
        """

    def signal_group(self, number: int) -> None:
        """Send a signal to the process group of the command."""

    def has_other_processes(self) -> bool:
        """Return whether other processes in the session of the command still run after the command has ended."""

    def resident_bytes(self) -> int:
        """Return the resident memory of the command and of all processes that it started."""

    def kill_and_wait(self, *, everything: bool, seconds: float) -> list[str]:
        """Kill the session of the command or, with `everything`, all processes that it ever started.

        Wait at most `seconds`. Return descriptions, for people, of the processes that still run or were not killed.
        """

    def close(self) -> ProcessEnded | None:
        """Release the resources of the command.

        Return its exit status and use of resources, or None if it has not ended.
        """


class CommandStarter(Protocol):
    """A starter of commands. Each supervisor runs one command at a time."""

    def start(self, start: ProcessStart) -> RunningProcess:
        """Start a command. Raises ProcessNotStarted."""
