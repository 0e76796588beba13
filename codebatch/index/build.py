"""Building the index of a merged batch from what its shard files say (SPEC.md "Index").

1. The base of an older index stands where it knows nearly all shard files. What it does not know goes into an overlay;
   where there is no such base, all goes into a new one.
2. Of every such shard file the terms: from its terms file where that is sound, else by decoding its records, which
   writes the terms file. A shard that is damaged is left out: an index that does not name it has it read as a whole.
3. They are united by key, each posting with the number of its shard file's slot.
4. index.json and the parts are written, or linked, under a hidden name, and published by one rename, beside older
   ones, which then go. Nothing that is published ever changes.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from codebatch.errors import StoreCorrupt, StoreError
from codebatch.index import keys
from codebatch.index.generations import IndexBase, IndexFile, Layer, find_base, generations, indexes_of
from codebatch.index.keys import KINDS_POSTED, TERMS_VERSION
from codebatch.index.parts import write_parts
from codebatch.index.terms import (
    Gathered,
    Terms,
    collect_terms,
    decode_terms,
    encode_terms,
    posted_by_lines,
    terms_path,
)
from codebatch.model.digest import Digest
from codebatch.model.documents import encode_document
from codebatch.protocol.record_frames import iter_frames
from codebatch.store import layout
from codebatch.store.batches.batches import BatchDir
from codebatch.store.batches.store import StoreDir
from codebatch.store.ids import PassedOver
from codebatch.store.results.outputs import Outputs, TaskOutput
from codebatch.store.sharing import hardlink_or_copy, ignoring_link_refusals
from codebatch.system.processes.garbage_collector import collector_paused


class LayerContents(NamedTuple):
    """What a layer holds: values by key, in the order of keys; and by slot the digest of a shard file's trailer."""

    pairs: dict[bytes, bytes]
    slots: tuple[Digest, ...]


class Built(NamedTuple):
    """An index that was made: what was put into it, beside so many shard files that an older base `reused` from it.

    `decoded` of its shard files had no sound terms file; `damaged` ones could not be read, and are left out. `bytes` is
    how long its new layer is; `postings` are in that.
    """

    terms: int
    postings: int
    shard_files: int
    reused: int
    decoded: int
    damaged: int
    bytes: int


class _Shards:
    """The shard files of some outputs that post anything, and what they post. Counts what it took to find out."""

    def __init__(self, store: StoreDir, outputs: Outputs, passed_over: PassedOver, *, is_anew: bool) -> None:
        """`is_anew`: all is decoded, and no terms file is believed. `passed_over` is told of what is damaged."""
        self._store = store
        self._outputs = outputs
        self._passed_over = passed_over
        self._is_anew = is_anew
        self.decoded = 0
        self.damaged = 0
        self.places: dict[Digest, tuple[TaskOutput, int]] = {
            shard.digest: (task, index)
            for task in outputs.manifest.tasks
            for index, shard in enumerate(task.shards)
            if not KINDS_POSTED.isdisjoint(shard.counts.kinds)
        }

    def iter_terms(self, known: Collection[Digest] = (), *, keeps: bool) -> Iterator[tuple[Digest, Terms]]:
        """Of each that is not known what it posts. `keeps`: of what is decoded terms files are written.

        Raises StoreUnwritable.
        """
        for digest, (task, index) in self.places.items():
            if digest in known:
                continue
            terms = None if self._is_anew else self._kept_terms(digest)
            if terms is None:
                self.decoded += 1
                try:
                    terms = _decode_shard(self._outputs, task, index)
                except StoreCorrupt as error:
                    self.damaged += 1
                    self._passed_over(error.message)
                    continue
                if keeps:
                    with ignoring_link_refusals():  # Nothing but speed rests on it.
                        path = terms_path(self._store.root, digest)
                        self._store.files.write_volatile(path, encode_terms(digest, terms))
            yield digest, terms

    def _kept_terms(self, digest: Digest) -> Terms | None:
        try:
            return decode_terms(self._store.files.read(terms_path(self._store.root, digest)), digest)
        except (FileNotFoundError, StoreError, ValueError):
            return None


