"""Counters of the data that was read for an answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from codebatch.query.fields import JsonRecord


class ReadCounters(msgspec.Struct, kw_only=True):
    """The amount of data that was read for an answer.

    - `shards`: all shards of the queried tasks.
    - `answered_from_counts`: the shards for which stored counts sufficed.
    - `shards_read`: the shards that were read. An index excluded the remaining ones.
    - `shards_read_in_part`: the shards of which only some frames or items were read.
    - `matched`: the number of matching records. Records that were read only for languages or failures do not count.
    """

    shards: int = 0
    answered_from_counts: int = 0
    shards_read: int = 0
    shards_read_in_part: int = 0
    matched: int = 0

    @property
    def excluded_by_index(self) -> int:
        """The number of shards that an index excluded."""
        return self.shards - self.answered_from_counts - self.shards_read

    def count_shard(self, parts: int | None) -> None:
        """Count a shard as read completely or in part.

        `parts` is the number of frames or items of the shard that are read, or None for all. If it is 0, the shard is
        not counted.
        """
        if parts != 0:
            self.shards_read += 1
        if parts:
            self.shards_read_in_part += 1

    def count_matched(self, records: Iterable[JsonRecord]) -> Iterator[JsonRecord]:
        """Yield the records unchanged, and count each of them as matched."""
        for record in records:
            self.matched += 1
            yield record
