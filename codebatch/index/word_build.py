"""Building of the words of an index (SPEC.md "Words").

The contents of a batch are divided into segments. Segments of older indexes are linked if most of their contents are
still needed. Contents that no linked segment has are read and go into new segments. So that there are few segments, a
new segment takes the contents of linked segments that are not much larger. So each content is read again only a few
times, however many batches follow.
"""

from __future__ import annotations

import contextlib
import operator
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from codebatch.errors import ObjectMissing, StoreCorrupt, StoreError
from codebatch.index.generations import ContentTable, WordLayer, WordSegment, read_newest
from codebatch.index.terms import little_endian
from codebatch.index.word_reader import NOT_INDEXED, SegmentReader, encode_place
from codebatch.index.word_segments import CONTENTS_MAX, SegmentBuilder, group_size
from codebatch.index.words import INDEXED_BYTES_MAX, add_content_words, content_key, is_notebook, without_numbers
from codebatch.model.entry import Entry
from codebatch.model.plan import plan_items
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir, load_batch_snapshot
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.ids import SkipCallback
from codebatch.store.objects.frames import compress_frame
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.sharing import hardlink_or_copy
from codebatch.store.snapshots.snapshots import Snapshot
from codebatch.system.files.files import StoreFiles
from codebatch.system.processes.garbage_collector import collector_paused

_GROWTH = 2
"""A new segment takes the contents of linked segments that have at most this many times as many contents."""


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


def iter_item_words(store: StoreDir, batch: BatchDir) -> Iterator[tuple[int, set[bytes]]]:
    """Yield the number and the words of an item with each content that is not missing. Raises StoreCorrupt."""
    items = {content_key(entry): (item, entry) for item, entry in enumerate(batch_items(store, batch))}
    objects = store.objects()
    for item, entry in items.values():
        with contextlib.suppress(ObjectMissing):
            words: set[bytes] = set()
            data = objects.read(entry.object, entry.size)
            add_content_words(words, data, in_notebook=is_notebook(entry.path))
            yield item, {*without_numbers(words)}


class WordBuilder:
    """A builder of the words of an index. `stats` describes what it has built."""

    def __init__(
        self, store: StoreDir, batch: BatchDir, on_skipped: SkipCallback, snapshot: Snapshot | None = None
    ) -> None:
        """Prepare to index the files of a batch. If the snapshot of the batch is given, it is not read again."""
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
        keys = list(map(content_key, items))
        entries = dict(zip(reversed(keys), reversed(items), strict=True))
        old = _old_segments(store, (batch.id, *batch.about.bases), entries.keys()) if reuses else []
        segments = _SegmentList(building)
        for segment in _segments_to_link(old, len(entries)):
            hardlink_or_copy(store.files, segment.path, segments.add(segment.about, segment.keys))
        places = segments.places
        reused = len(places.keys() & entries.keys())
        missing = [entry for key, entry in sorted(entries.items(), key=_path_of_pair) if key not in places]
        new_bytes = 0
        for about, new_keys, data in _new_segments(store.objects(), missing):
            store.files.write_new(segments.add(about, new_keys), data)
            new_bytes += len(data)
        table = _write_content_table(store.files, building, [places.get(key, NOT_INDEXED) for key in keys])
        self.stats = WordBuildStats(len(places.keys() & entries.keys()), reused, new_bytes)
        return WordLayer(segments=tuple(segments.segments), contents=table)


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


def _path_of_pair(pair: tuple[bytes, Entry]) -> bytes:
    return pair[1].path


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


def _new_segments(
    objects: ObjectStore, entries: Sequence[Entry]
) -> Iterator[tuple[WordSegment, Sequence[bytes], bytes]]:
    """Yield segments with the contents of entries: each segment, its keys, and the bytes of its file.

    Missing and large contents are left out.
    """
    readable = _readable_contents(objects, entries)
    left = len(entries)
    while left > 0:
        builder = SegmentBuilder(group_size(min(left, CONTENTS_MAX)))
        with collector_paused():
            while not builder.is_full and (slot := _read_slot(readable, builder.group)):
                builder.add_slot(*slot)
            if not builder.keys:
                return
            about, data = builder.encode()
        yield about, builder.keys, data
        left -= len(builder.keys)


def _read_slot(readable: Iterator[tuple[Entry, bytes]], group: int) -> tuple[list[bytes], set[bytes]] | None:
    """Return the keys and the words of the next contents, or None if there are none."""
    keys: list[bytes] = []
    words: set[bytes] = set()
    for entry, data in islice(readable, group):
        keys.append(content_key(entry))
        add_content_words(words, data, in_notebook=is_notebook(entry.path))
    return (keys, words) if keys else None


def _readable_contents(objects: ObjectStore, entries: Iterable[Entry]) -> Iterator[tuple[Entry, bytes]]:
    for entry in entries:
        if entry.size <= INDEXED_BYTES_MAX:
            try:
                data = objects.read(entry.object, entry.size)
            except ObjectMissing:
                continue
            yield entry, data


def _write_content_table(files: StoreFiles, building: Path, places: Sequence[int]) -> ContentTable:
    """Write the place of the content of each item."""
    # The differences of consecutive places are mostly equal, so they are compressed well.
    differences = array("i", map(operator.sub, places, [0, *places]))
    data = compress_frame(little_endian(differences).tobytes())
    files.write_new(building / layout.INDEX_CONTENTS, data)
    return ContentTable(length=len(data), crc32=zlib.crc32(data), items=len(places))
