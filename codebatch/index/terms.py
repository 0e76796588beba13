"""What the records of a shard post to an index, and the files that keep it (SPEC.md "Index").

A terms file stands for one shard file, by the digest of its trailer, and saves decoding it again for the index of the
next batch that has it. It proves itself: what is cut, flipped, of another shard or of an older version is made anew.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import accumulate, chain, compress, pairwise, repeat, starmap
from operator import attrgetter, is_
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import msgspec

from codebatch.index import keys
from codebatch.index.keys import KINDS_POSTED, TERMS_VERSION
from codebatch.model.digest import Digest
from codebatch.model.record import TAGS, Diagnostic, Edge, Metric, Record, Symbol
from codebatch.store import layout

_TYPES_POSTED: frozenset[type[Record]] = frozenset(type_ for type_, kind in TAGS.items() if kind in KINDS_POSTED)

_Term = TypeVar("_Term", bound=Hashable)

_START = b"cbterms"
_head = struct.Struct(f"<{len(_START)}sB32sI")
_crc = struct.Struct("<I")
_item = struct.Struct("<I")
_APART = b"\n"

# Columns are gone through by what is written in C: a worker does this of each record that it makes.
_symbol_name = attrgetter("name")
_edge_target = attrgetter("edge_type", "target")
_diagnostic_code = attrgetter("code", "severity")
_metric_value = attrgetter("metric", "value")


class Terms(NamedTuple):
    """What a shard posts: keys in their order, of how many items each is, and the items.

    Those of a key ascend, 4 bytes each, little-endian; behind them are those of the next key.
    """

    keys: list[bytes]
    counts: list[int]
    items: bytes

    def by_key(self) -> dict[bytes, bytes]:
        """The items of each key."""
        return dict(zip(self.keys, self.cut(self.items, keys.ITEM_BYTES), strict=True))

    def cut(self, items: bytes, item_bytes: int) -> Iterable[bytes]:
        """Of bytes that are so many for each item what is of each key."""
        ends = [item_bytes * end for end in accumulate(self.counts, initial=0)]
        return map(items.__getitem__, starmap(slice, pairwise(ends)))


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
# Most of what is called is called in many files, and most values are of many functions.
_last_component = lru_cache(1 << 14)(keys.last_component)


@lru_cache(1 << 14)
def _metric_key(metric: tuple[str, int]) -> bytes:
    return keys.make_key(keys.METRIC, keys.metric_term(*metric))


class Posted(NamedTuple):
    """What one item posts, each once, as its records have it."""

    names: AbstractSet[str] = frozenset()
    references: AbstractSet[str] = frozenset()
    dependencies: AbstractSet[str] = frozenset()
    codes: AbstractSet[tuple[str, str]] = frozenset()
    metrics: AbstractSet[tuple[str, int]] = frozenset()


NOTHING_POSTED = Posted()


def posted_by(records: Sequence[Record], types: Sequence[type[Record]]) -> Posted:
    """What an item posts whose records, of these types, are at hand."""
    present = set(types)
    if present.isdisjoint(_TYPES_POSTED):
        return NOTHING_POSTED

    def of(type_: type[Record]) -> Iterable[Record]:
        if type_ not in present:
            return ()
        return records if len(present) == 1 else compress(records, map(is_, types, repeat(type_)))

    edges = set(map(_edge_target, of(Edge)))
    return Posted(
        set(map(_symbol_name, of(Symbol))),
        {_last_component(target) for edge_type, target in edges if edge_type != "depends"},
        {target for edge_type, target in edges if edge_type == "depends"},
        set(map(_diagnostic_code, of(Diagnostic))),
        set(map(_metric_value, of(Metric))),
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
    posted = list(items)
    if all(each is NOTHING_POSTED for each in posted):
        return Terms([], [], b"")
    packed = list(map(_item.pack, range(len(posted))))
    found: dict[bytes, bytes] = {}
    for tag, texts in (
        (keys.SYMBOL, [each.names for each in posted]),
        (keys.REFERENCE, [each.references for each in posted]),
        (keys.DEPENDENCY, [each.dependencies for each in posted]),
    ):
        held = _gathered(texts, packed)
        found.update(zip(_text_keys(tag, held), held.values(), strict=True))
    codes = _gathered([each.codes for each in posted], packed)
    found.update((keys.make_key(keys.CODE, keys.code_term(*code)), items) for code, items in codes.items())
    metrics = _gathered([each.metrics for each in posted], packed)
    for key, of_value in zip(map(_metric_key, metrics), metrics.values(), strict=True):
        found[key] = of_value if key not in found else _merged(found[key], of_value)
    ordered = sorted(found)
    values = list(map(found.__getitem__, ordered))
    return Terms(ordered, [len(value) // keys.ITEM_BYTES for value in values], b"".join(values))


def _gathered(terms: Sequence[AbstractSet[_Term]], packed: Sequence[bytes]) -> dict[_Term, bytes]:
    """By term the items that hold it, by the terms of each item, and how an item is written."""
    held: defaultdict[_Term, list[bytes]] = defaultdict(list)
    lists = map(held.__getitem__, chain.from_iterable(terms))
    deque(map(list.append, lists, chain.from_iterable(map(repeat, packed, map(len, terms)))), maxlen=0)
    return dict(zip(held, map(b"".join, held.values()), strict=True))


def _text_keys(tag: bytes, terms: Iterable[str]) -> list[bytes]:
    """The keys of some texts: of all at once, unless one is cut or has what they are told apart by."""
    texts = list(terms)
    found = (_APART + tag).join([b"", *map(str.encode, texts)]).split(_APART)[1:]
    if len(found) == len(texts) and max(map(len, found), default=0) <= len(tag) + keys.TERM_BYTES_MAX:
        return found
    return [keys.make_key(tag, text.encode()) for text in texts]


def _merged(items: bytes, others: bytes) -> bytes:
    """The items of both, each once. What 32 bits do not hold has one key."""
    every = sorted({number for (number,) in _item.iter_unpack(items + others)})
    return b"".join(map(_item.pack, every))


def terms_path(store_root: Path, digest: Digest) -> Path:
    """Where the terms file of a shard file lies."""
    return store_root / layout.INDEXES / layout.TERMS / digest


def encode_terms(digest: Digest, terms: Terms) -> bytes:
    """The terms file of the shard file whose trailer has this digest."""
    said = b"".join(
        (
            _head.pack(_START, TERMS_VERSION, bytes.fromhex(digest), len(terms.keys)),
            _numbers("H", map(len, terms.keys)).tobytes(),
            _numbers("I", terms.counts).tobytes(),
            *terms.keys,
            terms.items,
        )
    )
    return said + _crc.pack(zlib.crc32(said))


def decode_terms(data: bytes, digest: Digest) -> Terms:
    """Read the terms file of a shard file. Raises ValueError where it is not whole, or of another one or version."""
    said = data[: -_crc.size]
    if len(data) < _head.size + _crc.size or _crc.unpack_from(data, len(said)) != (zlib.crc32(said),):
        raise ValueError("it is damaged")
    name, version, proof, count = _head.unpack_from(said)
    if (name, version, proof.hex()) != (_START, TERMS_VERSION, digest):
        raise ValueError("it is of another shard or version")
    middle = _head.size + 2 * count
    start = middle + 4 * count
    if start > len(said):
        raise ValueError("it does not fit itself")
    lengths = _numbers("H", said[_head.size : middle])
    counts = _numbers("I", said[middle:start])
    ends = list(accumulate(lengths, initial=start))
    if ends[-1] + keys.ITEM_BYTES * sum(counts) != len(said):
        raise ValueError("it does not fit itself")
    if count and not 0 < min(lengths) <= max(lengths) <= keys.KEY_BYTES_MAX:
        raise ValueError("it has a key that is none")
    found = [said[start:end] for start, end in pairwise(ends)]
    return Terms(found, counts.tolist(), said[ends[-1] :])


def _numbers(code: Literal["H", "I"], values: Iterable[int] | bytes) -> array[int]:
    """Unsigned numbers, of 2 or 4 bytes, little-endian: to be written, or as they were."""
    numbers = array(code)
    if isinstance(values, bytes):
        numbers.frombytes(values)
    else:
        numbers.extend(values)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
