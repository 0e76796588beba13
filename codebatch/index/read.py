"""An index that is there: opened only where it is sound, and asked which items hold what is looked for.

It narrows and never answers. What it knows of a shard file holds of any whose trailer has the digest: the same records
are behind it, in whatever batch. Of one that it does not know it says so, and the caller reads all of it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from codebatch.index import keys
from codebatch.index.database import Database
from codebatch.index.generations import (
    DatabaseFile,
    IndexFile,
    corrupt_index,
    generations,
    indexes_of,
    read_index_file,
)
from codebatch.index.keys import Lookup
from codebatch.index.terms import KINDS_POSTED, Terms
from codebatch.model.digest import Digest
from codebatch.store import layout
from codebatch.store.outputs import TaskOutput
from codebatch.store.store import Store


class _Part(NamedTuple):
    path: Path
    slots: tuple[Digest, ...]
    database: Database


class Index:
    """A sound index, held in memory. Every method raises CorruptFile where it shows to be unsound all the same."""

    def __init__(self, parts: Sequence[tuple[Path, DatabaseFile, bytes]]) -> None:
        """Of each database where it lies, for people, what index.json says of it, and all its bytes."""
        self._parts = [_Part(path, about.slots, _database(path, data)) for path, about, data in parts]
        self._known = {digest for part in self._parts for digest in part.slots}
        self._found: tuple[tuple[Lookup, ...], dict[Digest, set[int]]] = ((), {})

    def posted(self) -> dict[Digest, Terms]:
        """What each shard file posts that it knows."""
        posted: dict[Digest, Terms] = {digest: {} for digest in self._known}
        for part in self._parts:
            try:
                for key, value in part.database.iter_from(b""):
                    for slot, items in keys.items_by_slot([value]).items():
                        posted[_digest(part, slot)][key] = struct.pack(f"<{len(items)}I", *items)
            except ValueError as error:
                raise corrupt_index(part.path, f"is damaged: {error}") from error
        return posted

    def find(self, lookups: Sequence[Lookup]) -> dict[Digest, set[int]]:
        """The items that hold any of what is looked for, by the digest of their shard file's trailer."""
        asked = tuple(lookups)
        last, found = self._found  # One object: several threads may ask.
        if last != asked:  # It is asked the same of each task.
            found = self._look_up(asked)
            self._found = asked, found
        return found

    def narrow(self, output: TaskOutput, lookups: Sequence[Lookup]) -> list[Sequence[int] | None]:
        """For each shard of a task the items, ascending, that hold any of what is looked for. None: all may."""
        found = self.find(lookups)
        return [
            sorted(found.get(shard.digest, ()))
            if shard.digest in self._known or KINDS_POSTED.isdisjoint(shard.counts.kinds)
            else None
            for shard in output.shards
        ]

    def close(self) -> None:
        """Give the memory back. Nothing may be asked any more."""
        for part in self._parts:
            part.database.close()

    def _look_up(self, lookups: Sequence[Lookup]) -> dict[Digest, set[int]]:
        found: dict[Digest, set[int]] = {}
        for part in self._parts:
            try:
                values = [value for lookup in lookups for value in part.database.iter_values(lookup)]
                for slot, items in keys.items_by_slot(values).items():
                    found.setdefault(_digest(part, slot), set()).update(items)
            except ValueError as error:
                raise corrupt_index(part.path, f"is damaged: {error}") from error
        return found


def _digest(part: _Part, slot: int) -> Digest:
    """Raises ValueError where there is no such slot."""
    try:
        return part.slots[slot]
    except IndexError as error:
        raise ValueError("it names a slot that there is not") from error


def _database(path: Path, data: bytes) -> Database:
    try:
        return Database(data)
    except ValueError as error:
        raise corrupt_index(path, f"is damaged: {error}") from error


def open_index(store: Store, batch_id: str) -> Index | None:
    """The current index of a batch; None where there is none, or only one of another version of the terms.

    Raises CorruptFile where it is unsound, and StoreError where it cannot be read.
    """
    for _ in range(2):
        there = generations(store, batch_id)
        if not there:
            return None
        root = indexes_of(store, batch_id) / str(there[-1])
        try:
            about = read_index_file(store, root)
            return None if about is None else Index(_read_databases(store, root, about))
        except FileNotFoundError:
            if generations(store, batch_id) == there:  # Else a newer one took its place while it was read.
                raise corrupt_index(root, "lacks a file") from None
    return None


def _read_databases(store: Store, root: Path, index: IndexFile) -> list[tuple[Path, DatabaseFile, bytes]]:
    read: list[tuple[Path, DatabaseFile, bytes]] = []
    for name, about in ((layout.INDEX_BASE, index.base), (layout.INDEX_OVERLAY, index.overlay)):
        if about is not None:
            path = root / name
            # One more byte tells of any length: there are files that are longer than there is memory.
            data = store.files.read_range(path, 0, about.bytes + 1)
            if len(data) != about.bytes or zlib.crc32(data) != about.crc32:
                raise corrupt_index(path, "is damaged: it is not what index.json says")
            read.append((path, about, data))
    return read
