"""Limits of time and memory: what a file may cost before its worker is killed, and who has waited too long."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from codebatch.system.cell import Step
from codebatch.system.machine import available_memory

MEMORY_BYTES_MAX = 2 << 30
MEMORY_BYTES_MIN = 256 << 20
BATCHED_SHARE = 0.1
PATIENCE_SECONDS = 5.0
PAUSE_SECONDS = 1.0

Key = TypeVar("Key", bound=Hashable)


def default_memory_bytes(jobs: int) -> int:
    """What one of `jobs` workers may have: its share of the available memory, at most 2 GiB, at least 256 MiB."""
    return max(MEMORY_BYTES_MIN, min(MEMORY_BYTES_MAX, available_memory() // jobs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one file may cost: seconds, and bytes of its worker's process tree. No part of a plan's digest."""

    file_seconds: float
    memory_bytes: int

    def seconds_for(self, step: Step) -> float:
        """The time a step may take: for a tool that is asked about many files at once a tenth more for each further."""
        items = max(1, step.end - step.item)
        return self.file_seconds * (1 + BATCHED_SHARE * (items - 1))


class Stopwatch(Generic[Key]):
    """How long each of several things has stayed as it is, on the clock of the one who looks.

    Time in which nobody looked (we were stopped, or the machine slept) counts for nobody.
    """

    def __init__(self) -> None:
        self._seen: dict[Key, tuple[object, float]] = {}
        self._looked_at = 0.0
        self._now = 0.0

    def look(self, now: float) -> None:
        """Begin to look again, at `now` seconds of a clock that stops in suspend."""
        self._now += min(now - self._looked_at, PAUSE_SECONDS)
        self._looked_at = now

    def seconds(self, key: Key, state: object) -> float:
        """The seconds since this was first seen in this state."""
        known = self._seen.get(key)
        if known is None or known[0] != state:
            known = self._seen[key] = (state, self._now)
        return self._now - known[1]
