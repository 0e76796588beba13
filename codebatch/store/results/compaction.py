"""Settled batches: COMPLETED batches of which only the outputs remain.

The outputs contain all results, so the files from which they were merged are removed. First `settled.json` is written
durably. It names the outputs that must exist from then on; if they are missing, the batch is damaged. Without
`settled.json`, the empty directories would look like work that was not done.
"""

from __future__ import annotations

from codebatch.model.digest import Digest
from codebatch.model.documents import Document, decode_document, encode_document
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.documents import read_document

SETTLED_FORMAT = 1
REMOVED_DIRECTORIES = (layout.LEASES, layout.RESULTS, layout.OUTCOMES, layout.HOLDERS, layout.SCRATCH)
"""The directories of a batch that settling removes, in any order."""


class CompactedBatch(Document, frozen=True, kw_only=True):
    """The document settled.json: the batch is complete, and these outputs are its results.

    The document does not contain the ID of its batch, so that batches can share it by a hard link.
    """

    format: int = SETTLED_FORMAT
    plan_digest: Digest
    result_digest: Digest


def decode_compacted(data: bytes) -> CompactedBatch:
    """Decode settled.json. Raises DocumentError."""
    return decode_document(data, CompactedBatch, SETTLED_FORMAT)


def read_compacted(batch: BatchDir) -> CompactedBatch | None:
    """Read settled.json of a batch, or return None if the batch is not settled. Raises StoreCorrupt."""
    try:
        return read_document(batch.files, batch.root / layout.SETTLED_FILE, decode_compacted, hint=SETTLED_HINT)
    except (FileNotFoundError, NotADirectoryError):
        return None


def can_compact(batch: BatchDir) -> bool:
    """Return whether settling a batch would change anything: write settled.json or remove a directory."""
    names = batch.files.listing(batch.root).keys()
    return layout.SETTLED_FILE not in names or not names.isdisjoint(REMOVED_DIRECTORIES)


def compact_batch(batch: BatchDir, result_digest: Digest) -> None:
    """Settle a COMPLETED batch: remove everything that its outputs were made from. Idempotent.

    The caller holds the exclusive lock of the store (`StoreDir.exclusive_lock`), and no process works on the batch.
    First the directory name of the outputs is synced, because their creator may have died before its last fsync. Then
    settled.json is written. After that, files are removed.
    """
    files = batch.files
    files.sync_directory(batch.root / layout.OUTPUTS)
    if read_compacted(batch) is None:
        document = CompactedBatch(plan_digest=batch.about.plan_digest, result_digest=result_digest)
        files.write_atomic(batch.root / layout.SETTLED_FILE, encode_document(document))
    for name in REMOVED_DIRECTORIES:
        files.remove_tree(batch.root / name)


SETTLED_HINT = "the data needed to merge it again was removed: make a new batch with: codebatch run PATH"
