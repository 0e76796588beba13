"""Counters of what was read to answer a question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from codebatch.query.fields import JsonRecord


class Reading(msgspec.Struct, kw_only=True):
    """The amount of reading that an answer needed.

    `shards` are the shards in question. For `told_by_counts` of them, the stored counts sufficed. `shards_read` were
    read, `shards_read_in_part` of them partially. An index excluded the rest. `matched` is the number of matching
    records, without records read for languages or failures.
    """

    shards: int = 0
    told_by_counts: int = 0
    shards_read: int = 0
    shards_read_in_part: int = 0
    matched: int = 0

    @property
    def left_out_by_index(self) -> int:
        """The number of shards that an index excluded."""
        return self.shards - self.told_by_counts - self.shards_read

    def note(self, parts: int | None) -> None:
        """Count a shard as read. `parts` is the number of frames or items that are read, or None for all."""
        if parts != 0:
            self.shards_read += 1
        if parts:
            self.shards_read_in_part += 1

    def count_matched(self, records: Iterable[JsonRecord]) -> Iterator[JsonRecord]:
        """Yield the same records and count each as matched."""
        for record in records:
            self.matched += 1
            yield record
