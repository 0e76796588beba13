"""What the frames of a shard file post to an index, and the files that keep it (SPEC.md "Index").

A terms file stands for one shard file, by the digest of its trailer, and saves decoding it again for the index of the
next batch that has it. It proves itself: what is cut, flipped, of another shard or of an older version is made anew.
"""

from __future__ import annotations

import struct
import sys
import zlib
from array import array
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import chain, compress, repeat
from operator import attrgetter, is_
from pathlib import Path
from typing import NamedTuple

import msgspec

from codebatch.index import keys
from codebatch.index.keys import KINDS_POSTED, TERMS_VERSION
from codebatch.model.digest import Digest
from codebatch.model.record import TAGS, Diagnostic, Edge, Metric, Record, Symbol
from codebatch.store import layout

_TYPES: dict[str, type[Record]] = {kind: type_ for type_, kind in TAGS.items() if kind in KINDS_POSTED}

_START = b"cbterms"
_head = struct.Struct(f"<{len(_START)}sB32sIB")
_length = struct.Struct("<Q")
_crc = struct.Struct("<I")
_frame = struct.Struct("<I")
_APART = b"\xff"

# Columns are gone through by what is written in C: a worker does this of each record that it makes.
_symbol_name = attrgetter("name")
_edge_target = attrgetter("edge_type", "target")
_diagnostic_code = attrgetter("code", "severity")
_metric_value = attrgetter("metric", "value")


class TermColumn(NamedTuple):
    """Terms of one tag: how many each frame of a shard file posts, and all of them, those of the first frame first.

    Of each the tag and the term, of any length, and 0xFF, which UTF-8 has not, between two.
    """

    counts: array[int]
    texts: bytes


class Terms(msgspec.Struct, frozen=True):
    """What a shard file of so many frames posts: a column for each tag of which there is anything."""

    frames: int
    columns: tuple[TermColumn, ...]

    def by_key(self) -> dict[bytes, bytes]:
        """The frames of each key: they ascend, 4 bytes each, little-endian."""
        found = Gathered()
        found.add(self, list(map(_frame.pack, range(self.frames))))
        return found.by_key()


class Gathered:
    """What some shard files post, by key."""

    def __init__(self) -> None:
        self._held: defaultdict[bytes, list[bytes]] = defaultdict(list)

    def add(self, terms: Terms, postings: Sequence[bytes]) -> None:
        """What one more shard file posts; `postings` are what each of its frames puts into a value."""
        for counts, texts in terms.columns:
            lists = map(self._held.__getitem__, texts.split(_APART))
            deque(map(list.append, lists, chain.from_iterable(map(repeat, postings, counts))), maxlen=0)

    def by_key(self) -> dict[bytes, bytes]:
        """All values, in the order of their keys. Nothing is held behind it."""
        held = self._held
        if max(map(len, held), default=0) > 1 + keys.TERM_BYTES_MAX:
            for text in [text for text in held if len(text) > 1 + keys.TERM_BYTES_MAX]:
                held[keys.make_key(text[:1], text[1:])] = held.pop(text)
        # In the order in which they were made, which is that of the memory: it takes half the time of that of the keys.
        values = dict(zip(held, map(b"".join, held.values()), strict=True))
        held.clear()
        return {key: values[key] for key in sorted(values)}


class _TermLine(msgspec.Struct, gc=False):
    """The members of a record line that terms are made of; other members and kinds are passed over."""

    kind: str
    name: str = ""
    edge_type: str = ""
    target: str = ""
    code: str = ""
    severity: str = ""
    metric: str = ""
    value: int = 0


_decoder = msgspec.json.Decoder(_TermLine)
_kind = attrgetter("kind")
# Most of what is called is called in many files, and most values are of many functions.
_last_component = lru_cache(1 << 14)(keys.last_component)


@lru_cache(1 << 14)
def _metric_term(metric: tuple[str, int]) -> bytes:
    return keys.metric_term(*metric)


class Posted(msgspec.Struct, frozen=True):
    """What one frame posts, each once: by tag how many terms, and these, of each 0xFF, the tag and the term."""

    counts: tuple[int, ...]
    texts: tuple[bytes, ...]


_TAGS = (keys.CODE, keys.METRIC, keys.SYMBOL, keys.REFERENCE, keys.DEPENDENCY)


