"""The wall clock of a simulated machine, and checks of the times at which tasks are assigned."""

from __future__ import annotations

import datetime
import random

from codebatch.model.work.limits import WorkLimits
from codebatch.model.work.work_batch import Work

STEP_NS = 1_000_000_000
JUMPS_SECONDS = (-3600, -600, -60, 60, 600, 3600, 85_800)
_ZONE_MINUTES = {"": 0, "UTC": 0, "Asia/Kolkata": 330}
"""Zones without summer time, so that the time of day is computed without the code under test."""


class WallClock:
    """A clock that advances by a second in each step, and that faults set forwards and backwards."""

    def __init__(self, begin_ns: int) -> None:
        self._ns = begin_ns
        self.jumps = 0

    def jump(self, chance: random.Random) -> None:
        """Set the clock."""
        self.jumps += 1
        self._ns += chance.choice(JUMPS_SECONDS) * STEP_NS

    def read_ns(self, steps: int) -> int:
        """Return the time after a number of steps."""
        return self._ns + steps * STEP_NS


class ClockReadings:
    """The times that a coordinator has read in its present turn."""

    def __init__(self) -> None:
        self._readings: list[int] = []

    def begin_turn(self) -> None:
        """Record that a turn begins."""
        self._readings.clear()

    def add(self, at_ns: int) -> int:
        """Record and return a time that was read."""
        self._readings.append(at_ns)
        return at_ns

    def check_start(self, work: Work, task_pools: dict[str, int], deadlines_ns: set[int]) -> None:
        """Check that a task may start at a time that was read in this turn, with one of the deadlines."""
        times = [(at_ns, deadline_ns) for at_ns in self._readings for deadline_ns in deadlines_ns]
        problems = {_find_problem(work.limits_or_none, task_pools, deadline_ns, at_ns) for at_ns, deadline_ns in times}
        assert not problems or None in problems, f"a task starts {sorted(map(str, problems))}"


def _find_problem(limits: WorkLimits, pools: dict[str, int], deadline_ns: int, at_ns: int) -> str | None:
    if at_ns < limits.start_at_ns:
        return "before the time of the list"
    if deadline_ns and at_ns >= deadline_ns:
        return "after the deadline"
    minute = (at_ns // 60_000_000_000 + _ZONE_MINUTES[limits.zone]) % 1440
    for hours in (limits.hours, *(limits.pool_hours.get(pool, "") for pool in pools)):
        opens, closes = (_minutes(text) for text in hours.split("-")) if hours else (0, 1440)
        is_open = opens <= minute < closes if opens < closes else not closes <= minute < opens
        if not is_open:
            return "outside of its hours"
    return None


def _minutes(text: str) -> int:
    hour, minute = text.split(":")
    return int(hour) * 60 + int(minute)


def draw_closed_hours(begin_ns: int, zone: str, chance: random.Random) -> str:
    """Return hours that close some minutes after the begin of the batch, and open again soon."""
    minute = begin_ns // 60_000_000_000 + _ZONE_MINUTES[zone]
    closes = minute + chance.randint(-10, 8)
    opens = closes + chance.randint(3, 20)
    texts = [f"{at % 1440 // 60:02}:{at % 60:02}" for at in (opens, closes)]
    return "-".join(texts)


def draw_begin_ns(chance: random.Random) -> int:
    """Return a time at noon, or shortly before midnight."""
    hour, minute = chance.choice(((12, 0), (23, 50)))
    return round(datetime.datetime(2026, 7, 1, hour, minute, tzinfo=datetime.timezone.utc).timestamp()) * 10**9
