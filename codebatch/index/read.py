"""An index that is there: opened only where it is sound, and asked which items hold what is looked for.

It narrows and never answers. What it knows of a shard holds only of the shard file whose trailer it names: of another
one, and of one that it does not name, it says so, and the caller reads all of it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from codebatch.errors import CorruptFile
from codebatch.index import keys
from codebatch.index.database import Database
from codebatch.index.keys import Lookup, Slot
from codebatch.index.terms import TERMS_VERSION
from codebatch.model.document import Document, decode_document
from codebatch.store import layout
from codebatch.store.documents import read_document
from codebatch.store.outputs import TaskOutput
from codebatch.store.store import Store

INDEX_FORMAT = 1


class IndexFile(Document, frozen=True, kw_only=True):
    """index.json: the version of the terms that are posted, and how long the database is, and its crc32."""

    format: int = INDEX_FORMAT
    terms_version: int
    bytes: int
    crc32: int


def decode_index(data: bytes) -> IndexFile:
    """Read index.json. Raises DocumentError."""
    return decode_document(data, _index_decoder, INDEX_FORMAT)


_index_decoder = msgspec.json.Decoder(IndexFile)


class Index:
    """A sound index, held in memory. Every method raises CorruptFile where it shows to be unsound all the same."""

    def __init__(self, path: Path, data: bytes) -> None:
        """`path` is where it lies, for people; `data` its whole database."""
        self._path = path
        try:
            self._database = Database(data)
        except ValueError as error:
            raise self._corrupt(error) from error

    @cached_property
    def slots(self) -> dict[tuple[str, str], tuple[int, Slot]]:
        """The shard files that it knows, by task and shard, each with its number."""
        try:
            found = [(key, keys.decode_slot(value)) for key, value in self._database.iter_from(keys.SLOT)]
        except ValueError as error:
            raise self._corrupt(error) from error
        return {(slot.task, slot.shard): (int.from_bytes(key[1:], "big"), slot) for key, slot in found}

    def contents(self) -> dict[bytes, bytes]:
        """All keys with their values."""
        try:
            return dict(self._database.iter_from(b""))
        except ValueError as error:
            raise self._corrupt(error) from error

    def find(self, lookups: Iterable[Lookup]) -> dict[int, set[int]]:
        """The items that hold any of what is looked for, by the number of their slot."""
        found: dict[int, set[int]] = {}
        try:
            for lookup in lookups:
                if lookup.is_prefix:
                    values = [value for _, value in self._database.iter_from(lookup.key)]
                else:
                    values = [self._database.get(lookup.key) or b""]
                for value in values:
                    for slot, item in keys.decode_postings(value):
                        found.setdefault(slot, set()).add(item)
        except ValueError as error:
            raise self._corrupt(error) from error
        return found

    def narrow(self, output: TaskOutput, lookups: Iterable[Lookup]) -> list[Sequence[int] | None]:
        """For each shard of a task the items, ascending, that hold any of what is looked for. None: all may."""
        found = self.find(lookups)
        narrowed: list[Sequence[int] | None] = []
        for shard in output.shards:
            number, slot = self.slots.get((output.task, shard.shard), (0, None))
            is_known = slot is not None and slot.digest == shard.digest
            narrowed.append(sorted(found.get(number, ())) if is_known else None)
        return narrowed

    def close(self) -> None:
        """Give the memory back. Nothing may be asked any more."""
        self._database.close()

    def _corrupt(self, error: ValueError) -> CorruptFile:
        return _corrupt(self._path, f"is damaged: {error}")


def generations(store: Store, batch_id: str) -> list[int]:
    """The numbers of the indexes of a batch that are there, the current one last."""
    names = store.files.listing(indexes_of(store, batch_id))
    return sorted(number for name, _ in names if (number := layout.parse_generation(name)) is not None)


def indexes_of(store: Store, batch_id: str) -> Path:
    """Where the indexes of a batch lie."""
    return store.root / layout.INDEXES / batch_id


def open_index(store: Store, batch_id: str) -> Index | None:
    """The current index of a batch; None where there is none, or only one of another version of the terms.

    Raises CorruptFile where it is unsound, and StoreError where it cannot be read.
    """
    for _ in range(2):
        there = generations(store, batch_id)
        if not there:
            return None
        try:
            return _open(store, indexes_of(store, batch_id) / str(there[-1]))
        except FileNotFoundError:
            if generations(store, batch_id) == there:  # Else a newer one took its place while it was read.
                raise _corrupt(indexes_of(store, batch_id) / str(there[-1]), "lacks a file") from None
    return None


def _open(store: Store, root: Path) -> Index | None:
    about = read_document(store.files, root / layout.INDEX_FILE, decode_index, hint=index_hint(root.parent.name))
    if about.terms_version != TERMS_VERSION:
        return None
    path = root / layout.INDEX_DATABASE
    data = store.files.read(path)
    if len(data) != about.bytes or zlib.crc32(data) != about.crc32:
        raise _corrupt(path, "is damaged: it is not what index.json says")
    return Index(path, data)


def _corrupt(path: Path, problem: str) -> CorruptFile:
    """`path` is that of an index of a batch, or of a file in it."""
    batch = path.parent if layout.parse_generation(path.name) else path.parent.parent
    return CorruptFile(str(path), problem, hint=index_hint(batch.name))


def index_hint(batch_id: str) -> str:
    """What to do about an index that is not what it must be."""
    return f"make it anew with: codebatch index-build --rebuild --batch {batch_id}"
