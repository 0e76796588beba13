"""How long something takes yet, as people say it: a range; and when something is over."""

from __future__ import annotations

import datetime

_UNITS = (("h", 3600), ("m", 60), ("s", 1))


def eta_text(eta: tuple[float, float, float] | None, *, unknown: int = 0, blocked: int = 0, past: float = 0.0) -> str:
    """How long it takes yet, so many seconds after that was said: `12-19 m left`; empty where nobody knows.

    Where some are `blocked` nobody knows when they are answered: it is `12-19 m left after an answer`.
    """
    if eta is None:
        return ""
    left = "left after an answer" if blocked else "left"
    low, _, high = (max(0.0, each - past) for each in eta)
    if unknown:
        return f"at least {_rounded(low)} {left}"
    unit, seconds = next(each for each in _UNITS if high >= each[1] * 2 or each[1] == 1)
    first, last = round(low / seconds), max(1, round(high / seconds))
    return f"{first}-{last} {unit} {left}" if first < last else f"about {last} {unit} {left}"


def clock_time(at_ns: int) -> str:
    """A time by the clock of this place: `14:05:30`, of another day `2026-07-01 14:05:30`."""
    at = datetime.datetime.fromtimestamp(at_ns / 1e9).astimezone()
    is_today = at.date() == datetime.datetime.now(at.tzinfo).date()
    return f"{at:%H:%M:%S}" if is_today else f"{at:%Y-%m-%d %H:%M:%S}"


def _rounded(seconds: float) -> str:
    unit, size = next(each for each in _UNITS if seconds >= each[1] * 2 or each[1] == 1)
    return f"{round(seconds / size)} {unit}"
