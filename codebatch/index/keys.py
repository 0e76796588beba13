"""Keys and values of an index as bytes (SPEC.md "Index"). No I/O.

A key is a tag and a term. A lookup is a key or a prefix of keys. A lookup finds the frames that contain matching
records. These frames also contain other records, so the caller filters their records again. No matching record is ever
missed. If a term is too long for a key, it is truncated and its digest is added, so that two terms with the same
beginning have different keys.
"""

from __future__ import annotations

import hashlib
import math
import re
import struct
import sys
from array import array
from collections.abc import Iterable
from itertools import repeat

import msgspec

TERMS_VERSION = 1
"""The version of the indexed terms and their encoding. Terms files and indexes of other versions are rebuilt."""

INDEXED_KINDS = frozenset(("symbol", "edge", "diagnostic", "metric"))

TERM_BYTES_MAX = 400
"""Maximum length in bytes of a term that is not truncated. LMDB keys have at most 511 bytes."""

POSTING_BYTES = 8

_DIGEST_BYTES = 16

SYMBOL_TAG = b"n"
REFERENCE_TAG = b"r"
DEPENDENCY_TAG = b"t"
CODE_TAG = b"d"
METRIC_TAG = b"m"

_TRUNCATED_MARK = b"\xff"
# The lookbehind makes the search time linear in the length of the target.
_LAST_COMPONENT = re.compile(r"(?<![^.:/\\>])[^.:/\\>]*\Z")
_NUMBER_MAX = 2**32 - 1

_NUMBER_BYTES = 8
_posting_struct = struct.Struct("<II")


class TermLookup(msgspec.Struct, frozen=True):
    """A search for the key `key` or, if `is_prefix` is set, for all keys that begin with `key`.

    `first` and `last`, if not empty, are the smallest and the greatest key that match.
    """

    key: bytes
    is_prefix: bool
    first: bytes = b""
    last: bytes = b""


def make_key(tag: bytes, term: bytes) -> bytes:
    """Return the key of a term of any length."""
    if len(term) <= TERM_BYTES_MAX:
        return tag + term
    return b"".join((tag, term[:TERM_BYTES_MAX], _TRUNCATED_MARK, hashlib.sha256(term).digest()[:_DIGEST_BYTES]))


def make_lookup(tag: bytes, term: str) -> TermLookup:
    """Return the lookup of a term.

    If `term` ends with `*`, return the lookup of all terms that begin with the text before `*`.
    """
    if term.endswith("*"):
        return make_prefix_lookup(tag, term[:-1].encode("utf-8", "surrogatepass"))
    return TermLookup(make_key(tag, term.encode("utf-8", "surrogatepass")), is_prefix=False)


def make_prefix_lookup(tag: bytes, prefix: bytes) -> TermLookup:
    """Return the lookup of all terms that begin with a prefix."""
    return TermLookup(tag + prefix[:TERM_BYTES_MAX], is_prefix=True)


def make_code_lookup(code: str) -> TermLookup:
    """Return the lookup of diagnostics with a rule ID, of any severity.

    If `code` ends with `*`, return the lookup of all rule IDs that begin with the text before `*`.
    """
    if code.endswith("*"):
        return make_lookup(CODE_TAG, code)
    return make_prefix_lookup(CODE_TAG, code.encode("utf-8", "surrogatepass") + b"\0")


def make_reference_lookup(target: str) -> TermLookup:
    """Return the lookup of edges to a target, except edges of type `depends`.

    Only the last component of a target is indexed, so edges to other targets with the same last component match too.
    """
    return TermLookup(make_key(REFERENCE_TAG, last_component(target).encode("utf-8", "surrogatepass")), is_prefix=False)


def make_metric_lookup(metric: str, least: float | None, most: float | None) -> TermLookup:
    """Return the lookup of the values of a metric from `least` to `most`, both included. None means no bound."""
    prefix = metric.encode("utf-8", "surrogatepass") + b"\0"
    lookup = make_prefix_lookup(METRIC_TAG, prefix)
    if len(prefix) + _NUMBER_BYTES > TERM_BYTES_MAX:  # Truncated keys do not contain the value.
        return lookup
    first = lookup.key + _encode_number(math.floor(least)) if least is not None else b""
    last = lookup.key + _encode_number(math.ceil(most)) if most is not None else b""
    return msgspec.structs.replace(lookup, first=first, last=last)


def code_term(code: str, severity: str) -> bytes:
    """Return the term of a diagnostic: its rule ID and severity."""
    return f"{code}\0{severity}".encode()


def metric_term(metric: str, value: int) -> bytes:
    """Return the term of a metric value.

    Terms of one metric sort by value. Values outside of 0 to 2**32 - 1 are set to the nearest bound.
    """
    return metric.encode() + b"\0" + _encode_number(value)


def _encode_number(value: int) -> bytes:
    return b"%0*x" % (_NUMBER_BYTES, min(max(value, 0), _NUMBER_MAX))


def last_component(target: str) -> str:
    """Return the part of an edge target after the last `.`, `:`, `/`, `\\` or `>`: `c` of `a.b::c`."""
    match = _LAST_COMPONENT.search(target)
    assert match is not None, "the end of a text is always found"
    return match[0]


def encode_postings(slot: int, frames: int) -> list[bytes]:
    """Return a posting for each frame of a slot: the frame number and the slot number, little-endian."""
    return list(map(_posting_struct.pack, range(frames), repeat(slot)))


def frames_by_slot(values: Iterable[bytes]) -> dict[int, list[int]]:
    """Decode postings. Map each slot to the numbers of its frames, ascending and without duplicates.

    Raises ValueError if a value is truncated.
    """
    postings = array("Q")
    try:
        for value in values:
            postings.frombytes(value)
    except ValueError as error:
        raise ValueError("one of its values is truncated") from error
    if sys.byteorder == "big":
        postings.byteswap()
    frames: dict[int, list[int]] = {}
    for posting in sorted(set(postings)):
        slot = posting >> 32
        if slot in frames:
            frames[slot].append(posting & _NUMBER_MAX)
        else:
            frames[slot] = [posting & _NUMBER_MAX]
    return frames
