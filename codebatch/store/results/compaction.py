"""Settled batches: of one that is COMPLETED its outputs say everything, so what they were made of goes.

`settled.json` is on disk before anything goes, and says which outputs the batch now rests on. With it and without these
the batch is damaged: that nothing is in its directories any more never means that nothing was done.
"""

from __future__ import annotations

from codebatch.model.digest import Digest
from codebatch.model.documents import Document, decode_document, encode_document
from codebatch.store import layout
from codebatch.store.batches.batches import BatchDir
from codebatch.store.documents import read_document

SETTLED_FORMAT = 1
UNSETTLED = (layout.LEASES, layout.RESULTS, layout.OUTCOMES, layout.HOLDERS, layout.SCRATCH)
"""The directories that go, in any order."""


class CompactedBatch(Document, frozen=True, kw_only=True):
    """The document settled.json: the batch is complete, and these outputs are its results.

    The document does not contain the ID of its batch, so that batches can share it by a hard link.
    """

    format: int = SETTLED_FORMAT
    plan_digest: Digest
    result_digest: Digest


def decode_compacted(data: bytes) -> CompactedBatch:
    """Read settled.json. Raises DocumentError."""
    return decode_document(data, CompactedBatch, SETTLED_FORMAT)


def read_compacted(batch: BatchDir) -> CompactedBatch | None:
    """What settled.json of a batch says; None where it is not settled. Raises StoreCorrupt."""
    try:
        return read_document(batch.files, batch.root / layout.SETTLED_FILE, decode_compacted, hint=SETTLED_HINT)
    except (FileNotFoundError, NotADirectoryError):
        return None


def can_compact(batch: BatchDir) -> bool:
    """Whether there is anything left that goes with settling."""
    names = batch.files.listing(batch.root).keys()
    return layout.SETTLED_FILE not in names or not names.isdisjoint(UNSETTLED)


def compact_batch(batch: BatchDir, result_digest: Digest) -> None:
    """Remove all that the outputs of a COMPLETED batch are made of. Idempotent.

    Only for who has the store alone (`Store.alone`), and of a batch that no process holds. The document is on disk
    before anything goes, and before it the name of the outputs, whose maker may have died without its last fsync.
    """
    files = batch.files
    files.sync_directory(batch.root / layout.OUTPUTS)
    if read_compacted(batch) is None:
        document = CompactedBatch(plan_digest=batch.about.plan_digest, result_digest=result_digest)
        files.write_atomic(batch.root / layout.SETTLED_FILE, encode_document(document))
    for name in UNSETTLED:
        files.remove_tree(batch.root / name)


SETTLED_HINT = "the data needed to merge it again was removed: make a new batch with: codebatch run PATH"
