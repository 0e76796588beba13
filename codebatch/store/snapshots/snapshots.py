"""Snapshots: frozen source trees, published once and read back (SPEC.md "Snapshots").

`snapshots/<snapshot_id>/` contains two files. `files.index.jsonl.zst` has the entries in path order. The digest of its
uncompressed bytes identifies the snapshot. `snapshot.json` has the counts of entries and the positions of the frames in
the index (index_frames.py). It also records the time and the source of the first time that this snapshot was taken.
These are not part of the identity.
"""

from __future__ import annotations

import contextlib
import uuid
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path

import msgspec

from codebatch.errors import CorruptFile, InvalidId, StoreCorrupt, StoreError, StoreUnwritable, UnknownId
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.documents import Document, decode_document, encode_document
from codebatch.model.entry import Entry, EntryKind, SnapshotId, decode_entries, find_entry, find_item
from codebatch.model.entry import snapshot_id as id_of
from codebatch.store import layout
from codebatch.store.documents import read_document
from codebatch.store.ids import SkipCallback
from codebatch.store.objects.frames import FrameError, decompress_all
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.snapshots.index_frames import (
    IndexFrame,
    SnapshotIndex,
    check_frames,
    count_entries,
    frame_at,
    frame_content,
    frame_entries,
    frames_between,
)
from codebatch.system.files.files import StoreFiles

SNAPSHOT_FORMAT = 1
# Maximum number of frames in each of the two caches of a snapshot: decoded items, and undecoded lines.
_FRAMES_CACHED_MAX = 16


class SnapshotSource(msgspec.Struct, frozen=True, kw_only=True):
    """The directories from which a snapshot was first taken: absolute paths, for display."""

    base: str
    roots: tuple[str, ...]
    listing: str


class SnapshotDocument(Document, frozen=True, kw_only=True):
    """The document snapshot.json. `bytes` and `files` count the entries of kind `file`.

    `frames` are the frames of the index of its entries, in order.
    """

    format: int = SNAPSHOT_FORMAT
    snapshot_id: str
    digest: str
    files: int
    bytes: int
    entries: int
    created_at: str
    source: SnapshotSource
    frames: tuple[IndexFrame, ...]


class _NamedObject(msgspec.Struct, frozen=True):
    """The one member that is decoded from an entry's line to collect the digests of objects."""

    object: str


