"""How long commands took, by the directory that they are of: `cache/durations-*.bin`, deletable.

Known by a command's id, and there by its definition, the digest of which says whether it is still the same; and by the
program that it runs, for commands that nobody has seen. Who writes reads first what another has written meanwhile.
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
from codebatch.store.batches.store import StoreDir
from codebatch.store.cache_files import read_kept, write_kept

SAMPLES_MAX = 8
SAMPLES_OF_A_PROGRAM_MAX = 32
_MAGIC = b"cbtime\0\1"
_DIGITS = 12
_SECONDS_MAX = 1_000_000_000


class CommandDuration(NamedTuple):
    """How long a command took, in seconds, that is done: its id, the digest of its definition, and its program."""

    command: str
    definition: Digest
    program: str
    seconds: float


_Seconds = Annotated[float, Meta(ge=0, le=_SECONDS_MAX)]
"""Nor NaN: no schedule would come to its end."""


class _CachedDurations(msgspec.Struct, array_like=True):
    commands: dict[str, list[tuple[str, _Seconds]]] = msgspec.field(default_factory=dict)
    programs: dict[str, list[_Seconds]] = msgspec.field(default_factory=dict)


class Durations:
    """What is known of the commands of one directory."""

    def __init__(self, store: StoreDir | None, root: bytes) -> None:
        """What is damaged or gone is as if nothing had been known, as it is without a store."""
        self._store = store
        self._name = layout.durations_cache_name(digest_bytes(root))
        self._kept = self._read()
        self._new: list[CommandDuration] = []

    def of_command(self, command: str, definition: Digest) -> tuple[float, ...]:
        """How long a command took as it is defined now, the latest last; where it never ran so, as it was before."""
        known = self._kept.commands.get(command, ())
        same = tuple(seconds for digits, seconds in known if digits == definition[:_DIGITS])
        return same or tuple(seconds for _, seconds in known)

    def of_program(self, program: str) -> tuple[float, ...]:
        """How long commands took that run a program."""
        return tuple(self._kept.programs.get(program, ()))

    def add(self, took: CommandDuration) -> None:
        """Keep what a command took, with the next `save`."""
        self._new.append(took)

    def save(self) -> None:
        """Write what was added. A store that cannot be written goes without."""
        if not self._new or self._store is None:
            return
        self._kept = self._read()
        for took in self._new:
            known = self._kept.commands.setdefault(took.command, [])
            known.append((took.definition[:_DIGITS], round(took.seconds, 3)))
            del known[:-SAMPLES_MAX]
            if took.program:
                of_program = self._kept.programs.setdefault(took.program, [])
                of_program.append(round(took.seconds, 3))
                del of_program[:-SAMPLES_OF_A_PROGRAM_MAX]
        self._new.clear()
        write_kept(self._store, self._name, _MAGIC, msgspec.msgpack.encode(self._kept))

    def _read(self) -> _CachedDurations:
        body = None if self._store is None else read_kept(self._store, self._name, _MAGIC)
        try:
            return _CachedDurations() if body is None else msgspec.msgpack.decode(body, type=_CachedDurations)
        except (msgspec.DecodeError, ValueError):
            return _CachedDurations()


def program_of(command: Command) -> str:
    """What a command runs, for people and for what is alike: the name of its program, the first word of a script."""
    if not isinstance(command.run, str):
        return os.path.basename(command.run[0])
    try:
        words: Iterable[str] = shlex.split(command.run, comments=True)
    except ValueError:
        words = command.run.split()
    return os.path.basename(next((word for word in words if "=" not in word), ""))
