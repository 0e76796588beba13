"""Running commands, as who supervises them sees it: the port that real processes and simulated ones stand behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec


class ProcessStart(msgspec.Struct, frozen=True, kw_only=True):
    """What to start: an argument vector in a directory, with an environment; `stdin` is a file, None for nothing.

    `mark` is what its environment says in ATTEMPT_VARIABLE, by which whatever it starts is known.
    """

    arguments: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    stdin: Path | None
    mark: str


class NotStarted(Exception):
    """A command could not be started; the text is for people."""


class ProcessEnded(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended: its exit status, negative where a signal ended it, and the CPU seconds it took.

    `memory_peak_bytes` is the most that one of its processes had resident, 0 where that is not known.
    """

    exit_status: int
    cpu_seconds: float = 0.0
    memory_peak_bytes: int = 0


class Running(Protocol):
    """A command that was started. It leads a session; what it starts belongs to it, until that makes its own."""

    pid: int
    start_ticks: int

    def wait(self, seconds: float, channel: int | None) -> None:
        """Wait until it has written something, or ended, or a descriptor can be read; so many seconds at most."""

    def read(self) -> bytes:
        """What it has written since, on standard output and error; empty where there is nothing now."""

    def poll(self) -> bool:
        """Whether it has ended, be it that what it started still runs. Its id stays its own until `end` or `close`."""

    def signal(self, number: int) -> None:
        """Signal its process group."""

    def has_company(self) -> bool:
        """Whether others of its session run, now that it has ended."""

    def resident_bytes(self) -> int:
        """The memory that it and all that it started have resident."""

    def end(self, *, everything: bool, seconds: float) -> list[str]:
        """Kill its session, or `everything` that it ever started; returns what still runs after so many seconds at
        most, or was left alone, for people.
        """

    def close(self) -> ProcessEnded | None:
        """Let go of it; how it ended, None where it did not."""


class Commands(Protocol):
    """Starts commands. Who starts them supervises one at a time."""

    def start(self, start: ProcessStart) -> Running:
        """Start a command. Raises NotStarted."""
