"""Building of the words of an index (SPEC.md "Words").

The contents of a batch are divided into segments. Segments of older indexes are linked if most of their contents are
still needed. Contents that no linked segment has are read and go into new segments. So that there are few segments, a
new segment takes the contents of linked segments that are not much larger. So each content is read again only a few
times, however many batches follow. Other processes may have built the segments of some ranges of contents already.
"""

from __future__ import annotations

import contextlib
import operator
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from codebatch.errors import ObjectMissing, StoreCorrupt, StoreError
from codebatch.index.generations import ContentTable, WordLayer, WordSegment, is_indexed, read_newest
from codebatch.index.word_ranges import NewSegment, build_segments, decode_piece, divide_contents, piece_name
from codebatch.index.word_reader import NOT_INDEXED, SegmentReader, encode_place
from codebatch.index.word_segments import CONTENTS_MAX
from codebatch.index.words import add_content_words, content_key, without_numbers
from codebatch.model.entry import Entry
from codebatch.model.plan import plan_items
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir, load_batch_snapshot
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.ids import SkipCallback
from codebatch.store.objects.frames import compress_frame
from codebatch.store.objects.packs import little_endian
from codebatch.store.sharing import hardlink_or_copy
from codebatch.store.snapshots.snapshots import Snapshot
from codebatch.system.files.files import StoreFiles

_GROWTH = 2
"""A new segment takes the contents of linked segments that have at most this many times as many contents."""


PieceReader = Callable[[str], "bytes | None"]
"""A function that returns the piece with a name, or None if there is no such piece."""


def read_no_piece(_name: str) -> None:
    """Return None. This function is used if no other process builds pieces."""


class WordBuildStats(msgspec.Struct, frozen=True):
    """Statistics of the words of an index: its contents, those of linked segments, and the size of new segments."""

    contents: int = 0
    reused: int = 0
    bytes: int = 0


class _OldSegment(msgspec.Struct, frozen=True):
    """A segment of an older index: its file, its keys, and the keys that are needed from it."""

    path: Path
    about: WordSegment
    keys: Sequence[bytes]
    needed: frozenset[bytes]


def batch_items(store: StoreDir, batch: BatchDir, snapshot: Snapshot | None = None) -> list[Entry]:
    """Return the items of a batch. If its snapshot is not given, it is read. Raises StoreCorrupt."""
    return plan_items((snapshot or load_batch_snapshot(store, batch)).entries, batch.about.paths)


def unindexed_ranges(store: StoreDir, batch: BatchDir, snapshot: Snapshot) -> list[list[Entry]]:
    """Return the ranges of contents that the first index of a batch divides its contents into.

    Return no ranges if this batch or one of its bases has an index, because its segments will probably be linked.
    """
    if any(is_indexed(store, batch_id) for batch_id in (batch.id, *batch.about.bases)):
        return []
    return divide_contents(_by_path(_entries_by_key(batch_items(store, batch, snapshot)).values()))


def iter_item_words(store: StoreDir, batch: BatchDir) -> Iterator[tuple[int, set[bytes]]]:
    """Yield the number and the words of an item with each content that is not missing. Raises StoreCorrupt."""
    items = {content_key(entry): (item, entry) for item, entry in enumerate(batch_items(store, batch))}
    objects = store.objects()
    for item, entry in items.values():
        with contextlib.suppress(ObjectMissing):
            words: set[bytes] = set()
            data = objects.read(entry.object, entry.size)
            add_content_words(words, data, entry.path)
            yield item, {*without_numbers(words)}


