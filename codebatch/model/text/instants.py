"""Times as text: as answers have them, and as programs print them.

Programs print a time of day, an ISO 8601 timestamp, or seconds since 1970.
"""

from __future__ import annotations

import datetime
import re

_EPOCH_SECONDS_MIN = 1_000_000_000
_UNITS_NS = ((1_000_000_000_000_000_000, 1), (1_000_000_000_000_000, 1_000), (1_000_000_000_000, 1_000_000))
"""Units of epoch times, as (minimum, unit in ns).

A number of at least the minimum is in ns, µs or ms. Smaller numbers are in seconds.
"""
_TIME_OF_DAY = re.compile(
    r"(\d{1,2})(?::(\d\d)(?::(\d\d))?)?\s*([ap]\.?m\.?)?\s*\(?([A-Za-z_+-]+(?:/[A-Za-z_+-]+)*)?\)?", re.I
)
_PAST_SECONDS_MAX = 3600
"""Maximum age in seconds of a time of day. If today's time passed longer ago, tomorrow's time is meant."""


def instant_text(at_ns: int) -> str:
    """Return a time in UTC as text, to the second."""
    return datetime.datetime.fromtimestamp(at_ns / 1e9, tz=datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_instant(text: str, now: datetime.datetime) -> datetime.datetime | None:
    """Return the time that a text denotes, or None. A text without a time zone is in the time zone of `now`.

    The text may be `14:05`, `2:05 pm`, `3pm (Europe/Berlin)`, ISO 8601, or an epoch in s, ms, µs or ns. A time of day
    is today's. If it passed more than an hour ago, it is tomorrow's.
    """
    text = text.strip()
    try:
        if text.isdecimal() and int(text) >= _EPOCH_SECONDS_MIN:
            number = int(text)
            unit_ns = next((unit for minimum, unit in _UNITS_NS if number >= minimum), 1_000_000_000)
            return datetime.datetime.fromtimestamp(number * unit_ns / 1e9, tz=now.tzinfo)
        if len(text) >= len("2026-01-01") and text[4:5] == "-":
            instant = datetime.datetime.fromisoformat(re.sub(r"[Zz]\Z", "+00:00", text))
            return instant if instant.tzinfo is not None else instant.replace(tzinfo=now.tzinfo)
        return _time_of_day(text, now)
    except (ValueError, OverflowError, OSError):
        return None


def _time_of_day(text: str, now: datetime.datetime) -> datetime.datetime | None:
    match = _TIME_OF_DAY.fullmatch(text)
    if match is None or not (match[2] or match[4]):
        return None
    hour = int(match[1])
    if match[4]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match[4].lower().startswith("p") else 0)
    if match[5]:
        zone = _time_zone(match[5])
        if zone is None:
            return None
        now = now.astimezone(zone)
    instant = now.replace(hour=hour, minute=int(match[2] or 0), second=int(match[3] or 0), microsecond=0)
    is_over = (now - instant).total_seconds() > _PAST_SECONDS_MAX
    return instant + datetime.timedelta(days=1) if is_over else instant


def _time_zone(name: str) -> datetime.tzinfo | None:
    if name.upper() in ("UTC", "GMT", "Z"):
        return datetime.timezone.utc
    import zoneinfo  # Imported here because few texts have a zone.

    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None