class Snapshot:
    """A published snapshot. Its entries are read and decoded at first use, and their digest is verified then."""

    def __init__(
        self, files: StoreFiles, store_root: Path, document: SnapshotDocument, objects: ObjectStore | None
    ) -> None:
        self.id = SnapshotId(document.snapshot_id)
        self.digest = Digest(document.digest)
        self.files = document.files
        self.bytes = document.bytes
        self.document = document
        self._files = files
        self._path = _snapshot_directory(store_root, self.id) / layout.SNAPSHOT_INDEX
        self._objects = objects or ObjectStore(files, store_root / layout.OBJECTS)
        self._entries: list[Entry] | None = None
        # Successive requests often need the same frame, so the last ones are cached.
        self._items_of = lru_cache(_FRAMES_CACHED_MAX)(self._read_items)
        self._lines_of = lru_cache(_FRAMES_CACHED_MAX)(
            lambda number: next(self._iter_contents([number]))[1].splitlines()
        )

    @property
    def entries(self) -> list[Entry]:
        """All entries, sorted by path. Raises StoreCorrupt."""
        # Not a cached_property, which before Python 3.12 holds one lock for all instances while the file is read.
        if self._entries is None:
            with self._damage_as_corrupt():
                self._entries = decode_entries(self._read_index())
        return self._entries

    def items_between(self, start: int, end: int) -> list[Entry]:
        """Return the items [start, end) in path order. Decode only their frames. Raises StoreCorrupt."""
        if end > self.files:
            raise StoreCorrupt(
                f"snapshot {self.id} has {self.files} items, but at least {end} are needed", hint=SNAPSHOT_HINT
            )
        if start == end:
            return []
        first, last = frames_between(self.document.frames, start, end)
        items = [entry for number in range(first, last) for entry in self._items_of(number)]
        before = sum(frame.files for frame in self.document.frames[:first])
        return items[start - before : end - before]

    def find_items(self, paths: Iterable[bytes]) -> dict[bytes, int]:
        """Map paths to the numbers of their items, in the order of `paths`. Raises StoreCorrupt.

        A path that is not the path of an item is omitted. Only the frames with these paths are decoded.
        """
        numbers: dict[bytes, int] = {}
        for path in paths:
            number = frame_at(self.document.frames, path)
            with self._damage_as_corrupt():
                position = find_item(self._lines_of(number), path)
            if position is not None:
                numbers[path] = sum(frame.files for frame in self.document.frames[:number]) + position
        return numbers

    def object_digests(self) -> set[str]:
        """Return the digests of the objects of all entries. Raises StoreCorrupt."""
        with self._damage_as_corrupt():
            try:
                return {line.object for line in msgspec.json.Decoder(_NamedObject).decode_lines(self._read_index())}
            except msgspec.DecodeError as error:
                raise ValueError(str(error)) from error

    def read_index(self) -> SnapshotIndex:
        """Return the index on disk without verifying it. Raises StoreCorrupt."""
        with self._damage_as_corrupt():
            return SnapshotIndex(self._files.read(self._path), self.document.frames, self.digest)

    def check(self) -> None:
        """Raise StoreCorrupt if the index does not match the digest or the frames in snapshot.json."""
        self.check_length()
        with self._damage_as_corrupt():
            index = b"".join(content for _, content in self._iter_contents(range(len(self.document.frames))))
            if index != self._read_index():
                raise FrameError("its frames are not where they should be")

    def check_length(self) -> None:
        """Raise StoreCorrupt if the index is missing or has the wrong length. Its content is not read."""
        with self._damage_as_corrupt():
            if self._files.size(self._path) != self._frame_offsets[-1]:
                raise FrameError("it is missing, or its size changed")

    def entry(self, path: bytes) -> Entry | None:
        """Return the entry at a path, or None. Raises StoreCorrupt.

        Decodes only this entry, unless all entries are already decoded.
        """
        if self._entries is not None:
            return self._by_path.get(path)
        with self._damage_as_corrupt():
            return find_entry(self._lines_of(frame_at(self.document.frames, path)), path)

    def read(self, path: bytes, kind: EntryKind = "file") -> bytes | None:
        """Return the content of the file at a path, or the target of the link. Raises ObjectMissing.

        If the entry at the path is not of the given kind, return None.
        """
        entry = self.entry(path)
        if entry is None or entry.kind != kind:
            return None
        return self._objects.read(entry.object, entry.size)

    def entries_beginning(self, beginning: bytes) -> list[Entry]:
        """Return the entries whose paths begin with `beginning`. Decode only their frames. Raises StoreCorrupt."""
        frames, length = self.document.frames, len(beginning)
        last = bisect_right(frames, beginning, key=lambda frame: frame.path[:length])
        entries = self._read_frames(range(frame_at(frames, beginning), last))
        return [entry for entry in entries if entry.path.startswith(beginning)]

    def differing_entries(self, other: Snapshot) -> tuple[dict[bytes, Entry], dict[bytes, Entry]]:
        """Return the entries in which two snapshots may differ, by path: those of this snapshot, and those of `other`.

        Entries in frames that occur in both snapshots are omitted, because they are equal. Raises StoreCorrupt.
        """
        own, others = ([frame.digest for frame in snapshot.document.frames] for snapshot in (self, other))
        shared = {*own} & {*others}
        return (
            {entry.path: entry for entry in self._read_frames([n for n, key in enumerate(own) if key not in shared])},
            {
                entry.path: entry
                for entry in other._read_frames([n for n, key in enumerate(others) if key not in shared])
            },
        )

    def items_sharing_frames(self, other: Snapshot, items: Sequence[Entry]) -> list[Entry]:
        """Return all items of this snapshot. Items in frames that occur in `other` are not decoded again.

        They are taken from `items`, which has all items of `other`. Raises StoreCorrupt.
        """
        ends = accumulate((frame.files for frame in other.document.frames), initial=0)
        starts = {frame.digest: start for frame, start in zip(other.document.frames, ends, strict=False)}
        all_items: list[Entry] = []
        for number, frame in enumerate(self.document.frames):
            start = starts.get(frame.digest)
            if start is None:
                all_items += (entry for entry in self._read_frames([number]) if entry.kind == "file")
            else:
                all_items += items[start : start + frame.files]
        return all_items

    def _read_index(self) -> bytes:
        index = decompress_all(self._files.read(self._path))
        if digest_bytes(index) != self.digest:
            raise CorruptFile(str(self._path), "does not match the digest of the snapshot", hint=SNAPSHOT_HINT)
        return index

    def _read_frames(self, numbers: Sequence[int]) -> list[Entry]:
        """Return the entries of the frames with given numbers. Raises StoreCorrupt."""
        with self._damage_as_corrupt():
            return [entry for frame, lines in self._iter_contents(numbers) for entry in frame_entries(lines, frame)]

    def _read_items(self, number: int) -> list[Entry]:
        return [entry for entry in self._read_frames([number]) if entry.kind == "file"]

    def _iter_contents(self, numbers: Sequence[int]) -> Iterator[tuple[IndexFrame, bytes]]:
        """Yield each of the numbered frames with its lines, in order. Raises FileNotFoundError or FrameError."""
        if not numbers:
            return
        frames, offsets = self.document.frames, self._frame_offsets
        begin = offsets[numbers[0]]
        data = self._files.read_range(self._path, begin, offsets[numbers[-1] + 1] - begin)
        for number in numbers:
            offset = offsets[number] - begin
            yield frames[number], frame_content(data[offset : offset + frames[number].length], frames[number])

    @contextlib.contextmanager
    def _damage_as_corrupt(self) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, FrameError, ValueError) as error:
            raise StoreCorrupt(f"{self._path}: {error}", hint=SNAPSHOT_HINT) from error

    @cached_property
    def _frame_offsets(self) -> list[int]:
        """The offsets of the frames in the file of the index, followed by the end of the last frame."""
        return list(accumulate((frame.length for frame in self.document.frames), initial=0))

    @cached_property
    def _by_path(self) -> dict[bytes, Entry]:
        return {entry.path: entry for entry in self.entries}