class WordBuilder:
    """A builder of the words of an index. `stats` describes what it has built."""

    def __init__(
        self,
        store: StoreDir,
        batch: BatchDir,
        on_skipped: SkipCallback,
        snapshot: Snapshot | None = None,
        read_piece: PieceReader = read_no_piece,
    ) -> None:
        """Prepare to index the files of a batch. If the snapshot of the batch is given, it is not read again."""
        self._read_piece = read_piece
        self._store = store
        self._batch = batch
        self._on_skipped = on_skipped
        self._snapshot = snapshot if snapshot is not None and snapshot.id == batch.about.snapshot_id else None
        self.stats = WordBuildStats()

    def write(self, building: Path, *, reuses: bool) -> WordLayer | None:
        """Write the words into the directory of an index that is not published yet.

        If `reuses` is set, segments of the indexes of this batch and of its bases are linked. If the items of the batch
        cannot be read, the callback `on_skipped` is called, and there are no words. Raises StoreUnwritable, StoreError,
        or FileNotFoundError if a segment to link was removed.
        """
        store, batch = self._store, self._batch
        try:
            items = batch_items(store, batch, self._snapshot)
        except StoreCorrupt as error:
            self._on_skipped(error.message)
            return None
        entries = _entries_by_key(items)
        old = _old_segments(store, (batch.id, *batch.about.bases), entries.keys()) if reuses else []
        segments = _SegmentList(building)
        for linked in _segments_to_link(old, len(entries)):
            hardlink_or_copy(store.files, linked.path, segments.add(linked.about, linked.keys))
        places = segments.places
        reused = len(places.keys() & entries.keys())
        missing = _by_path(entry for key, entry in entries.items() if key not in places)
        new_bytes = 0
        for segment in self._new_segments(missing):
            store.files.write_new(segments.add(segment.about, segment.keys), segment.data)
            new_bytes += len(segment.data)
        keys = map(content_key, items)
        table = _write_content_table(store.files, building, [places.get(key, NOT_INDEXED) for key in keys])
        self.stats = WordBuildStats(len(places.keys() & entries.keys()), reused, new_bytes)
        return WordLayer(segments=tuple(segments.segments), contents=table)

    def _new_segments(self, entries: Iterable[Entry]) -> Iterator[NewSegment]:
        objects = self._store.objects()
        for entries_of_range in divide_contents(entries):
            piece = self._read_piece(piece_name(entries_of_range))
            with contextlib.suppress(ValueError):
                if piece is not None:
                    yield from decode_piece(piece)
                    continue
            yield from build_segments(objects, entries_of_range)


class _SegmentList:
    """The segments of a new index, and the place of each content in them."""

    def __init__(self, building: Path) -> None:
        self._building = building
        self.segments: list[WordSegment] = []
        self.places: dict[bytes, int] = {}

    def add(self, about: WordSegment, keys: Sequence[bytes]) -> Path:
        """Add a segment with the contents `keys`. Return the path of its file, which the caller writes."""
        first = encode_place(len(self.segments), 0)
        for position, key in enumerate(keys):
            self.places.setdefault(key, first + position)
        self.segments.append(about)
        return self._building / layout.index_words_name(len(self.segments) - 1)


def _entries_by_key(items: Sequence[Entry]) -> dict[bytes, Entry]:
    """Return the first item with each content, by the key of the content."""
    return {content_key(item): item for item in reversed(items)}


def _by_path(entries: Iterable[Entry]) -> list[Entry]:
    return sorted(entries, key=operator.attrgetter("path"))


def _old_segments(store: StoreDir, batch_ids: Iterable[str], needed: Iterable[bytes]) -> list[_OldSegment]:
    """Return the undamaged segments of older indexes of which more than half of the contents are needed.

    A content is needed from the first segment that has it.
    """
    left = set(needed)
    segments: list[_OldSegment] = []
    for batch_id in batch_ids:
        newest = read_newest(store, batch_id) if left else None
        words = None if newest is None else newest[1].current_words
        if newest is None or words is None:
            continue
        for number, about in enumerate(words.segments):
            path = newest[0] / layout.index_words_name(number)
            try:
                reader = SegmentReader(store.files, path, about)
                keys = reader.read_keys()
                found = left.intersection(keys)
                if 2 * len(found) > len(keys):
                    reader.check()
                    segments.append(_OldSegment(path, about, keys, frozenset(found)))
                    left -= found
            except (FileNotFoundError, StoreError):
                continue
    return segments


def _segments_to_link(old: Sequence[_OldSegment], contents: int) -> list[_OldSegment]:
    """Return the segments that are linked. The contents of the others go into new segments."""
    new = contents - sum(len(segment.needed) for segment in old)
    linked = list(old)
    for segment in sorted(old, key=lambda segment: len(segment.needed)):
        if not new or len(segment.needed) > _GROWTH * new or len(segment.needed) + new > CONTENTS_MAX:
            break
        linked.remove(segment)
        new += len(segment.needed)
    return linked


def _write_content_table(files: StoreFiles, building: Path, places: Sequence[int]) -> ContentTable:
    """Write the place of the content of each item."""
    # The differences of consecutive places are mostly equal, so they are compressed well.
    differences = array("i", map(operator.sub, places, [0, *places]))
    data = compress_frame(little_endian(differences).tobytes())
    files.write_new(building / layout.INDEX_CONTENTS, data)
    return ContentTable(length=len(data), crc32=zlib.crc32(data), items=len(places))
