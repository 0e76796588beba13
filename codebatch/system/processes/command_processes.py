"""The port for running commands, implemented by real and by simulated processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec


class ProcessStart(msgspec.Struct, frozen=True, kw_only=True):
    """A command to start: an argument vector, a directory and an environment. `stdin` is a file, or None for no input.

    `mark` is the value of ATTEMPT_VARIABLE in the environment, which identifies all processes that the command starts.
    """

    arguments: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    stdin: Path | None
    mark: str


class NotStarted(Exception):
    """A command could not be started. The text is for people."""


class ProcessEnded(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a command: its exit status, negative if a signal ended it, and its CPU seconds.

    `memory_peak_bytes` is the largest resident memory of one of its processes, 0 if unknown.
    """

    exit_status: int
    cpu_seconds: float = 0.0
    memory_peak_bytes: int = 0


class Running(Protocol):
    """A running command. It leads a session; processes that it starts belong to it unless they create their own."""

    pid: int
    start_ticks: int

    def wait(self, seconds: float, channel: int | None) -> None:
        """Wait until the command writes or ends, or `channel` is readable, for at most `seconds`."""

    def read(self) -> bytes:
        """Return what the command has written since the last call to standard output and error. Never waits."""

    def poll(self) -> bool:
        """Return whether the command has ended, even if processes that it started still run.

        Its pid is not reused before `end` or `close`.
        """

    def signal(self, number: int) -> None:
        """Signal the process group of the command."""

    def has_company(self) -> bool:
        """Return whether other processes of its session still run after its end."""

    def resident_bytes(self) -> int:
        """Return the resident memory of the command and of all processes that it started."""

    def end(self, *, everything: bool, seconds: float) -> list[str]:
        """Kill its session, or `everything` that it ever started, and wait for at most `seconds`.

        Return descriptions, for people, of the processes that still run or were not killed.
        """

    def close(self) -> ProcessEnded | None:
        """Release the command. Return its end, or None if it has not ended."""


class Commands(Protocol):
    """A starter of commands. A supervisor runs one command at a time."""

    def start(self, start: ProcessStart) -> Running:
        """Start a command. Raises NotStarted."""
