"""Limits on the number of entries in a report."""

from __future__ import annotations

import msgspec

PAGE_BYTES_MAX = 5_000_000
"""Maximum size of a page in bytes. If a page is larger, it is made again with smaller limits."""


class ReportLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The maximum number of entries of each kind. `text` is the maximum number of characters in a text."""

    nodes: int = 50_000
    functions: int = 300
    copies: int = 40
    places: int = 20
    copied_lines: int = 60
    cycles: int = 20
    cycle_steps: int = 12
    directories: int = 24
    rules: int = 80
    changed: int = 200
    languages: int = 12
    text: int = 240

    def halved_limits(self) -> ReportLimits:
        """Return limits with half of each number, but at least 1."""
        return ReportLimits(**{name: max(1, value // 2) for name, value in msgspec.structs.asdict(self).items()})


def cut_text(text: str, length: int) -> str:
    """Return a text with at most `length` characters. If it is cut, `…` is appended."""
    return text if len(text) <= length else text[:length] + "…"


def cut_path(text: str, length: int) -> str:
    """Return a path with at most `length` characters.

    A longer path is cut at its start, because its end names the file.

    `…` is then prepended.
    """
    return text if len(text) <= length else "…" + text[-length:]
