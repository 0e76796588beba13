"""Building the index of a merged batch from what its shard files say (SPEC.md "Index").

1. Of every shard of every task the terms: from its terms file where that is sound, else by decoding its records, which
   writes the terms file. A shard that is damaged is left out: an index that does not name it has it read as a whole.
2. They are united by key, each posting with the number of its shard's slot.
3. index.json and the database are written under a hidden name, and published by one rename, beside older ones, which
   then go. Nothing that is published ever changes.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from codebatch.errors import StoreCorrupt
from codebatch.index import keys
from codebatch.index.database import make_database
from codebatch.index.keys import Slot
from codebatch.index.read import IndexFile, generations, indexes_of
from codebatch.index.terms import (
    KINDS_POSTED,
    TERMS_VERSION,
    Terms,
    collect_terms,
    decode_terms,
    encode_terms,
    posted_by_lines,
    terms_path,
)
from codebatch.model.document import encode_document
from codebatch.store import layout
from codebatch.store.ids import PassedOver
from codebatch.store.outputs import Outputs, OutputShard, TaskOutput
from codebatch.store.store import Store


class Contents(NamedTuple):
    """What an index holds, by key, in their order. `decoded` shards had no sound terms file; `damaged` are left out."""

    pairs: dict[bytes, bytes]
    slots: int
    terms: int
    postings: int
    decoded: int
    damaged: int


def build(
    store: Store, batch_id: str, outputs: Outputs, passed_over: PassedOver, *, is_anew: bool
) -> tuple[Contents, int]:
    """Make the index of some outputs the current one of their batch: `make_contents`, then `publish_index`."""
    contents = make_contents(store, outputs, passed_over, is_anew=is_anew, keeps=True)
    return contents, publish_index(store, batch_id, contents)


def make_contents(store: Store, outputs: Outputs, passed_over: PassedOver, *, is_anew: bool, keeps: bool) -> Contents:
    """What an index of some outputs holds. `is_anew`: all is decoded, and no terms file is believed.

    `keeps`: of what is decoded terms files are written. `passed_over` is told of what is damaged. Raises
    StoreUnwritable.
    """
    posted: dict[bytes, list[bytes]] = {}
    slots: dict[bytes, bytes] = {}
    decoded = damaged = postings = 0
    for task, index, shard in _shards(outputs):
        terms = None if is_anew else _known_terms(store, shard)
        if terms is None:
            decoded += 1
            try:
                terms = _decode_shard(outputs, task, index)
            except StoreCorrupt as error:
                damaged += 1
                passed_over(error.message)
                continue
            if keeps:
                store.files.write_volatile(terms_path(store.root, shard.digest), encode_terms(shard.digest, terms))
        slot = len(slots)
        slots[keys.slot_key(slot)] = keys.encode_slot(Slot(task.task, shard.shard, shard.digest))
        for key, items in terms.items():
            posted.setdefault(key, []).append(keys.encode_postings(slot, items))
            postings += len(items) // keys.ITEM_BYTES
    pairs = {key: b"".join(values) for key, values in posted.items()} | slots
    return Contents(dict(sorted(pairs.items())), len(slots), len(posted), postings, decoded, damaged)


def publish_index(store: Store, batch_id: str, contents: Contents) -> int:
    """Make an index of what it holds the current one of a batch; how long its database is. On return it is on disk.

    For who holds the store's lock (`Store.writing`). Older ones go. Raises StoreUnwritable or StoreError.
    """
    data = make_database(contents.pairs.items())
    about = IndexFile(terms_version=TERMS_VERSION, bytes=len(data), crc32=zlib.crc32(data))
    files = store.files
    building = store.root / layout.INDEXES / f".{uuid.uuid4().hex}.tmp"
    files.make_directory(building)
    try:
        files.write_new(building / layout.INDEX_DATABASE, data)
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
            files.remove_tree(indexes_of(store, batch_id) / str(older))
    return len(data)


def _shards(outputs: Outputs) -> Iterator[tuple[TaskOutput, int, OutputShard]]:
    return ((task, index, shard) for task in outputs.manifest.tasks for index, shard in enumerate(task.shards))


def _known_terms(store: Store, shard: OutputShard) -> Terms | None:
    if KINDS_POSTED.isdisjoint(shard.counts.kinds):
        return {}
    try:
        return decode_terms(store.files.read(terms_path(store.root, shard.digest)), shard.digest)
    except (FileNotFoundError, ValueError):
        return None


def _decode_shard(outputs: Outputs, task: TaskOutput, index: int) -> Terms:
    """Raises StoreCorrupt."""
    try:
        return collect_terms(map(posted_by_lines, outputs.iter_items(task, index)))
    except ValueError as error:
        raise StoreCorrupt(f"{outputs.path_of(task, index)} is damaged: {error}") from error
