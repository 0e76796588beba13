"""Counts of the outcomes of a batch by type."""

from __future__ import annotations

import msgspec


class OutcomeCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of (item, task) pairs: of all planned pairs, and of the pairs with an outcome, by its type."""

    planned: int
    results: int = 0
    failed: int = 0
    cancelled: int = 0

    @property
    def open_count(self) -> int:
        """The number of pairs without an outcome."""
        return self.planned - self.results - self.failed - self.cancelled
