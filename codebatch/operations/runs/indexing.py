"""Creation and verification of the index of a batch."""

from __future__ import annotations

import msgspec

from codebatch.errors import BatchIncomplete, StoreCorrupt, UnknownId
from codebatch.index.build import build_generation, decode_shard_terms
from codebatch.index.generations import index_hint
from codebatch.index.read import BatchIndex, open_index
from codebatch.index.word_build import PieceReader, iter_item_words, read_no_piece
from codebatch.operations import NoteCallback, ignore_note
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.outputs import MergedOutputs, current_outputs
from codebatch.store.results.shard_files import DAMAGE_HINT
from codebatch.store.snapshots.snapshots import Snapshot


class IndexAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch index build`.

    - `shard_files`: the number of result files in the index.
    - `reused`: the number of result files whose index data was taken from an older index.
    - `decoded`: the number of result files that were read.
    - `damaged`: the number of result files that could not be read. They are not in the index.
    - `terms`: the number of terms that were added, such as names and rule IDs.
    - `postings`: the number of occurrences of these terms.
    - `contents`: the number of contents of files whose words are in the index.
    - `contents_reused`: the number of these contents whose words were taken from an older index.
    - `bytes`: the size of the new index data on disk. It is 0 with `--verify`, which writes nothing.
    """

    batch_id: str
    shard_files: int
    reused: int
    terms: int
    postings: int
    decoded: int
    damaged: int
    contents: int
    contents_reused: int
    bytes: int


def build_index(
    store: StoreDir,
    batch: BatchDir,
    *,
    rebuilds: bool = False,
    note: NoteCallback = ignore_note,
    snapshot: Snapshot | None = None,
    read_piece: PieceReader = read_no_piece,
) -> IndexAnswer:
    """Build the index of a merged batch. It replaces an older index. On return it is durable.

    With `rebuilds`, cached data of older indexes is not reused. `note` receives notes about damage. `snapshot` is
    the snapshot of the batch, if the caller already has it. `read_piece` returns word segments that other processes
    have built. Raises BatchIncomplete if the batch has no merged results, StoreCorrupt or StoreUnwritable.
    """
    with store.writing():
        built = build_generation(
            store,
            batch,
            require_outputs(batch),
            note,
            rebuilds=rebuilds,
            snapshot=snapshot,
            read_piece=read_piece,
        )
    return IndexAnswer(batch_id=batch.id, **built._asdict())


def verify_index(store: StoreDir, batch: BatchDir, note: NoteCallback = ignore_note) -> IndexAnswer:
    """Compare the index of a batch with its records and with the words of its files. The index is not changed.

    Raises UnknownId if there is no index, and StoreCorrupt if the index is damaged or differs.
    """
    index = open_index(store, batch.id)
    if index is None:
        raise UnknownId(
            f"batch {batch.id} has no index", hint=f"build it with: codebatch index build --batch {batch.id}"
        )
    rebuilt, damaged = decode_shard_terms(store, require_outputs(batch), note)
    if damaged:
        raise StoreCorrupt(f"the index cannot be verified: batch {batch.id} is damaged", hint=DAMAGE_HINT)
    posted = index.read_postings()
    expected = {digest: terms.frames_by_key() for digest, terms in rebuilt.items()}
    if any(posted.get(digest) != terms for digest, terms in expected.items()):
        raise StoreCorrupt(f"the index of batch {batch.id} does not match its records", hint=index_hint(batch.id))
    contents = _verify_words(store, batch, index)
    return IndexAnswer(
        batch_id=batch.id,
        shard_files=len(expected),
        reused=0,
        terms=len(set[bytes]().union(*expected.values())),
        postings=sum(sum(column.counts) for terms in rebuilt.values() for column in terms.columns),
        decoded=len(expected),
        damaged=0,
        contents=contents,
        contents_reused=0,
        bytes=0,
    )


def _verify_words(store: StoreDir, batch: BatchDir, index: BatchIndex) -> int:
    """Check that each item is found by its words. Return the number of contents. Raises StoreCorrupt."""
    contents = 0
    for item, words in iter_item_words(store, batch):
        contents += 1
        if not index.has_words(item, words):
            raise StoreCorrupt(f"the index of batch {batch.id} lacks words of its files", hint=index_hint(batch.id))
    return contents


def require_outputs(batch: BatchDir) -> MergedOutputs:
    """Return the merged outputs of a batch. Raises BatchIncomplete or StoreCorrupt."""
    outputs = current_outputs(batch)
    if outputs is None:
        raise BatchIncomplete(
            f"batch {batch.id} has no merged results yet", hint=f"resume it with: codebatch resume --batch {batch.id}"
        )
    return outputs