def build(store: StoreDir, batch: BatchDir, outputs: Outputs, passed_over: PassedOver, *, is_anew: bool) -> Built:
    """Make the index of some outputs the current one of their batch. On return it is on disk.

    `is_anew`: of the records alone, whatever is kept of them. For who holds the store's lock (`Store.writing`). Raises
    StoreUnwritable or StoreError.
    """
    shards = _Shards(store, outputs, passed_over, is_anew=is_anew)
    base = None if is_anew else find_base(store, (batch.id, *batch.about.bases), shards.places)
    try:
        return _build(store, batch, shards, base)
    except FileNotFoundError:
        if base is None:
            raise
    # Who has made a newer index of that batch meanwhile has removed the one whose base it was.
    return _build(store, batch, _Shards(store, outputs, passed_over, is_anew=is_anew), None)


def _build(store: StoreDir, batch: BatchDir, shards: _Shards, base: IndexBase | None) -> Built:
    """Raises FileNotFoundError where the base has gone."""
    known = shards.places.keys() & base.layer.slots if base is not None else frozenset[Digest]()
    contents = unite(shards.iter_terms(known, keeps=True))
    return Built(
        terms=len(contents.pairs),
        postings=sum(map(len, contents.pairs.values())) // keys.POSTING_BYTES,
        shard_files=len(known) + len(contents.slots),
        reused=len(known),
        decoded=shards.decoded,
        damaged=shards.damaged,
        bytes=publish_index(store, batch.id, contents, base),
    )


def posted_anew(store: StoreDir, outputs: Outputs, passed_over: PassedOver) -> tuple[dict[Digest, Terms], int]:
    """What each shard file posts, by its records, and how many could not be read. Nothing is written."""
    shards = _Shards(store, outputs, passed_over, is_anew=True)
    return dict(shards.iter_terms(keeps=False)), shards.damaged


def unite(shard_terms: Iterable[tuple[Digest, Terms]]) -> LayerContents:
    """What a layer holds of shard files that post this."""
    gathered = Gathered()
    slots: list[Digest] = []
    with collector_paused():
        for digest, terms in shard_terms:
            if terms.columns:
                gathered.add(terms, keys.encode_postings(len(slots), terms.frames))
            slots.append(digest)
        return LayerContents(gathered.by_key(), tuple(slots))


def publish_index(store: StoreDir, batch_id: str, contents: LayerContents, base: IndexBase | None) -> int:
    """Make an index of what it holds, beside a base where there is one, the current one of a batch.

    How long its new layer is; 0 where the base knows all. On return it is on disk. For who holds the store's lock.
    Older ones go. Raises StoreUnwritable or StoreError.
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
        made = Layer(parts=write_parts(files, building, name, contents.pairs), slots=contents.slots)
        about = IndexFile(
            terms_version=TERMS_VERSION,
            base=made if base is None else base.layer,
            overlay=made if base is not None and made.slots else None,
        )
        files.write_new(building / layout.INDEX_FILE, encode_document(about))
        files.make_directory(indexes_of(store, batch_id))
        files.sync_directory(store.root / layout.INDEXES)
        number = max(generations(store, batch_id), default=0) + 1
        # Where another has just published this number, ours is as good as his, and goes.
        files.publish_directory(building, indexes_of(store, batch_id) / str(number))
    except BaseException:
        files.remove_tree(building)
        raise
    for older in generations(store, batch_id):
        if older < number:
            with ignoring_link_refusals():  # What is no directory stays, and nobody asks it any more.
                files.remove_tree(indexes_of(store, batch_id) / str(older))
    return sum(part.length for part in made.parts)


def _decode_shard(outputs: Outputs, task: TaskOutput, index: int) -> Terms:
    """Raises StoreCorrupt."""
    frames = outputs.whole_frames(task, index)  # Held against the trailer, which numbers them.
    try:
        return collect_terms(map(posted_by_lines, iter_frames(frames, task.shards[index].bytes)))
    except ValueError as error:
        raise StoreCorrupt(f"{outputs.path_of(task, index)} is damaged: {error}") from error
