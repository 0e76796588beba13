"""Snapshots: a frozen tree, path by path, published once and read back (SPEC.md "Snapshots").

`snapshots/<snapshot_id>/` holds `files.index.jsonl.zst`, the entries in path order, whose uncompressed bytes are the
snapshot's identity, and `snapshot.json`, which counts them, says where in the index they are (index_frames.py), and who
first took the snapshot, when and where from. Time and source are no part of the identity: the first taker's stay.
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
from codebatch.model.entry import Entry, SnapshotId, decode_entries, find_entry, find_item
from codebatch.model.entry import snapshot_id as id_of
from codebatch.store import layout
from codebatch.store.documents import read_document
from codebatch.store.ids import PassedOver
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
from codebatch.system.files.files import Files

SNAPSHOT_FORMAT = 1
# Of the frames whose items, or lines, were asked for last.
_FRAMES_KEPT = 16


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
    """Of an entry, what it names."""

    object: str


class Snapshot:
    """A published snapshot. Entries are decoded, and checked against the digest, when they are first asked for."""

    def __init__(self, files: Files, store_root: Path, document: SnapshotDocument, objects: ObjectStore | None) -> None:
        self.id = SnapshotId(document.snapshot_id)
        self.digest = Digest(document.digest)
        self.files = document.files
        self.bytes = document.bytes
        self.document = document
        self._files = files
        self._path = _directory(store_root, self.id) / layout.SNAPSHOT_INDEX
        self._objects = objects or ObjectStore(files, store_root / layout.OBJECTS)
        self._entries: list[Entry] | None = None
        # Whoever asks for something in a frame asks soon for something else in it.
        self._items_of = lru_cache(_FRAMES_KEPT)(self._read_items)
        self._lines_of = lru_cache(_FRAMES_KEPT)(lambda number: next(self._iter_contents([number]))[1].splitlines())

    @property
    def entries(self) -> list[Entry]:
        """Every entry, sorted by path. Raises StoreCorrupt."""
        # No cached_property: before Python 3.12 it holds one lock for all instances while the file is read.
        if self._entries is None:
            with self._corrupt_where_unsound():
                self._entries = decode_entries(self._read_index())
        return self._entries

    def items_between(self, start: int, end: int) -> list[Entry]:
        """The items [start, end), the entries of kind `file` in path order, by decoding their frames alone.

        Raises StoreCorrupt.
        """
        if end > self.files:
            raise StoreCorrupt(f"{self.id} has {self.files} items, not {end}", hint=SNAPSHOT_HINT)
        if start == end:
            return []
        first, last = frames_between(self.document.frames, start, end)
        found = [entry for number in range(first, last) for entry in self._items_of(number)]
        before = sum(frame.files for frame in self.document.frames[:first])
        return found[start - before : end - before]

    def find_items(self, paths: Iterable[bytes]) -> dict[bytes, int]:
        """The numbers of the items at some paths, in their order, by decoding a frame for each. Raises StoreCorrupt."""
        found: dict[bytes, int] = {}
        for path in paths:
            number = frame_at(self.document.frames, path)
            with self._corrupt_where_unsound():
                inside = find_item(self._lines_of(number), path)
            if inside is not None:
                found[path] = sum(frame.files for frame in self.document.frames[:number]) + inside
        return found

    def objects(self) -> set[str]:
        """The objects that it names. Raises StoreCorrupt."""
        with self._corrupt_where_unsound():
            try:
                return {line.object for line in msgspec.json.Decoder(_NamedObject).decode_lines(self._read_index())}
            except msgspec.DecodeError as error:
                raise ValueError(str(error)) from error

    def index(self) -> SnapshotIndex:
        """The index as it lies on disk, not looked into. Raises StoreCorrupt."""
        with self._corrupt_where_unsound():
            return SnapshotIndex(self._files.read(self._path), self.document.frames, self.digest)

    def check(self) -> None:
        """Raises StoreCorrupt where the index is not the snapshot's, or its frames are not where the document says."""
        self.check_length()
        with self._corrupt_where_unsound():
            index = b"".join(content for _, content in self._iter_contents(range(len(self.document.frames))))
            if index != self._read_index():
                raise FrameError("its frames are not where they should be")

    def check_length(self) -> None:
        """Raises StoreCorrupt where the index is not there, or not as long as it was made. Nothing of it is read."""
        with self._corrupt_where_unsound():
            if self._files.size(self._path) != self._offsets[-1]:
                raise FrameError("it is missing, or its size changed")

    def entry(self, path: bytes) -> Entry | None:
        """The entry at a path, by decoding no other lines where not all are decoded already. Raises StoreCorrupt."""
        if self._entries is not None:
            return self._by_path.get(path)
        with self._corrupt_where_unsound():
            return find_entry(self._lines_of(frame_at(self.document.frames, path)), path)

    def read(self, path: bytes) -> bytes | None:
        """The content of the file at a path, None where there is no such file. Raises ObjectMissing."""
        entry = self.entry(path)
        if entry is None or entry.kind != "file":
            return None
        return self._objects.read(entry.object, entry.size)

    def entries_beginning(self, beginning: bytes) -> list[Entry]:
        """The entries whose paths begin so, by decoding the frames where they are. Raises StoreCorrupt."""
        frames, length = self.document.frames, len(beginning)
        last = bisect_right(frames, beginning, key=lambda frame: frame.path[:length])
        found = self._entries_of(range(frame_at(frames, beginning), last))
        return [entry for entry in found if entry.path.startswith(beginning)]

    def entries_unlike(self, other: Snapshot) -> tuple[dict[bytes, Entry], dict[bytes, Entry]]:
        """The entries of this snapshot and of another that lie in frames which only one of them has, by path.

        All others are equal. Raises StoreCorrupt.
        """
        mine, others = ([frame.digest for frame in each.document.frames] for each in (self, other))
        shared = {*mine} & {*others}
        return (
            {each.path: each for each in self._entries_of([n for n, key in enumerate(mine) if key not in shared])},
            {each.path: each for each in other._entries_of([n for n, key in enumerate(others) if key not in shared])},
        )

    def items_beside(self, other: Snapshot, items: Sequence[Entry]) -> list[Entry]:
        """All items. Those in frames that another snapshot has too are taken from its `items`. Raises StoreCorrupt."""
        ends = accumulate((frame.files for frame in other.document.frames), initial=0)
        known = {frame.digest: start for frame, start in zip(other.document.frames, ends, strict=False)}
        found: list[Entry] = []
        for number, frame in enumerate(self.document.frames):
            start = known.get(frame.digest)
            if start is None:
                found += (entry for entry in self._entries_of([number]) if entry.kind == "file")
            else:
                found += items[start : start + frame.files]
        return found

    def _read_index(self) -> bytes:
        index = decompress_all(self._files.read(self._path))
        if digest_bytes(index) != self.digest:
            raise CorruptFile(str(self._path), "does not match the digest of the snapshot", hint=SNAPSHOT_HINT)
        return index

    def _entries_of(self, numbers: Sequence[int]) -> list[Entry]:
        """The entries of some frames. Raises StoreCorrupt."""
        with self._corrupt_where_unsound():
            return [entry for frame, lines in self._iter_contents(numbers) for entry in frame_entries(lines, frame)]

    def _read_items(self, number: int) -> list[Entry]:
        return [entry for entry in self._entries_of([number]) if entry.kind == "file"]

    def _iter_contents(self, numbers: Sequence[int]) -> Iterator[tuple[IndexFrame, bytes]]:
        """Some frames, in order, with their lines. Raises FileNotFoundError or FrameError."""
        if not numbers:
            return
        frames, offsets = self.document.frames, self._offsets
        begin = offsets[numbers[0]]
        data = self._files.read_range(self._path, begin, offsets[numbers[-1] + 1] - begin)
        for number in numbers:
            at = offsets[number] - begin
            yield frames[number], frame_content(data[at : at + frames[number].length], frames[number])

    @contextlib.contextmanager
    def _corrupt_where_unsound(self) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, FrameError, ValueError) as error:
            raise StoreCorrupt(f"{self._path}: {error}", hint=SNAPSHOT_HINT) from error

    @cached_property
    def _offsets(self) -> list[int]:
        """Where frames begin, and where the last one ends."""
        return list(accumulate((frame.length for frame in self.document.frames), initial=0))

    @cached_property
    def _by_path(self) -> dict[bytes, Entry]:
        return {entry.path: entry for entry in self.entries}


