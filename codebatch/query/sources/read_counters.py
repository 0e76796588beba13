"""What was read for a question, counted while it was answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from codebatch.query.fields import JsonRecord


class Reading(msgspec.Struct, kw_only=True):
    """How much of the shards of a batch was read.

    Of the shards in question some are `told_by_counts`: that they hold nothing that is asked for, or how much of it.
    `shards_read` were read, `shards_read_in_part` of them in part; the rest an index left out. `matched` counts the
    records that passed, and none of those that tell the languages of files and what failed.
    """

    shards: int = 0
    told_by_counts: int = 0
    shards_read: int = 0
    shards_read_in_part: int = 0
    matched: int = 0

    @property
    def left_out_by_index(self) -> int:
        """Shards that no more needed to be read than those told by counts."""
        return self.shards - self.told_by_counts - self.shards_read

    def note(self, parts: int | None) -> None:
        """A shard is read: so many frames or items of it, all where it is None."""
        if parts != 0:
            self.shards_read += 1
        if parts:
            self.shards_read_in_part += 1

    def count_matched(self, records: Iterable[JsonRecord]) -> Iterator[JsonRecord]:
        """The same records, each of which passed."""
        for record in records:
            self.matched += 1
            yield record
