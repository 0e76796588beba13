"""Instants as programs print them: a time of day, an ISO 8601 timestamp, or seconds since 1970."""

from __future__ import annotations

import datetime
import re

_EPOCH_MIN = 1_000_000_000
_UNITS_NS = ((1_000_000_000_000_000_000, 1), (1_000_000_000_000_000, 1_000), (1_000_000_000_000, 1_000_000))
"""From which number on an epoch is in nanoseconds, microseconds, milliseconds, and how many nanoseconds each has."""
_TIME = re.compile(
    r"(\d{1,2})(?::(\d\d)(?::(\d\d))?)?\s*([ap]\.?m\.?)?\s*\(?([A-Za-z_+-]+(?:/[A-Za-z_+-]+)*)?\)?", re.I
)
_PAST_SECONDS_MAX = 3600
"""A time of day that was over for so long means the next day."""


def parse_instant(text: str, now: datetime.datetime) -> datetime.datetime | None:
    """The instant that a text names; None if it names none. `now` has the time zone of a text without one.

    It may be `14:05`, `2:05 pm`, `3pm (Europe/Berlin)`, ISO 8601, or an epoch in s, ms, µs or ns. A time of day is the
    one of today, or of tomorrow if it has been over for more than an hour.
    """
    text = text.strip()
    try:
        if text.isdecimal() and int(text) >= _EPOCH_MIN:
            number = int(text)
            unit_ns = next((unit for least, unit in _UNITS_NS if number >= least), 1_000_000_000)
            return datetime.datetime.fromtimestamp(number * unit_ns / 1e9, tz=now.tzinfo)
        if len(text) >= len("2026-01-01") and text[4:5] == "-":
            found = datetime.datetime.fromisoformat(re.sub(r"[Zz]\Z", "+00:00", text))
            return found if found.tzinfo is not None else found.replace(tzinfo=now.tzinfo)
        return _time_of_day(text, now)
    except (ValueError, OverflowError, OSError):
        return None


def _time_of_day(text: str, now: datetime.datetime) -> datetime.datetime | None:
    match = _TIME.fullmatch(text)
    if match is None or not (match[2] or match[4]):
        return None
    hour = int(match[1])
    if match[4]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match[4].lower().startswith("p") else 0)
    if match[5]:
        zone = _zone(match[5])
        if zone is None:
            return None
        now = now.astimezone(zone)
    found = now.replace(hour=hour, minute=int(match[2] or 0), second=int(match[3] or 0), microsecond=0)
    is_over = (now - found).total_seconds() > _PAST_SECONDS_MAX
    return found + datetime.timedelta(days=1) if is_over else found


def _zone(name: str) -> datetime.tzinfo | None:
    if name.upper() in ("UTC", "GMT", "Z"):
        return datetime.timezone.utc
    import zoneinfo  # Few texts have a zone.

    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None
