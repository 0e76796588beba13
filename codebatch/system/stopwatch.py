"""A stopwatch that measures for how long a state has not changed. Time limits use it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

OBSERVATION_GAP_SECONDS_MAX = 1.0

Key = TypeVar("Key", bound=Hashable)


class StateStopwatch(Generic[Key]):
    """A stopwatch for several keys, for example workers: the time for which each key has been in its present state.

    If more than PAUSE_SECONDS pass between two observations, the time between them does not count, because the process
    was stopped or the machine was suspended.
    """

    def __init__(self) -> None:
        self._observed: dict[Key, tuple[object, float]] = {}
        self._looked_at = 0.0
        self._now = 0.0

    def observe(self, now: float) -> None:
        """Begin an observation at the time `now`, in seconds of a clock that stops while the machine is suspended."""
        passed = now - self._looked_at
        self._now += passed if passed <= OBSERVATION_GAP_SECONDS_MAX else 0.0
        self._looked_at = now

    def seconds_in_state(self, key: Key, state: object) -> float:
        """Return the seconds for which `key` has been in the state `state`, without pauses.

        0 if its state has just changed.
        """
        entry = self._observed.get(key)
        if entry is None or entry[0] != state:
            entry = self._observed[key] = (state, self._now)
        return self._now - entry[1]
