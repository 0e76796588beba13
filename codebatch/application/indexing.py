"""Making the index of a batch, and holding it against what it is of."""

from __future__ import annotations

import msgspec

from codebatch.application import Note, ignore_note
from codebatch.errors import BatchIncomplete, StoreCorrupt, UnknownId
from codebatch.index.build import Contents, build, make_contents
from codebatch.index.read import index_hint, open_index
from codebatch.store.batches import Batch
from codebatch.store.outputs import Outputs, current_outputs
from codebatch.store.shard_files import DAMAGE_HINT
from codebatch.store.store import Store


class IndexAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What an index holds: so many `terms` with so many `postings`, of so many shard files.

    `decoded` of these were read for it, of the others it was known what they post; `damaged` could not be read, and are
    not in it. `bytes` is how long it is on disk, 0 where nothing was made: it was verified.
    """

    batch_id: str
    shard_files: int
    terms: int
    postings: int
    decoded: int
    damaged: int
    bytes: int


def build_index(store: Store, batch: Batch, *, is_anew: bool = False, note: Note = ignore_note) -> IndexAnswer:
    """Make the index of a merged batch, and have it take the place of an older one. On return it is on disk.

    `is_anew`: from the records alone, whatever was kept of them. `note` is told which shard files are damaged. Raises
    BatchIncomplete where nothing is merged yet, StoreCorrupt or StoreUnwritable.
    """
    with store.writing():
        contents, made_bytes = build(store, batch.id, _outputs(batch), note, is_anew=is_anew)
    return _told(batch, contents, made_bytes)


def verify_index(store: Store, batch: Batch, note: Note = ignore_note) -> IndexAnswer:
    """Hold the index of a batch against one that is made anew from its records. Changes nothing of it.

    Raises UnknownId where there is none, StoreCorrupt where it is damaged or another.
    """
    found = open_index(store, batch.id)
    if found is None:
        raise UnknownId(
            f"batch {batch.id} has no index", hint=f"make it with: codebatch index-build --batch {batch.id}"
        )
    contents = make_contents(store, _outputs(batch), note, is_anew=True, keeps=False)
    if contents.damaged:
        raise StoreCorrupt(f"the index cannot be verified: batch {batch.id} is damaged", hint=DAMAGE_HINT)
    if found.contents() != contents.pairs:
        raise StoreCorrupt(f"the index of batch {batch.id} is not what its records say", hint=index_hint(batch.id))
    return _told(batch, contents, 0)


def _outputs(batch: Batch) -> Outputs:
    outputs = current_outputs(batch)
    if outputs is None:
        raise BatchIncomplete(
            f"nothing of batch {batch.id} is merged yet", hint=f"go on with: codebatch run --batch {batch.id}"
        )
    return outputs


def _told(batch: Batch, contents: Contents, made_bytes: int) -> IndexAnswer:
    return IndexAnswer(
        batch_id=batch.id,
        shard_files=contents.slots,
        terms=contents.terms,
        postings=contents.postings,
        decoded=contents.decoded,
        damaged=contents.damaged,
        bytes=made_bytes,
    )
