"""The indexes of a batch on disk: `indexes/<batch>/<number>/`. The one with the highest number is current.

An index has a base layer. If the base does not cover all shard files, the index also has an overlay for the remaining
files. A layer is divided into parts, each in a file. If two indexes have the same base, they share the files of the
base by hard links. Published files never change.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from codebatch.errors import CorruptFile, StoreError
from codebatch.index.keys import TERMS_VERSION
from codebatch.index.words import WORDS_VERSION
from codebatch.model.digest import Digest
from codebatch.model.documents import Document, decode_document
from codebatch.store import layout
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.documents import read_document
from codebatch.system.files.file_reader import FileReader

INDEX_FORMAT = 1

OVERLAY_PERCENT_MAX = 10
"""Maximum change of the shard files, in percent, up to which a base is reused.

At most this percentage of the needed shard files may be missing from the base. At most the same percentage of the
base's shard files may be no longer needed.
"""


class LayerPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a layer: its first key, the length and crc32 of its file, and its uncompressed length `content`."""

    first: bytes
    length: int
    crc32: int
    content: int


class IndexLayer(msgspec.Struct, frozen=True, kw_only=True):
    """A layer of an index: its parts in the order of keys.

    `slots` are the digests of the trailers of the result files that the layer covers.
    """

    parts: tuple[LayerPart, ...]
    slots: tuple[Digest, ...]


class WordSegment(msgspec.Struct, frozen=True, kw_only=True):
    """A segment of the word index: the words of a number of contents (word_segments.py).

    - `contents`: the number of contents. `group` of them, one after the other, share a slot.
    - `buckets`: the number of buckets, a power of two.
    - `length`: the length of its file in bytes.
    - `keys_crc32` and `directory_crc32`: the checksums of the parts of the file that are read whole.
    """

    contents: int
    group: int
    buckets: int
    length: int
    keys_crc32: int
    directory_crc32: int


class ContentTable(msgspec.Struct, frozen=True, kw_only=True):
    """The file with the place of the content of each item: its length, its crc32 and the number of items."""

    length: int
    crc32: int
    items: int


class WordLayer(msgspec.Struct, frozen=True, kw_only=True):
    """The words of the files of the batch: the version of the words, the segments, and the places of the contents."""

    version: int = WORDS_VERSION
    segments: tuple[WordSegment, ...]
    contents: ContentTable


class IndexFile(Document, frozen=True, kw_only=True):
    """The document index.json: the version of the indexed terms, the layers, and the words.

    There may be no overlay. There are no words if the index has been built by an older version of this program.
    """

    format: int = INDEX_FORMAT
    terms_version: int
    base: IndexLayer
    overlay: IndexLayer | None = None
    words: WordLayer | None = None

    @property
    def current_words(self) -> WordLayer | None:
        """The words, or None if they have another version."""
        return self.words if self.words is not None and self.words.version == WORDS_VERSION else None


class IndexBase(msgspec.Struct, frozen=True):
    """The base layer of an existing index, and the directory of its parts."""

    root: Path
    layer: IndexLayer


def decode_index(data: bytes) -> IndexFile:
    """Decode index.json. Raises DocumentError."""
    return decode_document(data, IndexFile, INDEX_FORMAT)


def index_directory(store: StoreDir, batch_id: str) -> Path:
    """Return the directory that contains the indexes of a batch."""
    return store.root / layout.INDEXES / batch_id


def list_generations(store: StoreDir, batch_id: str) -> list[int]:
    """Return the numbers of the indexes of a batch, ascending, so the current one is last."""
    names = store.files.listing(index_directory(store, batch_id))
    return sorted(number for name in names if (number := layout.parse_generation_name(name)) is not None)


def read_index_file(store: StoreDir, root: Path) -> IndexFile | None:
    """Read index.json of an index. Return None if its terms have another version than TERMS_VERSION.

    Raises CorruptFile or FileNotFoundError.
    """
    about = read_document(store.files, root / layout.INDEX_FILE, decode_index, hint=index_hint(root.parent.name))
    return about if about.terms_version == TERMS_VERSION else None


def is_indexed(store: StoreDir, batch_id: str) -> bool:
    """Return whether a batch has an index of the current version. Its parts may be damaged."""
    newest = read_newest(store, batch_id)
    return newest is not None and newest[1].current_words is not None


def read_newest(store: StoreDir, batch_id: str) -> tuple[Path, IndexFile] | None:
    """Return the directory and the document of the newest index of a batch.

    Return None if there is no index, or if it cannot be read or has another version.
    """
    try:
        numbers = list_generations(store, batch_id)
        root = index_directory(store, batch_id) / str(numbers[-1]) if numbers else None
        about = None if root is None else read_index_file(store, root)
    except (FileNotFoundError, StoreError):
        return None
    return None if root is None or about is None else (root, about)


def find_base(store: StoreDir, batch_ids: Iterable[str], needed: Collection[Digest]) -> IndexBase | None:
    """Return the first base that can be reused, among the current indexes of given batches, or None.

    A base can be reused if it is undamaged and covers nearly the `needed` shard files: OVERLAY_PERCENT_MAX limits both
    the missing files and the files that are no longer needed.
    """
    for batch_id in batch_ids:
        newest = read_newest(store, batch_id)
        if newest is None:
            continue
        base = IndexBase(newest[0], newest[1].base)
        try:
            if _is_close_to(base.layer.slots, needed) and _is_undamaged(store, base):
                return base
        except (FileNotFoundError, StoreError):
            continue
    return None


def _is_close_to(slots: Collection[Digest], needed: Collection[Digest]) -> bool:
    slot_set, needed_set = set(slots), set(needed)
    return 100 * len(needed_set - slot_set) <= OVERLAY_PERCENT_MAX * len(needed_set) and 100 * len(
        slot_set - needed_set
    ) <= OVERLAY_PERCENT_MAX * len(slot_set)


def _is_undamaged(store: StoreDir, base: IndexBase) -> bool:
    for number, part in enumerate(base.layer.parts):
        read_part(store.files, base.root / layout.index_part_name(layout.INDEX_BASE, number), part)
    return True


def read_part(files: FileReader, path: Path, part: LayerPart) -> bytes:
    """Return the bytes of a part. Raises CorruptFile if they do not match index.json, or FileNotFoundError."""
    # Reading one byte more than expected detects a file that is too long. Reading all of such a file might need too
    # much memory.
    data = files.read_range(path, 0, part.length + 1)
    if len(data) != part.length or zlib.crc32(data) != part.crc32:
        raise corrupt_index(path, "is damaged: it does not match index.json")
    return data


def corrupt_index(path: Path, problem: str) -> CorruptFile:
    """Return the error for a damaged index. `path` is the directory of the index or a file in it."""
    batch = path.parent if layout.parse_generation_name(path.name) else path.parent.parent
    return CorruptFile(str(path), problem, hint=index_hint(batch.name))


def index_hint(batch_id: str) -> str:
    """Return the hint that an error about a damaged index shows: how to build the index again."""
    return f"rebuild it with: codebatch index build --rebuild --batch {batch_id}"
