"""Result keys whose results are taken over no more, for `verify` found that they do not decide them (SPEC.md "Reuse").

`untrusted.json` lies in the root of the store, for it can be made of nothing else. Whoever changes it holds
its lock, and the store's as who writes does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.digest import DIGEST_PATTERN, Digest
from codebatch.model.documents import Document, DocumentError, decode_document, encode_document
from codebatch.store import layout
from codebatch.store.batches.batches import BatchId
from codebatch.store.batches.store import StoreDir
from codebatch.store.documents import read_document

UNTRUSTED_FORMAT = 1

_HINT = "the list of untrusted cache keys is lost: remove the file, then rebuild the list with: codebatch verify"


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
    """All that there are. Raises StoreCorrupt: what is damaged never counts as none."""
    path = store.root / layout.UNTRUSTED_FILE
    try:
        return read_document(store.files, path, decode_untrusted, hint=_HINT).keys
    except FileNotFoundError:
        return ()


def untrusted_keys(store: StoreDir) -> frozenset[Digest]:
    """The keys alone. Raises StoreCorrupt."""
    return frozenset(each.key for each in load_untrusted(store))


def distrust(store: StoreDir, found: Iterable[UntrustedKey]) -> None:
    """Add keys; one that is there already stays as it is. On return they are on disk. Raises StoreError."""
    with _changing(store) as known:
        for each in found:
            known.setdefault(each.key, each)


def trust(store: StoreDir, reference: str) -> UntrustedKey:
    """Take out the one key that begins so, and return it. On return that is on disk.

    Raises InvalidInput where there is none or are several, or StoreError.
    """
    with _changing(store) as known:
        found = [key for key in known if reference and key.startswith(reference)]
        if len(found) != 1:
            hint = f"one of: {', '.join(known)}" if known else "all cache keys are trusted"
            raise InvalidInput(f"{reference!r} matches {len(found) or 'no'} untrusted cache keys", hint=hint)
        return known.pop(found[0])


@contextlib.contextmanager
def _changing(store: StoreDir) -> Iterator[dict[Digest, UntrustedKey]]:
    lock = store.files.wait_lock(store.root / layout.LOCKS / layout.LOCK_OF_UNTRUSTED, shared=False)
    try:
        before = load_untrusted(store)
        known = {each.key: each for each in before}
        yield known
        after = tuple(known[key] for key in sorted(known))
        if after != before:
            document = UntrustedFile(keys=after)
            store.files.write_atomic(store.root / layout.UNTRUSTED_FILE, encode_document(document))
    finally:
        lock.release()


def decode_untrusted(data: bytes) -> UntrustedFile:
    """Read untrusted.json. Raises DocumentError."""
    document = decode_document(data, UntrustedFile, UNTRUSTED_FORMAT)
    keys = [each.key for each in document.keys]
    if keys != sorted(set(keys)) or not all(map(DIGEST_PATTERN.match, keys)):
        raise DocumentError("its keys are invalid or out of order")
    return document