def load_snapshot(
    files: StoreFiles, store_root: Path, snapshot_id: str, *, objects: ObjectStore | None = None
) -> Snapshot:
    """Return the published snapshot with the full ID `snapshot_id`. Raises InvalidId, UnknownId or StoreCorrupt.

    If the object store is already open, pass it as `objects`; the contents of files are read from there.
    """
    if not layout.SNAPSHOT_ID_PATTERN.match(snapshot_id):
        raise InvalidId(
            f"{snapshot_id!r} is not a valid snapshot id", hint="a snapshot id is `snap-` followed by 16 hex digits"
        )
    return Snapshot(files, store_root, _load_document(files, store_root, snapshot_id), objects)


def snapshot_ids(files: StoreFiles, store_root: Path) -> list[str]:
    """Return the IDs of all published snapshots, sorted, including damaged ones."""
    names = files.listing(store_root / layout.SNAPSHOTS)
    return [name for name in names if layout.SNAPSHOT_ID_PATTERN.match(name)]


def list_snapshots(
    files: StoreFiles, store_root: Path, on_skipped: SkipCallback | None = None
) -> list[SnapshotDocument]:
    """Return the documents of all readable snapshots, sorted by ID. For each unreadable one, call `on_skipped`."""
    documents: list[SnapshotDocument] = []
    for name in snapshot_ids(files, store_root):
        try:
            documents.append(_load_document(files, store_root, name))
        except (StoreError, UnknownId) as error:
            if on_skipped is not None:
                on_skipped(f"{name} skipped: {error.message}")
    return documents


def index_digest(files: StoreFiles, store_root: Path, snapshot_id: str) -> Digest | None:
    """Return the digest of the compressed index file on disk, or None if the file is missing.

    Callers compare the digests of two calls to find out whether the file has changed in between.
    """
    try:
        return digest_bytes(files.read(_snapshot_directory(store_root, snapshot_id) / layout.SNAPSHOT_INDEX))
    except FileNotFoundError:
        return None