def load_snapshot(files: Files, store_root: Path, snapshot_id: str, *, objects: ObjectStore | None = None) -> Snapshot:
    """A published snapshot by its whole id. Raises InvalidId, UnknownId, StoreCorrupt.

    `objects` is the store to read content from where the caller has one open already.
    """
    if not layout.SNAPSHOT_ID_PATTERN.match(snapshot_id):
        raise InvalidId(
            f"{snapshot_id!r} is not a valid snapshot id", hint="a snapshot id is `snap-` followed by 16 hex digits"
        )
    return Snapshot(files, store_root, _load_document(files, store_root, snapshot_id), objects)


def snapshot_ids(files: Files, store_root: Path) -> list[str]:
    """The ids of all published snapshots, sorted, damaged ones included."""
    names = files.listing(store_root / layout.SNAPSHOTS)
    return [name for name in names if layout.SNAPSHOT_ID_PATTERN.match(name)]


def list_snapshots(files: Files, store_root: Path, passed_over: PassedOver | None = None) -> list[SnapshotDocument]:
    """The documents of all published snapshots that can be read, sorted by id. A damaged one hides no other."""
    documents: list[SnapshotDocument] = []
    for name in snapshot_ids(files, store_root):
        try:
            documents.append(_load_document(files, store_root, name))
        except (StoreError, UnknownId) as error:
            if passed_over is not None:
                passed_over(f"{name} skipped: {error.message}")
    return documents


