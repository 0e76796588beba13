"""How much a report holds."""

from __future__ import annotations

import msgspec

PAGE_BYTES_MAX = 5_000_000
"""Of the whole file. Where a page would be greater, it is made again with smaller limits."""


class ReportLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many there are at most of each; characters of a text."""

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

    def halved(self) -> ReportLimits:
        """Half as much of all, and at least one."""
        return ReportLimits(**{name: max(1, value // 2) for name, value in msgspec.structs.asdict(self).items()})


def cut(text: str, length: int) -> str:
    """A text, of a long one the beginning."""
    return text if len(text) <= length else text[:length] + "…"


def cut_path(text: str, length: int) -> str:
    """A path, of a long one the end, for there are the names of files."""
    return text if len(text) <= length else "…" + text[-length:]
