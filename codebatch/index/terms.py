"""What the records of a shard post to an index, and the files that keep it (SPEC.md "Index").

A terms file stands for one shard file, by the digest of its trailer, and saves decoding it again for the index of the
next batch that has it. It proves itself: what is cut, flipped, of another shard or of an older version is made anew.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

import msgspec

from codebatch.index import keys
from codebatch.model.digest import Digest

TERMS_VERSION = 1
"""What is posted of a record. A change of it is a change of this number: what is of another one is made anew."""

KINDS_POSTED = frozenset({"symbol", "edge", "diagnostic", "metric"})

Terms = dict[bytes, list[int]]
"""By key, in the order of keys: the items of the shard that hold the term, ascending."""

_START = b"cbterms"
_head = struct.Struct(f"<{len(_START)}sB32sI")
_term = struct.Struct("<HI")
_crc = struct.Struct("<I")


class _Posted(msgspec.Struct, gc=False):
    """The members of a record that terms are made of; other members and kinds are passed over."""

    kind: str
    name: str = ""
    edge_type: str = ""
    target: str = ""
    code: str = ""
    severity: str = ""
    metric: str = ""
    value: int = 0


_decoder = msgspec.json.Decoder(_Posted)


def collect_terms(items: Iterable[bytes]) -> Terms:
    """What a shard posts, of the record lines of each of its items. Raises ValueError where they are no records."""
    found: Terms = {}
    for item, lines in enumerate(items):
        try:
            records = _decoder.decode_lines(lines)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise ValueError(f"a record of it cannot be read: {error}") from error
        for key in {key for record in records if (key := _key_of(record)) is not None}:
            found.setdefault(key, []).append(item)
    return dict(sorted(found.items()))


def _key_of(record: _Posted) -> bytes | None:
    match record.kind:
        case "symbol":
            return keys.make_key(keys.SYMBOL, record.name.encode())
        case "edge" if record.edge_type == "depends":
            return keys.make_key(keys.DEPENDENCY, record.target.encode())
        case "edge":
            return keys.make_key(keys.REFERENCE, keys.last_component(record.target).encode())
        case "diagnostic":
            return keys.make_key(keys.CODE, keys.code_term(record.code, record.severity))
        case "metric":
            return keys.make_key(keys.METRIC, keys.metric_term(record.metric, record.value))
        case _:
            return None


def encode_terms(digest: Digest, terms: Terms) -> bytes:
    """The terms file of the shard file whose trailer has this digest."""
    parts = [_head.pack(_START, TERMS_VERSION, bytes.fromhex(digest), len(terms))]
    for key, items in terms.items():
        parts += (_term.pack(len(key), len(items)), key, struct.pack(f"<{len(items)}I", *items))
    said = b"".join(parts)
    return said + _crc.pack(zlib.crc32(said))


def decode_terms(data: bytes, digest: Digest) -> Terms:
    """Read the terms file of a shard file. Raises ValueError where it is not whole, or of another one or version."""
    said = data[: -_crc.size]
    if len(data) < _head.size + _crc.size or _crc.unpack_from(data, len(said)) != (zlib.crc32(said),):
        raise ValueError("it is damaged")
    start, version, proof, count = _head.unpack_from(said)
    if (start, version, proof.hex()) != (_START, TERMS_VERSION, digest):
        raise ValueError("it is of another shard or version")
    found: Terms = {}
    at = _head.size
    try:
        for _ in range(count):
            key_bytes, items = _term.unpack_from(said, at)
            at += _term.size
            key = said[at : at + key_bytes]
            at += key_bytes
            found[key] = list(struct.unpack_from(f"<{items}I", said, at))
            at += 4 * items
    except struct.error as error:
        raise ValueError("it does not fit itself") from error
    if at != len(said):
        raise ValueError("it does not fit itself")
    return found
