"""How much of a batch has ended, and how."""

from __future__ import annotations

import msgspec


class OutcomeCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many (item, task) pairs are planned, and how many ended how."""

    planned: int
    results: int = 0
    failed: int = 0
    cancelled: int = 0

    @property
    def open(self) -> int:
        """Pairs without an outcome."""
        return self.planned - self.results - self.failed - self.cancelled
