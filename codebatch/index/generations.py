"""The indexes of a batch on disk: `indexes/<batch>/<number>/`, of which the greatest number is current.

Each is a base, and an overlay where shard files are not in that: layers, which are cut into parts, a file each. The
files of a base are those of older indexes too, by names of their own: nothing that is published ever changes.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from codebatch.errors import CorruptFile, StoreError
from codebatch.index.keys import TERMS_VERSION
from codebatch.model.digest import Digest
from codebatch.model.documents import Document, decode_document
from codebatch.store import layout
from codebatch.store.batches.store import StoreDir
from codebatch.store.documents import read_document
from codebatch.system.files.file_reader import FileReader

INDEX_FORMAT = 1

CHANGED_PERCENT_MAX = 10
"""Of the shard files of an index so many may be in its overlay, and of the slots of its base so many dead."""


class LayerPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a layer: its first key, the length and crc32 of its file, and its uncompressed length `content`."""

    first: bytes
    length: int
    crc32: int
    content: int


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """A layer of an index: its parts in the order of keys.

    `slots` are the digests of the trailers of the result files that the layer covers.
    """

    parts: tuple[LayerPart, ...]
    slots: tuple[Digest, ...]


class IndexFile(Document, frozen=True, kw_only=True):
    """The document index.json: the version of the indexed terms, and the layers. There may be no overlay."""

    format: int = INDEX_FORMAT
    terms_version: int
    base: Layer
    overlay: Layer | None = None


class IndexBase(msgspec.Struct, frozen=True):
    """The base of an index that is there, and the directory in which its parts lie."""

    root: Path
    layer: Layer


def decode_index(data: bytes) -> IndexFile:
    """Read index.json. Raises DocumentError."""
    return decode_document(data, IndexFile, INDEX_FORMAT)


def indexes_of(store: StoreDir, batch_id: str) -> Path:
    """Where the indexes of a batch lie."""
    return store.root / layout.INDEXES / batch_id


def generations(store: StoreDir, batch_id: str) -> list[int]:
    """The numbers of the indexes of a batch that are there, the current one last."""
    names = store.files.listing(indexes_of(store, batch_id))
    return sorted(number for name in names if (number := layout.parse_generation(name)) is not None)


def read_index_file(store: StoreDir, root: Path) -> IndexFile | None:
    """What an index says of itself; None where it is of another version of the terms.

    Raises CorruptFile, or FileNotFoundError.
    """
    about = read_document(store.files, root / layout.INDEX_FILE, decode_index, hint=index_hint(root.parent.name))
    return about if about.terms_version == TERMS_VERSION else None


def find_base(store: StoreDir, batch_ids: Iterable[str], needed: Collection[Digest]) -> IndexBase | None:
    """The base of the first of some batches' indexes that is sound and knows nearly all of some shard files, and little
    else. None where there is none.
    """
    for batch_id in batch_ids:
        try:
            found = _base_of(store, batch_id)
            if found is not None and _is_near(found.layer.slots, needed) and _is_sound(store, found):
                return found
        except (FileNotFoundError, StoreError):
            continue
    return None


def _is_near(slots: Collection[Digest], needed: Collection[Digest]) -> bool:
    known, wanted = set(slots), set(needed)
    return 100 * len(wanted - known) <= CHANGED_PERCENT_MAX * len(wanted) and 100 * len(
        known - wanted
    ) <= CHANGED_PERCENT_MAX * len(known)


def _base_of(store: StoreDir, batch_id: str) -> IndexBase | None:
    there = generations(store, batch_id)
    if not there:
        return None
    root = indexes_of(store, batch_id) / str(there[-1])
    about = read_index_file(store, root)
    return None if about is None else IndexBase(root, about.base)


def _is_sound(store: StoreDir, base: IndexBase) -> bool:
    for number, part in enumerate(base.layer.parts):
        read_part(store.files, base.root / layout.index_part_name(layout.INDEX_BASE, number), part)
    return True


def read_part(files: FileReader, path: Path, part: LayerPart) -> bytes:
    """The file of a part. Raises CorruptFile where it is not what index.json says, or FileNotFoundError."""
    # One more byte tells of any length: there are files that are longer than there is memory.
    data = files.read_range(path, 0, part.length + 1)
    if len(data) != part.length or zlib.crc32(data) != part.crc32:
        raise corrupt_index(path, "is damaged: it does not match index.json")
    return data


def corrupt_index(path: Path, problem: str) -> CorruptFile:
    """The error of an index of a batch, or of a file in it, at a path."""
    batch = path.parent if layout.parse_generation(path.name) else path.parent.parent
    return CorruptFile(str(path), problem, hint=index_hint(batch.name))


def index_hint(batch_id: str) -> str:
    """What to do about an index that is not what it must be."""
    return f"rebuild it with: codebatch index build --rebuild --batch {batch_id}"
