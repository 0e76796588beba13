"""Counts and sizes for people."""

from __future__ import annotations


def count_of(count: int, noun: str, plural: str = "") -> str:
    """`1 file`, `2 files`; of nouns that take more than an `s`, with their `plural`."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def percent_of(part: int, whole: int) -> float:
    """How much of a whole a part is, of 100, to one decimal; never rounded up. All of nothing is 100."""
    return 1000 * part // whole / 10 if whole else 100.0


def human_bytes(count: int) -> str:
    """A size, in powers of 1000."""
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"


def human_seconds(seconds: float) -> str:
    """How long something took: `0.4s`, `32s`, `4m 18s`, `2h 03m`."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    minutes, left = divmod(whole, 60)
    return f"{minutes}m {left:02d}s" if minutes < 60 else f"{minutes // 60}h {minutes % 60:02d}m"
