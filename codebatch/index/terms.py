"""What the records of a shard post to an index, and the files that keep it (SPEC.md "Index").

A terms file stands for one shard file, by the digest of its trailer, and saves decoding it again for the index of the
next batch that has it. It proves itself: what is cut, flipped, of another shard or of an older version is made anew.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from codebatch.index import keys
from codebatch.model.digest import Digest
from codebatch.model.record import TAGS, Diagnostic, Edge, Metric, Record, Symbol
from codebatch.store import layout

TERMS_VERSION = 1
"""What is posted of a record. A change of it is a change of this number: what is of another one is made anew."""

_TYPES_POSTED: frozenset[type[Record]] = frozenset({Symbol, Edge, Diagnostic, Metric})
KINDS_POSTED = frozenset(TAGS[type_] for type_ in _TYPES_POSTED)

Terms = dict[bytes, bytes]
"""By key, in the order of keys: the items of the shard that hold the term, ascending, 4 bytes each, little-endian."""

_Term = TypeVar("_Term", bound=Hashable)

_START = b"cbterms"
_head = struct.Struct(f"<{len(_START)}sB32sI")
_term = struct.Struct("<HI")
_crc = struct.Struct("<I")
_item = struct.Struct("<I")


class _Posted(msgspec.Struct, gc=False):
    """The members of a record line that terms are made of; other members and kinds are passed over."""

    kind: str
    name: str = ""
    edge_type: str = ""
    target: str = ""
    code: str = ""
    severity: str = ""
    metric: str = ""
    value: int = 0


_decoder = msgspec.json.Decoder(_Posted)
_last_component = lru_cache(1 << 14)(keys.last_component)  # Most of what is called is called in many files.


class Posted(NamedTuple):
    """What one item posts, each once, as its records have it."""

    names: AbstractSet[str] = frozenset()
    references: AbstractSet[str] = frozenset()
    dependencies: AbstractSet[str] = frozenset()
    codes: AbstractSet[tuple[str, str]] = frozenset()
    metrics: AbstractSet[tuple[str, int]] = frozenset()


NOTHING_POSTED = Posted()


def posted_by(records: Sequence[Record], types: Iterable[type[Record]]) -> Posted:
    """What an item posts whose records, of these types, are at hand."""
    kinds = _TYPES_POSTED.intersection(types)
    if not kinds:
        return NOTHING_POSTED
    edges = [each for each in records if type(each) is Edge] if Edge in kinds else ()
    return Posted(
        {each.name for each in records if type(each) is Symbol} if Symbol in kinds else frozenset(),
        set(map(_last_component, {each.target for each in edges if each.edge_type != "depends"})),
        {each.target for each in edges if each.edge_type == "depends"},
        {(each.code, each.severity) for each in records if type(each) is Diagnostic}
        if Diagnostic in kinds
        else frozenset(),
        {(each.metric, each.value) for each in records if type(each) is Metric} if Metric in kinds else frozenset(),
    )


def posted_by_lines(lines: bytes) -> Posted:
    """What an item posts whose records stand written. Raises ValueError where they are no records."""
    if not lines:
        return NOTHING_POSTED
    try:
        records = _decoder.decode_lines(lines)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"a record of it cannot be read: {error}") from error
    edges = [each for each in records if each.kind == "edge"]
    return Posted(
        {each.name for each in records if each.kind == "symbol"},
        set(map(_last_component, {each.target for each in edges if each.edge_type != "depends"})),
        {each.target for each in edges if each.edge_type == "depends"},
        {(each.code, each.severity) for each in records if each.kind == "diagnostic"},
        {(each.metric, each.value) for each in records if each.kind == "metric"},
    )


def collect_terms(items: Iterable[Posted]) -> Terms:
    """What a shard posts, by what each of its items does. A term is made a key once."""
    names: dict[str, list[int]] = {}
    references: dict[str, list[int]] = {}
    dependencies: dict[str, list[int]] = {}
    codes: dict[tuple[str, str], list[int]] = {}
    metrics: dict[tuple[str, int], list[int]] = {}
    for item, posted in enumerate(items):
        if posted is not NOTHING_POSTED:
            _post(names, item, posted.names)
            _post(references, item, posted.references)
            _post(dependencies, item, posted.dependencies)
            _post(codes, item, posted.codes)
            _post(metrics, item, posted.metrics)
    found = {
        **{keys.make_key(keys.SYMBOL, name.encode()): held for name, held in names.items()},
        **{keys.make_key(keys.REFERENCE, name.encode()): held for name, held in references.items()},
        **{keys.make_key(keys.DEPENDENCY, path.encode()): held for path, held in dependencies.items()},
        **{keys.make_key(keys.CODE, keys.code_term(*code)): held for code, held in codes.items()},
    }
    for metric, held in metrics.items():
        key = keys.make_key(keys.METRIC, keys.metric_term(*metric))
        found[key] = sorted({*found[key], *held}) if key in found else held  # What 32 bits do not hold has one key.
    one, some = _item.pack, struct.pack
    return {key: one(*held) if len(held := found[key]) == 1 else some(f"<{len(held)}I", *held) for key in sorted(found)}


def _post(held: dict[_Term, list[int]], item: int, terms: Iterable[_Term]) -> None:
    for term in terms:
        if term in held:
            held[term].append(item)
        else:
            held[term] = [item]


def terms_path(store_root: Path, digest: Digest) -> Path:
    """Where the terms file of a shard file lies."""
    return store_root / layout.INDEXES / layout.TERMS / digest


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
            if not 0 < key_bytes <= keys.KEY_BYTES_MAX:
                raise ValueError("it has a key that is none")
    except struct.error as error:
        raise ValueError("it does not fit itself") from error
    if at != len(said):
        raise ValueError("it does not fit itself")
    return found
