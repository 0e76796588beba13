"""What is in the files that findings are of, as it was frozen."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from codebatch.errors import ObjectMissing
from codebatch.model.entry import Entry
from codebatch.query.sources.records import BatchRecords


class BatchSources:
    """Reads files of a batch. `lost` are those of which the content is gone."""

    def __init__(self, records: BatchRecords, lost: Collection[bytes] = ()) -> None:
        """`lost` is what was found to be gone before."""
        self._records = records
        self.lost = {*lost}

    def content(self, path: bytes) -> bytes | None:
        """What is in a file; None where that is lost, or there is no such file. Raises StoreCorrupt."""
        entry = self._entries.get(path)
        if entry is not None:
            try:
                return self._records.read_object(entry)
            except ObjectMissing:
                pass
        self.lost.add(path)
        return None

    @cached_property
    def _entries(self) -> dict[bytes, Entry]:
        return {entry.path: entry for entry in self._records.items}
