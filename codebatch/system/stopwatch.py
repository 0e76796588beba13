"""How long something has stayed as it is: what limits of time are held against."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

PAUSE_SECONDS = 1.0

Key = TypeVar("Key", bound=Hashable)


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
        passed = now - self._looked_at
        self._now += passed if passed <= PAUSE_SECONDS else 0.0
        self._looked_at = now

    def seconds(self, key: Key, state: object) -> float:
        """The seconds since this was first seen in this state."""
        known = self._seen.get(key)
        if known is None or known[0] != state:
            known = self._seen[key] = (state, self._now)
        return self._now - known[1]
