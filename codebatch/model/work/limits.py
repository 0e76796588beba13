"""Limits of a work batch: caps on cost and attempts, a deadline, and the hours in which tasks start (SPEC.md "Limits").

A clock time is read in the zone of the batch, or in the local zone of the machine. A time of day counts as it is shown
by a clock on the wall: a minute that a change to summer time leaves out never comes, and a repeated one comes twice.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection
from typing import Literal

import msgspec

from codebatch.errors import InvalidInput

_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)\Z")
_MINUTES_OF_DAY = range(24 * 60)
_MINUTE_NS = 60_000_000_000
_MINUTES_SEARCHED_MAX = 3 * 24 * 60
"""A window that a change to summer time leaves out opens a day later. So three days always have an opening."""


CapAction = Literal["stop", "ask"]
"""The action if a cap is met: start no more tasks of its scope, or ask for a higher cap first."""


class Caps(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The maximum cost and the maximum number of attempts of the tasks in a scope."""

    cost_max: float | None = None
    attempts_max: int | None = None


NO_CAPS = Caps()


class WorkLimits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The limits of a work batch. Missing in a batch without limits.

    - `cost_max`, `attempts_max`: caps over all attempts of all tasks. `pools` has the caps of the tasks of a pool.
    - `on_cap`: whether a question is asked if a cap is met.
    - `cost_unit`: the unit of costs, for display.
    - `deadline_ns`: after this time (wall clock), no task starts. 0 if there is none.
    - `start_at_ns`: before this time (wall clock), no task starts.
    - `hours`, `pool_hours`: the hours in which tasks start, as `22:00-08:00`.
    - `zone`: the zone of the hours. Empty for the local zone of the machine.
    """

    cost_max: float | None = None
    attempts_max: int | None = None
    pools: dict[str, Caps] = msgspec.field(default_factory=dict)
    on_cap: CapAction = "stop"
    cost_unit: str = ""
    deadline_ns: int = 0
    start_at_ns: int = 0
    hours: str = ""
    pool_hours: dict[str, str] = msgspec.field(default_factory=dict)
    zone: str = ""

    @property
    def has_clock(self) -> bool:
        """Whether the time decides which tasks may start."""
        return bool(self.deadline_ns or self.start_at_ns or self.hours or self.pool_hours)


NO_LIMITS = WorkLimits()


def find_hours_problem(hours: str) -> str:
    """Return the problem of a text that should be a range of hours, or an empty text."""
    match = _HOURS.match(hours)
    if match is None:
        return "expected a range of hours, for example 22:00-08:00"
    return "a range of hours cannot be empty" if match[1] + match[2] == match[3] + match[4] else ""


def local_time(at_ns: int, zone: str) -> datetime.datetime:
    """Return a time in a zone. An empty zone is the local zone of the machine. Raises InvalidInput."""
    seconds = at_ns // 1_000_000_000
    if not zone:
        return datetime.datetime.fromtimestamp(seconds).astimezone()
    import zoneinfo  # Imported here because few lists have a zone.

    try:
        return datetime.datetime.fromtimestamp(seconds, zoneinfo.ZoneInfo(zone))
    except (zoneinfo.ZoneInfoNotFoundError, OSError) as error:
        raise InvalidInput(
            f"the time zone {zone!r} of the list is not installed", hint="install the package tzdata"
        ) from error


def open_minutes(hours: str) -> Collection[int]:
    """Return the minutes of a day, from 0 to 1439, that a range of hours contains. All if the text is not a range."""
    match = _HOURS.match(hours)
    if match is None:
        return _MINUTES_OF_DAY
    opens, closes = int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4])
    return range(opens, closes) if opens < closes else {*_MINUTES_OF_DAY} - {*range(closes, opens)}


def next_opening_ns(hours: str, zone: str, now_ns: int) -> int:
    """Return 0 if the hours are open at `now_ns`. Otherwise return the time when they open next."""
    minutes_open = open_minutes(hours)

    def is_open(at_ns: int) -> bool:
        at = local_time(at_ns, zone)
        return at.hour * 60 + at.minute in minutes_open

    if is_open(now_ns):
        return 0
    minutes = range(now_ns // _MINUTE_NS + 1, now_ns // _MINUTE_NS + 1 + _MINUTES_SEARCHED_MAX)
    return next((minute * _MINUTE_NS for minute in minutes if is_open(minute * _MINUTE_NS)), minutes[-1] * _MINUTE_NS)