def reset_snapshot_age(files: StoreFiles, store_root: Path, snapshot_id: str) -> None:
    """Reset the age of a snapshot: the time since the last change of its directory.

    Garbage collection keeps young snapshots. Without write access, neither the reset nor garbage collection is
    possible.
    """
    mark = _snapshot_directory(store_root, snapshot_id) / f".{uuid.uuid4().hex}.tmp"
    with contextlib.suppress(StoreUnwritable):
        files.write_volatile(mark, b"")
        files.remove(mark)


def publish_snapshot(
    files: StoreFiles, store_root: Path, index: SnapshotIndex, *, source: SnapshotSource, created_at: str
) -> SnapshotDocument:
    """Publish a snapshot unless it exists, and return the document on disk. On return it is durable.

    All objects of its entries must be durable before this call. If two processes publish the same snapshot, one of the
    two renames succeeds, and both processes return valid documents. If the snapshot exists but is damaged, it is
    rewritten in place, each file atomically.
    """
    entries, items, size_bytes = count_entries(index.frames)
    document = SnapshotDocument(
        snapshot_id=id_of(index.digest),
        digest=index.digest,
        files=items,
        bytes=size_bytes,
        entries=entries,
        created_at=created_at,
        source=source,
        frames=index.frames,
    )
    target = _snapshot_directory(store_root, document.snapshot_id)
    encoded = encode_document(document)
    existing = _matching_document(files, store_root, document)
    if existing is not None:
        # The process that published the snapshot may have died before this sync.
        for directory in (target, target.parent):
            files.sync_directory(directory)
        return existing
    temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")
    files.make_directory(temporary)
    try:
        files.write_new(temporary / layout.SNAPSHOT_INDEX, index.data)
        files.write_new(temporary / layout.SNAPSHOT_FILE, encoded)
        if files.publish_directory(temporary, target):
            return document
    except BaseException:
        files.remove_tree(temporary)
        raise
    existing = _matching_document(files, store_root, document)
    if existing is not None:
        return existing
    files.write_atomic(target / layout.SNAPSHOT_INDEX, index.data)
    files.write_atomic(target / layout.SNAPSHOT_FILE, encoded)
    return document


def _matching_document(files: StoreFiles, store_root: Path, expected: SnapshotDocument) -> SnapshotDocument | None:
    """Return the document on disk if the snapshot is undamaged and equals `expected`. Otherwise return None."""
    try:
        document = _load_document(files, store_root, expected.snapshot_id)
        if (document.digest, _uncompressed_frames(document)) == (expected.digest, _uncompressed_frames(expected)):
            Snapshot(files, store_root, document, None).check()
            return document
    except (UnknownId, StoreCorrupt):
        return None
    return None


def _uncompressed_frames(document: SnapshotDocument) -> list[IndexFrame]:
    """Return the frames with their compressed lengths set to 0, because those depend on the version of zstd."""
    return [msgspec.structs.replace(frame, length=0) for frame in document.frames]


def _load_document(files: StoreFiles, store_root: Path, snapshot_id: str) -> SnapshotDocument:
    path = _snapshot_directory(store_root, snapshot_id) / layout.SNAPSHOT_FILE
    try:
        document = read_document(files, path, decode_snapshot, hint=SNAPSHOT_HINT)
    except (FileNotFoundError, NotADirectoryError) as error:
        if files.size(path.parent) is not None:
            raise CorruptFile(str(path), "is missing", hint=SNAPSHOT_HINT) from error
        raise UnknownId(f"no snapshot {snapshot_id} in {store_root}") from error
    if document.snapshot_id != snapshot_id or id_of(Digest(document.digest)) != snapshot_id:
        raise CorruptFile(str(path), "belongs to another snapshot", hint=SNAPSHOT_HINT)
    return document


def decode_snapshot(data: bytes) -> SnapshotDocument:
    """Decode snapshot.json. Raises ValueError if it is invalid."""
    document = decode_document(data, SnapshotDocument, SNAPSHOT_FORMAT)
    check_frames(document.frames)
    if count_entries(document.frames) != (document.entries, document.files, document.bytes):
        raise ValueError("its counts do not match its frames")
    return document


def _snapshot_directory(store_root: Path, snapshot_id: str) -> Path:
    return store_root / layout.SNAPSHOTS / snapshot_id


SNAPSHOT_HINT = "take a snapshot of the unchanged source again to rewrite it"
