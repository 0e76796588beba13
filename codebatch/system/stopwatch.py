"""A stopwatch for the time that states stay unchanged, for time limits."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

PAUSE_SECONDS = 1.0

Key = TypeVar("Key", bound=Hashable)


class Stopwatch(Generic[Key]):
    """The time that each of several keys has stayed in its state, on the observer's clock.

    Time in which nothing was observed for more than PAUSE_SECONDS does not count: the process was stopped or the
    machine slept.
    """

    def __init__(self) -> None:
        self._seen: dict[Key, tuple[object, float]] = {}
        self._looked_at = 0.0
        self._now = 0.0

    def look(self, now: float) -> None:
        """Begin an observation, at `now` seconds of a clock that stops in suspend."""
        passed = now - self._looked_at
        self._now += passed if passed <= PAUSE_SECONDS else 0.0
        self._looked_at = now

    def seconds(self, key: Key, state: object) -> float:
        """Return the seconds since this key was first seen in this state."""
        entry = self._seen.get(key)
        if entry is None or entry[0] != state:
            entry = self._seen[key] = (state, self._now)
        return self._now - entry[1]
