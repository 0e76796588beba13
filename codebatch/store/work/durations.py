"""Durations of commands, by directory: `cache/durations-*.bin`, which may be deleted.

Durations are stored by command ID. Each has the digest of the command's definition, which shows whether the command has
changed since. Durations are also stored by program, to estimate commands that have not run yet. Before each write, the
file is read again, so that durations written by other processes are kept.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.work.command import Command
from codebatch.store import layout
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.cache_files import read_cached, write_cached

SAMPLES_MAX = 8
PROGRAM_SAMPLES_MAX = 32
_MAGIC = b"cbtime\0\1"
_DEFINITION_DIGITS = 12
_SECONDS_MAX = 1_000_000_000


class CommandDuration(NamedTuple):
    """The duration in seconds of a completed command, with its ID, the digest of its definition, and its program."""

    command: str
    definition: Digest
    program: str
    seconds: float


_Seconds = Annotated[float, Meta(ge=0, le=_SECONDS_MAX)]
"""A duration. NaN is excluded, because a schedule with it would not terminate."""


class _CachedDurations(msgspec.Struct, array_like=True):
    commands: dict[str, list[tuple[str, _Seconds]]] = msgspec.field(default_factory=dict)
    programs: dict[str, list[_Seconds]] = msgspec.field(default_factory=dict)


class CommandDurations:
    """The known durations of the commands of one directory."""

    def __init__(self, store: StoreDir | None, root: bytes) -> None:
        """Load the durations. There are none if the file is damaged or missing, or there is no store."""
        self._store = store
        self._name = layout.durations_cache_name(digest_bytes(root))
        self._cached = self._read_cached()
        self._added_durations: list[CommandDuration] = []

    def command_seconds(self, command: str, definition: Digest) -> tuple[float, ...]:
        """Return the durations in seconds of a command whose definition has the digest `definition`, latest last.

        If the command never ran with this definition, return its durations with other definitions.
        """
        samples = self._cached.commands.get(command, ())
        matching = tuple(seconds for digits, seconds in samples if digits == definition[:_DEFINITION_DIGITS])
        return matching or tuple(seconds for _, seconds in samples)

    def program_seconds(self, program: str) -> tuple[float, ...]:
        """Return the durations in seconds of commands that run a program."""
        return tuple(self._cached.programs.get(program, ()))

    def add(self, duration: CommandDuration) -> None:
        """Buffer a duration until the next `save`."""
        self._added_durations.append(duration)

    def save_durations(self) -> None:
        """Write the added durations. If the store cannot be written, do nothing."""
        if not self._added_durations or self._store is None:
            return
        self._cached = self._read_cached()
        for duration in self._added_durations:
            command_samples = self._cached.commands.setdefault(duration.command, [])
            command_samples.append((duration.definition[:_DEFINITION_DIGITS], round(duration.seconds, 3)))
            del command_samples[:-SAMPLES_MAX]
            if duration.program:
                samples = self._cached.programs.setdefault(duration.program, [])
                samples.append(round(duration.seconds, 3))
                del samples[:-PROGRAM_SAMPLES_MAX]
        self._added_durations.clear()
        write_cached(self._store, self._name, _MAGIC, self._cached)

    def _read_cached(self) -> _CachedDurations:
        cached = None if self._store is None else read_cached(self._store, self._name, _MAGIC, _CachedDurations)
        return cached or _CachedDurations()


def program_name(command: Command) -> str:
    """Return the name of the program that a command runs.

    In a script, this is the first word that is not a variable assignment.
    """
    if not isinstance(command.run, str):
        return os.path.basename(command.run[0])
    try:
        words: Iterable[str] = shlex.split(command.run, comments=True)
    except ValueError:
        words = command.run.split()
    return os.path.basename(next((word for word in words if "=" not in word), ""))