def index_digest(files: Files, store_root: Path, snapshot_id: str) -> Digest | None:
    """The digest of the compressed index as it lies on disk, None where there is none: tells a touched file cheaply."""
    try:
        return digest_bytes(files.read(_directory(store_root, snapshot_id) / layout.SNAPSHOT_INDEX))
    except FileNotFoundError:
        return None


def mark_as_taken(files: Files, store_root: Path, snapshot_id: str) -> None:
    """Have a snapshot count as taken now, be it known for long: its age is that of the last change of its directory.

    In a store that cannot be written it keeps its age, for nobody collects there.
    """
    mark = _directory(store_root, snapshot_id) / f".{uuid.uuid4().hex}.tmp"
    with contextlib.suppress(StoreUnwritable):
        files.write_volatile(mark, b"")
        files.remove(mark)


def publish_snapshot(
    files: Files, store_root: Path, index: SnapshotIndex, *, source: SnapshotSource, created_at: str
) -> SnapshotDocument:
    """Make a snapshot known, or find that it is; returns the document that is on disk. On return it is durable.

    Every object that it names must be durable before. Two takers of one tree meet at the rename: one directory wins,
    both are right. A snapshot that is there but unsound is written again in place, each file in one step.
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
    target = _directory(store_root, document.snapshot_id)
    encoded = encode_document(document)
    known = _known_document(files, store_root, document)
    if known is not None:
        for directory in (target, target.parent):  # Who published it may have died before this.
            files.sync_directory(directory)
        return known
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
    known = _known_document(files, store_root, document)
    if known is not None:
        return known
    files.write_atomic(target / layout.SNAPSHOT_INDEX, index.data)
    files.write_atomic(target / layout.SNAPSHOT_FILE, encoded)
    return document


def _known_document(files: Files, store_root: Path, wanted: SnapshotDocument) -> SnapshotDocument | None:
    """The document on disk if the snapshot is there, whole and the same tree."""
    try:
        document = _load_document(files, store_root, wanted.snapshot_id)
        if (document.digest, _tables(document)) == (wanted.digest, _tables(wanted)):
            Snapshot(files, store_root, document, None).check()
            return document
    except (UnknownId, StoreCorrupt):
        return None
    return None


def _tables(document: SnapshotDocument) -> list[IndexFrame]:
    """The frames, but for what zstd makes of them: another version of it may make something else."""
    return [msgspec.structs.replace(frame, length=0) for frame in document.frames]


def _load_document(files: Files, store_root: Path, snapshot_id: str) -> SnapshotDocument:
    path = _directory(store_root, snapshot_id) / layout.SNAPSHOT_FILE
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
    """Read snapshot.json. Raises ValueError where it is not what was written."""
    document = decode_document(data, SnapshotDocument, SNAPSHOT_FORMAT)
    check_frames(document.frames)
    if count_entries(document.frames) != (document.entries, document.files, document.bytes):
        raise ValueError("its counts do not match its frames")
    return document


def _directory(store_root: Path, snapshot_id: str) -> Path:
    return store_root / layout.SNAPSHOTS / snapshot_id


SNAPSHOT_HINT = "take a snapshot of the unchanged source again to rewrite it"
