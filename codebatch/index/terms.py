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

Terms = dict[bytes, bytes]
"""By key, in the order of keys: the items of the shard that hold the term, ascending, 4 bytes each, little-endian."""

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
    found: dict[bytes, list[int]] = {}
    for item, lines in enumerate(items):
        try:
            records = _decoder.decode_lines(lines)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise ValueError(f"a record of it cannot be read: {error}") from error
        for key in _keys_of(records):
            found.setdefault(key, []).append(item)
    return {key: struct.pack(f"<{len(held)}I", *held) for key, held in sorted(found.items())}


def _keys_of(records: Iterable[_Posted]) -> set[bytes]:
    """The keys under which an item is posted. What its records say again and again is made a key once."""
    names, references, dependencies = set[str](), set[str](), set[str]()
    codes, metrics = set[tuple[str, str]](), set[tuple[str, int]]()
    for record in records:
        match record.kind:
            case "edge":
                (dependencies if record.edge_type == "depends" else references).add(record.target)
            case "metric":
                metrics.add((record.metric, record.value))
            case "symbol":
                names.add(record.name)
            case "diagnostic":
                codes.add((record.code, record.severity))
            case _:
                pass
    return {
        *(keys.make_key(keys.SYMBOL, name.encode()) for name in names),
        *(keys.make_key(keys.REFERENCE, keys.last_component(target).encode()) for target in references),
        *(keys.make_key(keys.DEPENDENCY, target.encode()) for target in dependencies),
        *(keys.make_key(keys.CODE, keys.code_term(*code)) for code in codes),
        *(keys.make_key(keys.METRIC, keys.metric_term(*metric)) for metric in metrics),
    }


def encode_terms(digest: Digest, terms: Terms) -> bytes:
    """The terms file of the shard file whose trailer has this digest."""
    parts = [_head.pack(_START, TERMS_VERSION, bytes.fromhex(digest), len(terms))]
    for key, items in terms.items():
        parts += (_term.pack(len(key), len(items) // keys.ITEM_BYTES), key, items)
    said = b"".join(parts)
    return said + _crc.pack(zlib.crc32(said))


def decode_terms(data: bytes, digest: Digest) -> Terms:
    """Read the terms file of a shard file. Raises ValueError where it is not whole, or of another one or version."""
    said = data[: -_crc.size]
    if len(data) < _head.size + _crc.size or _crc.unpack_from(data, len(said)) != (zlib.crc32(said),):
        raise ValueError("it is damaged")
    name, version, proof, count = _head.unpack_from(said)
    if (name, version, proof.hex()) != (_START, TERMS_VERSION, digest):
        raise ValueError("it is of another shard or version")
    found: Terms = {}
    at, read = _head.size, _term.unpack_from
    try:
        for _ in range(count):
            key_bytes, items = read(said, at)
            start = at + _term.size
            middle = start + key_bytes
            at = middle + keys.ITEM_BYTES * items
            found[said[start:middle]] = said[middle:at]
    except struct.error as error:
        raise ValueError("it does not fit itself") from error
    if at != len(said):
        raise ValueError("it does not fit itself")
    return found
