"""Untrusted cache keys.

For these keys, `verify` got results that differ from the stored ones, so they are not reused (SPEC.md "Reuse").

`untrusted.json` is in the root of the store, because it cannot be derived from other data. A process that changes it
holds the lock of this file and the shared lock of the store.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.digest import DIGEST_PATTERN, Digest
from codebatch.model.documents import Document, DocumentError, decode_document, encode_document
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchId
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.documents import read_document

UNTRUSTED_FORMAT = 1

_LOST_LIST_HINT = (
    "the list of untrusted cache keys is lost: remove the file, then rebuild the list with: codebatch verify"
)


class UntrustedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A cache key whose results are not reused, because a verification gave a different result.

    `task` and `batch_id` are the task and the batch that were verified.
    """

    key: Digest
    task: str
    batch_id: BatchId


class UntrustedFile(Document, frozen=True, kw_only=True):
    """The document untrusted.json: the untrusted cache keys, in ascending order."""

    format: int = UNTRUSTED_FORMAT
    keys: tuple[UntrustedKey, ...]


def load_untrusted(store: StoreDir) -> tuple[UntrustedKey, ...]:
    """Return all untrusted keys. Raises StoreCorrupt: a damaged list is never taken for an empty one."""
    path = store.root / layout.UNTRUSTED_FILE
    try:
        return read_document(store.files, path, decode_untrusted, hint=_LOST_LIST_HINT).keys
    except FileNotFoundError:
        return ()


def untrusted_keys(store: StoreDir) -> frozenset[Digest]:
    """Return the digests of all untrusted keys. Raises StoreCorrupt."""
    return frozenset(key.key for key in load_untrusted(store))


def distrust_keys(store: StoreDir, keys: Iterable[UntrustedKey]) -> None:
    """Add keys. A key that is already listed is not changed. On return they are on disk. Raises StoreError."""
    with _editing_keys(store) as by_digest:
        for key in keys:
            by_digest.setdefault(key.key, key)


def trust_key(store: StoreDir, reference: str) -> UntrustedKey:
    """Remove the one key that begins with `reference` from the list of untrusted keys, and return it.

    On return the removal is on disk. Raises InvalidInput if no key or several keys begin with `reference`. Raises
    StoreError if the list cannot be changed.
    """
    with _editing_keys(store) as by_digest:
        matches = [key for key in by_digest if reference and key.startswith(reference)]
        if len(matches) != 1:
            hint = f"one of: {', '.join(by_digest)}" if by_digest else "all cache keys are trusted"
            raise InvalidInput(f"{reference!r} matches {len(matches) or 'no'} untrusted cache keys", hint=hint)
        return by_digest.pop(matches[0])


@contextlib.contextmanager
def _editing_keys(store: StoreDir) -> Iterator[dict[Digest, UntrustedKey]]:
    lock = store.files.wait_lock(store.root / layout.LOCKS / layout.UNTRUSTED_LOCK, shared=False)
    try:
        before = load_untrusted(store)
        by_digest = {key.key: key for key in before}
        yield by_digest
        after = tuple(by_digest[key] for key in sorted(by_digest))
        if after != before:
            document = UntrustedFile(keys=after)
            store.files.write_atomic(store.root / layout.UNTRUSTED_FILE, encode_document(document))
    finally:
        lock.release()


def decode_untrusted(data: bytes) -> UntrustedFile:
    """Decode untrusted.json. Raises DocumentError."""
    document = decode_document(data, UntrustedFile, UNTRUSTED_FORMAT)
    keys = [key.key for key in document.keys]
    if keys != sorted(set(keys)) or not all(map(DIGEST_PATTERN.match, keys)):
        raise DocumentError("its keys are invalid or out of order")
    return document