def posted_by_lines(lines: bytes) -> Posted:
    """What a frame posts of which this is written. Raises ValueError where it is no records."""
    return posted_by((), (), lines)


def posted_by(records: Sequence[Record], types: Sequence[type[Record]], lines: bytes = b"") -> Posted:
    """What a frame posts of which these records are at hand, of these types, and of the rest its lines.

    Raises ValueError where the lines are no records.
    """
    every: Sequence[object] = records
    of_every: Sequence[type[Record] | None] = types
    if lines:
        decoded = _decode(lines)
        every = [*records, *decoded]
        of_every = [*types, *map(_TYPES.get, map(_kind, decoded))]
    present = set(of_every)

    def of(type_: type[Record]) -> Iterable[object]:
        if type_ not in present:
            return ()
        return every if len(present) == 1 else compress(every, map(is_, of_every, repeat(type_)))

    codes = set(map(_diagnostic_code, of(Diagnostic)))
    metrics = set(map(_metric_value, of(Metric)))
    names = set(map(_symbol_name, of(Symbol)))
    edges = set(map(_edge_target, of(Edge)))
    targets = {target for edge_type, target in edges if edge_type != "depends"}
    dependencies = [target for edge_type, target in edges if edge_type == "depends"]
    terms: tuple[Collection[bytes], ...] = (
        [keys.code_term(*code) for code in codes],
        set(map(_metric_term, metrics)),
        list(map(str.encode, names)),
        list(map(str.encode, set(map(_last_component, targets)))),
        list(map(str.encode, dependencies)),
    )
    return Posted(
        tuple(map(len, terms)),
        tuple([(_APART + tag).join([b"", *some]) if some else b"" for tag, some in zip(_TAGS, terms, strict=True)]),
    )


def _decode(lines: bytes) -> list[_TermLine]:
    try:
        return _decoder.decode_lines(lines)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"one of its records cannot be read: {error}") from error


def collect_terms(frames: Iterable[Posted]) -> Terms:
    """What a shard file posts, by what each of its frames does."""
    posted = list(frames)
    counts = zip(*[each.counts for each in posted], strict=True)
    texts = map(b"".join, zip(*[each.texts for each in posted], strict=True))
    return Terms(
        len(posted),
        tuple(
            TermColumn(array("I", of_frames), text[len(_APART) :])
            for of_frames, text in zip(counts, texts, strict=True)
            if text
        ),
    )


def terms_path(store_root: Path, digest: Digest) -> Path:
    """Where the terms file of a shard file lies."""
    return store_root / layout.INDEXES / layout.TERMS / digest


def encode_terms(digest: Digest, terms: Terms) -> bytes:
    """The terms file of the shard file whose trailer has this digest."""
    said = [_head.pack(_START, TERMS_VERSION, bytes.fromhex(digest), terms.frames, len(terms.columns))]
    for counts, texts in terms.columns:
        said += (_little(counts).tobytes(), _length.pack(len(texts)), texts)
    data = b"".join(said)
    return data + _crc.pack(zlib.crc32(data))


def decode_terms(data: bytes, digest: Digest) -> Terms:
    """Read the terms file of a shard file. Raises ValueError where it is not whole, or of another one or version."""
    end = len(data) - _crc.size
    if end < _head.size or _crc.unpack_from(data, end) != (zlib.crc32(memoryview(data)[:end]),):
        raise ValueError("it is damaged")
    name, version, proof, frames, number = _head.unpack_from(data)
    if (name, version, proof.hex()) != (_START, TERMS_VERSION, digest):
        raise ValueError("it belongs to another shard or version")
    columns: list[TermColumn] = []
    at = _head.size
    for _ in range(number):
        start = at + 4 * frames + _length.size
        if start > end:
            raise ValueError("it is inconsistent")
        counts = array("I", data[at : start - _length.size])
        (length,) = _length.unpack_from(data, start - _length.size)
        at = start + length
        texts = data[start:at]
        columns.append(TermColumn(_little(counts), texts))
        if at > end or sum(columns[-1].counts) != texts.count(_APART) + 1:
            raise ValueError("it is inconsistent")
        if 2 * _APART in _APART + texts + _APART:
            raise ValueError("it has an invalid key")
    if at != end:
        raise ValueError("it is inconsistent")
    return Terms(frames, tuple(columns))


def _little(numbers: array[int]) -> array[int]:
    """Numbers of 4 bytes as they are written, or as they were: little-endian."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers
