"""The indexes of a batch on disk: `indexes/<batch>/<number>/`, of which the greatest number is current.

Each is a base, and an overlay where shard files are not in that. A base is a file that older indexes may have too, by a
name of their own: nothing that is published ever changes.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from codebatch.errors import CorruptFile, StoreError
from codebatch.index.terms import TERMS_VERSION
from codebatch.model.digest import Digest
from codebatch.model.document import Document, decode_document
from codebatch.store import layout
from codebatch.store.documents import read_document
from codebatch.store.store import Store

INDEX_FORMAT = 2

CHANGED_PERCENT_MAX = 10
"""Of the shard files of an index so many may be in its overlay, and of the slots of its base so many dead."""

_CHUNK_BYTES = 1 << 20


class DatabaseFile(msgspec.Struct, frozen=True, kw_only=True):
    """A database: how long it is, its crc32, and by slot the digests of the trailers of the shard files it knows."""

    bytes: int
    crc32: int
    slots: tuple[Digest, ...]


class IndexFile(Document, frozen=True, kw_only=True):
    """index.json: the version of the terms that are posted, and the databases; there may be no overlay."""

    format: int = INDEX_FORMAT
    terms_version: int
    base: DatabaseFile
    overlay: DatabaseFile | None = None


class Base(NamedTuple):
    """The base of an index that is there, and where it lies."""

    path: Path
    about: DatabaseFile


def decode_index(data: bytes) -> IndexFile:
    """Read index.json. Raises DocumentError."""
    return decode_document(data, _index_decoder, INDEX_FORMAT)


_index_decoder = msgspec.json.Decoder(IndexFile)


def indexes_of(store: Store, batch_id: str) -> Path:
    """Where the indexes of a batch lie."""
    return store.root / layout.INDEXES / batch_id


def generations(store: Store, batch_id: str) -> list[int]:
    """The numbers of the indexes of a batch that are there, the current one last."""
    names = store.files.listing(indexes_of(store, batch_id))
    return sorted(number for name, _ in names if (number := layout.parse_generation(name)) is not None)


def read_index_file(store: Store, root: Path) -> IndexFile | None:
    """What an index says of itself; None where it is of another version of the terms.

    Raises CorruptFile, or FileNotFoundError.
    """
    about = read_document(store.files, root / layout.INDEX_FILE, decode_index, hint=index_hint(root.parent.name))
    return about if about.terms_version == TERMS_VERSION else None


def find_base(store: Store, batch_ids: Iterable[str], needed: Collection[Digest]) -> Base | None:
    """The base of the first of some batches' indexes that is sound and knows nearly all of some shard files, and little
    else. None where there is none.
    """
    for batch_id in batch_ids:
        try:
            found = _base_of(store, batch_id)
            if found is not None and _is_near(found.about.slots, needed) and _is_sound(store, found):
                return found
        except (FileNotFoundError, StoreError):
            continue
    return None


def _is_near(slots: Collection[Digest], needed: Collection[Digest]) -> bool:
    known, wanted = set(slots), set(needed)
    return 100 * len(wanted - known) <= CHANGED_PERCENT_MAX * len(wanted) and 100 * len(
        known - wanted
    ) <= CHANGED_PERCENT_MAX * len(known)


def _base_of(store: Store, batch_id: str) -> Base | None:
    there = generations(store, batch_id)
    if not there:
        return None
    root = indexes_of(store, batch_id) / str(there[-1])
    about = read_index_file(store, root)
    return None if about is None else Base(root / layout.INDEX_BASE, about.base)


def _is_sound(store: Store, base: Base) -> bool:
    """Read piece by piece: it may be as long as all that the batch says."""
    if store.files.size(base.path) != base.about.bytes:
        return False
    crc = 0
    for offset in range(0, base.about.bytes, _CHUNK_BYTES):
        crc = zlib.crc32(store.files.read_range(base.path, offset, _CHUNK_BYTES), crc)
    return crc == base.about.crc32


def corrupt_index(path: Path, problem: str) -> CorruptFile:
    """The error of an index of a batch, or of a file in it, at a path."""
    batch = path.parent if layout.parse_generation(path.name) else path.parent.parent
    return CorruptFile(str(path), problem, hint=index_hint(batch.name))


def index_hint(batch_id: str) -> str:
    """What to do about an index that is not what it must be."""
    return f"make it anew with: codebatch index-build --rebuild --batch {batch_id}"
