"""Keys and values of an index, as bytes (SPEC.md "Index"). Pure.

A key is a tag and a term. A lookup is a key, or how keys begin; it may find too much, for the records that an index
leads to are asked again, and never too little. So a term that is too long for a key is cut, and its digest tells it
from others that begin alike.
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
"""What is posted of a record, and how it is kept. Of a change of either: what is of another one is made anew."""

KINDS_POSTED = frozenset(("symbol", "edge", "diagnostic", "metric"))

TERM_BYTES_MAX = 400
"""Of a term that stands in a key as it is. A key of LMDB has 511 bytes at most."""

POSTING_BYTES = 8

_DIGEST_BYTES = 16

SYMBOL = b"n"
REFERENCE = b"r"
DEPENDENCY = b"t"
CODE = b"d"
METRIC = b"m"

_CUT = b"\xff"
# It begins behind one of them alone, so that a target of any length is gone through once.
_LAST_COMPONENT = re.compile(r"(?<![^.:/\\>])[^.:/\\>]*\Z")
_GREATEST = 2**32 - 1

_NUMBER_BYTES = 8
_posting = struct.Struct("<II")


class Lookup(msgspec.Struct, frozen=True):
    """What to look for: `key`, or where it `is_prefix`, all keys that begin so: from `first` on, up to `last`, where
    these are given.
    """

    key: bytes
    is_prefix: bool
    first: bytes = b""
    last: bytes = b""


def make_key(tag: bytes, term: bytes) -> bytes:
    """The key of a term of any length."""
    if len(term) <= TERM_BYTES_MAX:
        return tag + term
    return b"".join((tag, term[:TERM_BYTES_MAX], _CUT, hashlib.sha256(term).digest()[:_DIGEST_BYTES]))


def look_for(tag: bytes, term: str) -> Lookup:
    """Look for a term; with a `*` at its end, for all that begin as what stands before it."""
    if term.endswith("*"):
        return look_for_prefix(tag, term[:-1].encode("utf-8", "surrogatepass"))
    return Lookup(make_key(tag, term.encode("utf-8", "surrogatepass")), is_prefix=False)


def look_for_prefix(tag: bytes, prefix: bytes) -> Lookup:
    """Look for all terms that begin so."""
    return Lookup(tag + prefix[:TERM_BYTES_MAX], is_prefix=True)


def look_for_code(code: str) -> Lookup:
    """Look for diagnostics of a code, of any severity; with a `*` at its end, of all codes that begin so."""
    if code.endswith("*"):
        return look_for(CODE, code)
    return look_for_prefix(CODE, code.encode("utf-8", "surrogatepass") + b"\0")


def look_for_references(target: str) -> Lookup:
    """Look for edges, but of `depends`, to a target, of which as much as is posted."""
    return Lookup(make_key(REFERENCE, last_component(target).encode("utf-8", "surrogatepass")), is_prefix=False)


def look_for_metric(metric: str, least: float | None, most: float | None) -> Lookup:
    """Look for values of a metric, which are finite and none below and none above these, where these are given."""
    prefix = metric.encode("utf-8", "surrogatepass") + b"\0"
    lookup = look_for_prefix(METRIC, prefix)
    if len(prefix) + _NUMBER_BYTES > TERM_BYTES_MAX:  # What is cut has no values in its key.
        return lookup
    first = lookup.key + _written(math.floor(least)) if least is not None else b""
    last = lookup.key + _written(math.ceil(most)) if most is not None else b""
    return msgspec.structs.replace(lookup, first=first, last=last)


def code_term(code: str, severity: str) -> bytes:
    """The term of a diagnostic."""
    return f"{code}\0{severity}".encode()


def metric_term(metric: str, value: int) -> bytes:
    """The term of a metric: the greatest values of one are last. What 32 bits do not hold counts as the nearest."""
    return metric.encode() + b"\0" + _written(value)


def _written(value: int) -> bytes:
    return b"%0*x" % (_NUMBER_BYTES, min(max(value, 0), _GREATEST))


def last_component(target: str) -> str:
    """What stands behind the last `.`, `:`, `/`, `\\` or `>` of what an edge leads to: `c` of `a.b::c`."""
    found = _LAST_COMPONENT.search(target)
    assert found is not None, "the end of a text is always found"
    return found[0]


def encode_postings(slot: int, frames: int) -> list[bytes]:
    """What each of so many frames of a slot puts into the value of a term: its number and the slot's, little-endian."""
    return list(map(_posting.pack, range(frames), repeat(slot)))


def frames_by_slot(values: Iterable[bytes]) -> dict[int, list[int]]:
    """The frames of postings, each once and ascending, by slot. Raises ValueError where a value is cut."""
    postings = array("Q")
    try:
        for value in values:
            postings.frombytes(value)
    except ValueError as error:
        raise ValueError("one of its values is truncated") from error
    if sys.byteorder == "big":
        postings.byteswap()
    found: dict[int, list[int]] = {}
    for posting in sorted(set(postings)):
        slot = posting >> 32
        if slot in found:
            found[slot].append(posting & _GREATEST)
        else:
            found[slot] = [posting & _GREATEST]
    return found
