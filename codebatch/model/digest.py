"""Digests: the sha256 of bytes as lower-case hex. SPEC.md "Digests" defines which bytes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import NewType

import msgspec

Digest = NewType("Digest", str)
"""64 lower-case hex digits of a sha256."""

DIGEST_PATTERN = re.compile(r"[0-9a-f]{64}\Z")

_HEX_DIGITS = b"0123456789abcdef"
_DIGEST_LENGTH = 64

_canonical_encoder = msgspec.json.Encoder(order="sorted")


def are_digests(texts: Sequence[str]) -> bool:
    """Return whether all texts are digests.

    For thousands of texts, one call is much faster than `DIGEST_PATTERN` for each.
    """
    return {*map(len, texts)} <= {_DIGEST_LENGTH} and not "".join(texts).encode("utf-8", "replace").translate(
        None, _HEX_DIGITS
    )


def digest_bytes(data: bytes | bytearray | memoryview) -> Digest:
    """Return the digest of bytes."""
    return Digest(hashlib.sha256(data).hexdigest())


def digest_document(document: object) -> Digest:
    """Return the digest of a JSON document in canonical form: keys sorted, no white space, UTF-8."""
    return digest_bytes(_canonical_encoder.encode(document))


def digest_pairs(pairs: Iterable[tuple[str, str]]) -> Digest:
    """Return the digest of ordered pairs, each encoded as `name SPACE digest LF` in UTF-8 (SPEC.md "Digests")."""
    hasher = hashlib.sha256()
    for name, digest in pairs:
        hasher.update(f"{name} {digest}\n".encode())
    return Digest(hasher.hexdigest())
