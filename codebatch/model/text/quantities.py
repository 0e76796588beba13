"""Counts, sizes and durations for people."""

from __future__ import annotations

import re

_NUMBER = r"([0-9]{1,10}(?:\.[0-9]{1,6})?)"
_DURATION = re.compile(rf"(?=.)(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?")


def count_text(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: `1 file`, `2 files`.

    Pass `plural` if the plural of the noun is not formed with `s`.
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def percentage_of(part: int, total: int) -> float:
    """Return `part` as a percentage of `total`, rounded down to one decimal. Return 100 if `total` is 0."""
    return 1000 * part // total / 10 if total else 100.0


def human_bytes(count: int) -> str:
    """Return a size for people, in powers of 1000: bytes, kB, MB, and so on."""
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"


def human_seconds(seconds: float) -> str:
    """Return a duration for people: `0.4s`, `32s`, `4m 18s`, `2h 03m`."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    total_seconds = round(seconds)
    if total_seconds < 60:
        return f"{total_seconds}s"
    minutes, remainder = divmod(total_seconds, 60)
    return f"{minutes}m {remainder:02d}s" if minutes < 60 else f"{minutes // 60}h {minutes % 60:02d}m"


def parse_seconds(text: str) -> float | None:
    """Return the seconds of a duration: `90`, `1.5s`, `10m`, `1h30m`. Return None for any other text."""
    found = _DURATION.fullmatch(f"{text}s" if text[-1:].isdigit() and text.replace(".", "").isdigit() else text)
    if found is None:
        return None
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return 3600 * hours + 60 * minutes + seconds
