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
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import chain, repeat
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from codebatch.index import keys
from codebatch.index.keys import KINDS_POSTED, TERMS_VERSION
from codebatch.model.digest import Digest
from codebatch.model.record import TAGS, Diagnostic, Edge, Metric, Record, Symbol
from codebatch.store import layout

_TYPES_POSTED: frozenset[type[Record]] = frozenset(type_ for type_, kind in TAGS.items() if kind in KINDS_POSTED)

T = TypeVar("T")

_START = b"cbterms"
_head = struct.Struct(f"<{len(_START)}sB32sIB")
_length = struct.Struct("<Q")
_crc = struct.Struct("<I")
_item = struct.Struct("<I")
_APART = b"\xff"


class Column(NamedTuple):
    """Terms of one tag: how many each item of a shard posts, and all of them, those of the first item first.

    Of each the tag and the term, of any length, and 0xFF, which UTF-8 has not, between two.
    """

    counts: array[int]
    texts: bytes


class Terms(NamedTuple):
    """What a shard of so many items posts: a column for each tag of which there is anything."""

    items: int
    columns: tuple[Column, ...]

    def by_key(self) -> dict[bytes, bytes]:
        """The items of each key: they ascend, 4 bytes each, little-endian."""
        found = Gathered()
        found.add(self, list(map(_item.pack, range(self.items))))
        return found.by_key()


class Gathered:
    """What some shards post, by key."""

    def __init__(self) -> None:
        self._held: defaultdict[bytes, list[bytes]] = defaultdict(list)

    def add(self, terms: Terms, postings: Sequence[bytes]) -> None:
        """What one more shard posts; `postings` are what each of its items puts into a value."""
        for counts, texts in terms.columns:
            lists = map(self._held.__getitem__, texts.split(_APART))
            deque(map(list.append, lists, chain.from_iterable(map(repeat, postings, counts))), maxlen=0)

    def by_key(self) -> dict[bytes, bytes]:
        """All values, in the order of their keys. Nothing is held behind it."""
        held = self._held
        if max(map(len, held), default=0) > 1 + keys.TERM_BYTES_MAX:
            for text in [text for text in held if len(text) > 1 + keys.TERM_BYTES_MAX]:
                held[keys.make_key(text[:1], text[1:])] = held.pop(text)
        ordered = sorted(held)
        found = dict(zip(ordered, map(b"".join, map(held.__getitem__, ordered)), strict=True))
        held.clear()
        return found


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
def _metric_term(metric: tuple[str, int]) -> bytes:
    return keys.metric_term(*metric)


class Posted(NamedTuple):
    """What one item posts, each once, as its records have it."""

    codes: AbstractSet[tuple[str, str]] = frozenset()
    metrics: AbstractSet[tuple[str, int]] = frozenset()
    names: AbstractSet[str] = frozenset()
    references: AbstractSet[str] = frozenset()
    dependencies: AbstractSet[str] = frozenset()


NOTHING_POSTED = Posted()


def posted_by(records: Sequence[Record], types: Iterable[type[Record]]) -> Posted:
    """What an item posts whose records, of these types, are at hand."""
    present = set(types)
    if present.isdisjoint(_TYPES_POSTED):
        return NOTHING_POSTED
    edges = [each for each in records if isinstance(each, Edge)] if Edge in present else []
    return Posted(
        {(each.code, each.severity) for each in records if isinstance(each, Diagnostic)}
        if Diagnostic in present
        else frozenset(),
        {(each.metric, each.value) for each in records if isinstance(each, Metric)}
        if Metric in present
        else frozenset(),
        {each.name for each in records if isinstance(each, Symbol)} if Symbol in present else frozenset(),
        set(map(_last_component, {each.target for each in edges if each.edge_type != "depends"})),
        {each.target for each in edges if each.edge_type == "depends"},
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
        {(each.code, each.severity) for each in records if each.kind == "diagnostic"},
        {(each.metric, each.value) for each in records if each.kind == "metric"},
        {each.name for each in records if each.kind == "symbol"},
        set(map(_last_component, {each.target for each in edges if each.edge_type != "depends"})),
        {each.target for each in edges if each.edge_type == "depends"},
    )


def collect_terms(items: Iterable[Posted]) -> Terms:
    """What a shard posts, by what each of its items does."""
    posted = list(items)
    columns = (
        _column(keys.CODE, [each.codes for each in posted], lambda code: keys.code_term(*code)),
        _column(keys.METRIC, [set(map(_metric_term, each.metrics)) for each in posted], bytes),
        _column(keys.SYMBOL, [each.names for each in posted], str.encode),
        _column(keys.REFERENCE, [each.references for each in posted], str.encode),
        _column(keys.DEPENDENCY, [each.dependencies for each in posted], str.encode),
    )
    return Terms(len(posted), tuple(column for column in columns if column.texts))


def _column(tag: bytes, of_items: Sequence[AbstractSet[T]], term: Callable[[T], bytes]) -> Column:
    terms = map(term, chain.from_iterable(of_items))
    # All at once: to put the tag before each by itself takes as long as all else.
    return Column(array("I", map(len, of_items)), (_APART + tag).join([b"", *terms])[len(_APART) :])


def terms_path(store_root: Path, digest: Digest) -> Path:
    """Where the terms file of a shard file lies."""
    return store_root / layout.INDEXES / layout.TERMS / digest


def encode_terms(digest: Digest, terms: Terms) -> bytes:
    """The terms file of the shard file whose trailer has this digest."""
    said = [_head.pack(_START, TERMS_VERSION, bytes.fromhex(digest), terms.items, len(terms.columns))]
    for counts, texts in terms.columns:
        said += (_little(counts).tobytes(), _length.pack(len(texts)), texts)
    data = b"".join(said)
    return data + _crc.pack(zlib.crc32(data))


def decode_terms(data: bytes, digest: Digest) -> Terms:
    """Read the terms file of a shard file. Raises ValueError where it is not whole, or of another one or version."""
    end = len(data) - _crc.size
    if end < _head.size or _crc.unpack_from(data, end) != (zlib.crc32(memoryview(data)[:end]),):
        raise ValueError("it is damaged")
    name, version, proof, items, number = _head.unpack_from(data)
    if (name, version, proof.hex()) != (_START, TERMS_VERSION, digest):
        raise ValueError("it is of another shard or version")
    columns: list[Column] = []
    at = _head.size
    for _ in range(number):
        start = at + 4 * items + _length.size
        if start > end:
            raise ValueError("it does not fit itself")
        counts = array("I", data[at : start - _length.size])
        (length,) = _length.unpack_from(data, start - _length.size)
        at = start + length
        texts = data[start:at]
        columns.append(Column(_little(counts), texts))
        if at > end or sum(columns[-1].counts) != texts.count(_APART) + 1:
            raise ValueError("it does not fit itself")
        if 2 * _APART in _APART + texts + _APART:
            raise ValueError("it has a key that is none")
    if at != end:
        raise ValueError("it does not fit itself")
    return Terms(items, tuple(columns))


def _little(numbers: array[int]) -> array[int]:
    """Numbers of 4 bytes as they are written, or as they were: little-endian."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers
