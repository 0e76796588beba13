"""Building of the index of a merged batch from its shard files (SPEC.md "Index").

1. An index consists of a base layer and possibly an overlay. If the base of an older index covers nearly all shard
   files of the batch, this base is reused, and the missing files go into a new overlay. Otherwise all files go into a
   new base.
2. The terms of each shard file are read from its terms file. If the terms file is missing or invalid, the records are
   decoded and a terms file is written. Damaged shard files are omitted from the index. Queries read every shard file
   that is not in the index in full.
3. The terms of all files are merged by key. Each posting names its shard file by the number of the file's slot in the
   layer.
4. The words of the files of the batch are added (word_build.py).
5. index.json and the parts are written, or linked, under a hidden name. One rename publishes the new index next to
   older indexes, which are then removed. Published files never change.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from codebatch.errors import StoreCorrupt, StoreError
from codebatch.index import keys
from codebatch.index.generations import (
    IndexBase,
    IndexFile,
    IndexLayer,
    WordLayer,
    find_base,
    index_directory,
    list_generations,
)
from codebatch.index.keys import INDEXED_KINDS, TERMS_VERSION
from codebatch.index.parts import write_parts
from codebatch.index.terms import (
    PostingCollector,
    ShardTerms,
    collect_terms,
    decode_terms,
    line_terms,
    terms_path,
    write_terms,
)
from codebatch.index.word_build import PieceReader, WordBuilder, read_no_piece
from codebatch.model.digest import Digest
from codebatch.model.documents import encode_document
from codebatch.protocol.record_frames import iter_frames
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.ids import SkipCallback
from codebatch.store.results.outputs import MergedOutputs, TaskOutput
from codebatch.store.sharing import hardlink_or_copy, ignoring_link_refusals
from codebatch.store.snapshots.snapshots import Snapshot
from codebatch.system.processes.garbage_collector import collector_paused


class LayerContents(NamedTuple):
    """The contents of a layer: values by key, in key order, and the slots of the layer.

    A slot has the trailer digest of one shard file. Postings name a shard file by the number of its slot.
    """

    pairs: dict[bytes, bytes]
    slots: tuple[Digest, ...]


class IndexBuildStats(NamedTuple):
    """Statistics of the build of an index.

    - `reused`: the number of shard files in the reused base.
    - `decoded`: the number of shard files without a valid terms file.
    - `damaged`: the number of unreadable shard files, which are omitted.
    - `contents`: the number of contents of files whose words are in the index.
    - `contents_reused`: the number of these contents whose words were taken from an older index.
    - `bytes`: the size of the new layer and of new word segments. `terms` and `postings` count those in the new
      layer.
    """

    terms: int
    postings: int
    shard_files: int
    reused: int
    decoded: int
    damaged: int
    contents: int
    contents_reused: int
    bytes: int


class _IndexedShards:
    """The shard files of a batch whose records are indexed, and the terms in these records.

    It counts the files whose records were decoded, and the damaged files.
    """

    def __init__(self, store: StoreDir, outputs: MergedOutputs, on_skipped: SkipCallback, *, rebuilds: bool) -> None:
        """Find the shard files. If `rebuilds` is set, existing terms files are not read.

        `on_skipped` is called with a message for each damaged file.
        """
        self._store = store
        self._outputs = outputs
        self._on_skipped = on_skipped
        self._rebuilds = rebuilds
        self.decoded = 0
        self.damaged = 0
        self.shard_indexes: dict[Digest, tuple[TaskOutput, int]] = {
            shard.digest: (task, index)
            for task in outputs.manifest.tasks
            for index, shard in enumerate(task.shards)
            if not INDEXED_KINDS.isdisjoint(shard.counts.kinds)
        }

    def iter_terms(self, known: Collection[Digest] = (), *, keeps: bool) -> Iterator[tuple[Digest, ShardTerms]]:
        """Yield the trailer digest and the terms of each shard file, except of files in `known`.

        If `keeps` is set, a terms file is written for each shard file whose records are decoded. Raises
        StoreUnwritable.
        """
        for digest, (task, index) in self.shard_indexes.items():
            if digest in known:
                continue
            terms = None if self._rebuilds else self._read_terms_file(digest)
            if terms is None:
                self.decoded += 1
                try:
                    terms = _decode_shard(self._outputs, task, index)
                except StoreCorrupt as error:
                    self.damaged += 1
                    self._on_skipped(error.message)
                    continue
                if keeps:
                    with ignoring_link_refusals():  # A terms file only saves time.
                        write_terms(self._store.files, self._store.root, digest, terms)
            yield digest, terms

    def _read_terms_file(self, digest: Digest) -> ShardTerms | None:
        try:
            return decode_terms(self._store.files.read(terms_path(self._store.root, digest)), digest)
        except (FileNotFoundError, StoreError, ValueError):
            return None


def build_generation(
    store: StoreDir,
    batch: BatchDir,
    outputs: MergedOutputs,
    on_skipped: SkipCallback,
    *,
    rebuilds: bool,
    snapshot: Snapshot | None = None,
    read_piece: PieceReader = read_no_piece,
) -> IndexBuildStats:
    """Build the index of a batch from its merged outputs and files, and make it the current index of the batch.

    On return it is on disk. If `rebuilds` is set, the index is built from the records and files alone: older indexes
    and terms files are not read. `snapshot` is the snapshot of the batch, if the caller already has it.
    `read_piece` returns word segments that other processes have built. The caller holds the shared lock of the store
    (`StoreDir.writing`). Raises StoreUnwritable or StoreError.
    """
    shards = _IndexedShards(store, outputs, on_skipped, rebuilds=rebuilds)
    words = WordBuilder(store, batch, on_skipped, snapshot, read_piece)
    base = None if rebuilds else find_base(store, (batch.id, *batch.about.bases), shards.shard_indexes)
    try:
        return _build_on_base(store, batch, shards, words, base, reuses=not rebuilds)
    except FileNotFoundError:
        if rebuilds:
            raise
    # Another process published a newer index of an older batch and removed files that this index was to reuse.
    shards = _IndexedShards(store, outputs, on_skipped, rebuilds=rebuilds)
    return _build_on_base(store, batch, shards, words, None, reuses=False)


def _build_on_base(
    store: StoreDir,
    batch: BatchDir,
    shards: _IndexedShards,
    words: WordBuilder,
    base: IndexBase | None,
    *,
    reuses: bool,
) -> IndexBuildStats:
    """Build the index with the reused base layer `base`, or with a new base if `base` is None.

    If `reuses` is set, words of older indexes are reused. Raises FileNotFoundError if a reused file was removed.
    """
    reused = shards.shard_indexes.keys() & base.layer.slots if base is not None else frozenset[Digest]()
    contents = merge_terms(shards.iter_terms(reused, keeps=True))
    layer_bytes = publish_index(store, batch.id, contents, base, partial(words.write, reuses=reuses))
    return IndexBuildStats(
        terms=len(contents.pairs),
        postings=sum(map(len, contents.pairs.values())) // keys.POSTING_BYTES,
        shard_files=len(reused) + len(contents.slots),
        reused=len(reused),
        decoded=shards.decoded,
        damaged=shards.damaged,
        contents=words.stats.contents,
        contents_reused=words.stats.reused,
        bytes=layer_bytes + words.stats.bytes,
    )


def decode_shard_terms(
    store: StoreDir, outputs: MergedOutputs, on_skipped: SkipCallback
) -> tuple[dict[Digest, ShardTerms], int]:
    """Return the terms of each shard file, decoded from its records, and the number of unreadable shard files.

    Terms files are neither read nor written.
    """
    shards = _IndexedShards(store, outputs, on_skipped, rebuilds=True)
    return dict(shards.iter_terms(keeps=False)), shards.damaged


def merge_terms(shard_terms: Iterable[tuple[Digest, ShardTerms]]) -> LayerContents:
    """Return the contents of a layer with the terms of all given shard files."""
    gathered = PostingCollector()
    slots: list[Digest] = []
    with collector_paused():
        for digest, terms in shard_terms:
            if terms.columns:
                gathered.add(terms, keys.encode_postings(len(slots), terms.frames))
            slots.append(digest)
        return LayerContents(gathered.postings_by_key(), tuple(slots))


def publish_index(
    store: StoreDir,
    batch_id: str,
    contents: LayerContents,
    base: IndexBase | None,
    add_words: Callable[[Path], WordLayer | None] = lambda _: None,
) -> int:
    """Publish an index with a new layer as the current index of a batch. If a base is given, it is reused.

    `add_words` writes the words into the directory of the new index.

    Return the size of the new layer in bytes. It is 0 if the base covers all shard files. On return the index is on
    disk, and older indexes are removed. The caller holds the shared lock of the store. Raises StoreUnwritable or
    StoreError.
    """
    files = store.files
    building = store.root / layout.INDEXES / f".{uuid.uuid4().hex}.tmp"
    files.make_directory(building)
    try:
        if base is not None:
            for number in range(len(base.layer.parts)):
                part = layout.index_part_name(layout.INDEX_BASE, number)
                hardlink_or_copy(files, base.root / part, building / part)
        name = layout.INDEX_BASE if base is None else layout.INDEX_OVERLAY
        layer = IndexLayer(parts=write_parts(files, building, name, contents.pairs), slots=contents.slots)
        about = IndexFile(
            terms_version=TERMS_VERSION,
            base=layer if base is None else base.layer,
            overlay=layer if base is not None and layer.slots else None,
            words=add_words(building),
        )
        files.write_new(building / layout.INDEX_FILE, encode_document(about))
        files.make_directory(index_directory(store, batch_id))
        files.sync_directory(store.root / layout.INDEXES)
        number = max(list_generations(store, batch_id), default=0) + 1
        # If another process has just published this number, its index is equivalent, and this one is removed.
        files.publish_directory(building, index_directory(store, batch_id) / str(number))
    except BaseException:
        files.remove_tree(building)
        raise
    for older in list_generations(store, batch_id):
        if older < number:
            with ignoring_link_refusals():  # It stays if it is not a directory. No reader uses it.
                files.remove_tree(index_directory(store, batch_id) / str(older))
    return sum(part.length for part in layer.parts)


def _decode_shard(outputs: MergedOutputs, task: TaskOutput, index: int) -> ShardTerms:
    """Decode the records of a shard file into terms. Raises StoreCorrupt."""
    frames = outputs.verified_frames(task, index)  # Verified, because postings contain frame numbers.
    try:
        return collect_terms(map(line_terms, iter_frames(frames, task.shards[index].bytes)))
    except ValueError as error:
        raise StoreCorrupt(f"{outputs.shard_path(task, index)} is damaged: {error}") from error
