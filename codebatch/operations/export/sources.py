"""The content of files with findings, read from the snapshot of a batch."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from codebatch.errors import ObjectMissing
from codebatch.model.entry import Entry
from codebatch.query.sources.records import BatchRecords


class BatchSources:
    """A reader of the files of a batch. `lost` collects the paths of files whose content could not be found."""

    def __init__(self, records: BatchRecords, lost: Collection[bytes] = ()) -> None:
        """Wrap the records of a batch. `lost` are paths whose content is already known to be missing."""
        self._records = records
        self.lost = {*lost}

    def content(self, path: bytes) -> bytes | None:
        """Return the content of a file, or None if it is missing or the batch has no such file. Raises StoreCorrupt."""
        entry = self._entries.get(path)
        if entry is None:
            return None
        try:
            return self._records.read_object(entry)
        except ObjectMissing:
            self.lost.add(path)
            return None

    @cached_property
    def _entries(self) -> dict[bytes, Entry]:
        return {entry.path: entry for entry in self._records.items}
