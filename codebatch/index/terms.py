"""The terms under which an index finds the frames of a shard file, and files that cache them (SPEC.md "Index").

A terms file belongs to one shard file, identified by the digest of that file's trailer. If a later batch has the same
shard file, the index of that batch is built from the terms file, without decoding the shard file. A terms file has a
checksum and is compressed. If it is damaged, or belongs to another shard file or version, it is rebuilt.
"""

from __future__ import annotations

import struct
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
from codebatch.index.keys import INDEXED_KINDS, TERMS_VERSION
from codebatch.model.digest import Digest
from codebatch.model.record import TAG_BY_TYPE, Diagnostic, Edge, Metric, Record, Symbol
from codebatch.store import layout
from codebatch.store.objects.frames import compress_frame, decompress_all
from codebatch.store.objects.packs import little_endian
from codebatch.system.files.files import StoreFiles

_INDEXED_TYPES: dict[str, type[Record]] = {kind: type_ for type_, kind in TAG_BY_TYPE.items() if kind in INDEXED_KINDS}

_FILE_MAGIC = b"cbterms"
_head_struct = struct.Struct(f"<{len(_FILE_MAGIC)}sB32sIB")
_length_struct = struct.Struct("<Q")
_crc_struct = struct.Struct("<I")
_frame_struct = struct.Struct("<I")
_SEPARATOR = b"\xff"

# attrgetter runs in C, which matters because workers call these functions for each record.
_symbol_name_getter = attrgetter("name")
_edge_target_getter = attrgetter("edge_type", "target")
_diagnostic_code_getter = attrgetter("code", "severity")
_metric_value_getter = attrgetter("metric", "value")


class TermColumn(NamedTuple):
    """The terms with one tag in a shard file, in frame order. `counts` has the number of terms in each frame.

    `texts` has the tag and the text of each term. The terms are separated by 0xFF, which does not occur in UTF-8. A
    term may have any length.
    """

    counts: array[int]
    texts: bytes


class ShardTerms(msgspec.Struct, frozen=True):
    """The terms of a shard file with `frames` frames: one column for each tag that has terms."""

    frames: int
    columns: tuple[TermColumn, ...]

    def frames_by_key(self) -> dict[bytes, bytes]:
        """Map each key to the numbers of its frames, ascending, as little-endian integers of 4 bytes."""
        gathered = PostingCollector()
        gathered.add(self, list(map(_frame_struct.pack, range(self.frames))))
        return gathered.postings_by_key()


class PostingCollector:
    """A collector that joins the postings of several shard files, by key."""

    def __init__(self) -> None:
        self._postings: defaultdict[bytes, list[bytes]] = defaultdict(list)

    def add(self, terms: ShardTerms, postings: Sequence[bytes]) -> None:
        """Add the terms of a shard file.

        `postings` has, for each frame of the file, the bytes to append to the value of a key.
        """
        for counts, texts in terms.columns:
            lists = map(self._postings.__getitem__, texts.split(_SEPARATOR))
            deque(map(list.append, lists, chain.from_iterable(map(repeat, postings, counts))), maxlen=0)

    def postings_by_key(self) -> dict[bytes, bytes]:
        """Return the values of all keys in key order, and drop the collected postings."""
        postings = self._postings
        if max(map(len, postings), default=0) > 1 + keys.TERM_BYTES_MAX:
            for text in [text for text in postings if len(text) > 1 + keys.TERM_BYTES_MAX]:
                postings[keys.make_key(text[:1], text[1:])] = postings.pop(text)
        # Values are joined in insertion order, which is their order in memory. This is twice as fast as joining them in
        # key order.
        values = dict(zip(postings, map(b"".join, postings.values()), strict=True))
        postings.clear()
        return {key: values[key] for key in sorted(values)}


class _TermLine(msgspec.Struct, gc=False):
    """The members of a record from which terms are made. Other members are not decoded."""

    kind: str
    name: str = ""
    edge_type: str = ""
    target: str = ""
    code: str = ""
    severity: str = ""
    metric: str = ""
    value: int = 0


_decoder = msgspec.json.Decoder(_TermLine)
_kind_getter = attrgetter("kind")
# Cached, because most call targets and metric values occur in many files.
_last_component = lru_cache(1 << 14)(keys.last_component)


@lru_cache(1 << 14)
def _metric_term(metric: tuple[str, int]) -> bytes:
    return keys.metric_term(*metric)


class FrameTerms(msgspec.Struct, frozen=True):
    """The distinct terms of one frame. For each tag in _TAGS, it has the number of terms and their texts.

    The text of a term is 0xFF, the tag and the term.
    """

    counts: tuple[int, ...]
    texts: tuple[bytes, ...]


_TAGS_IN_ORDER = (keys.CODE_TAG, keys.METRIC_TAG, keys.SYMBOL_TAG, keys.REFERENCE_TAG, keys.DEPENDENCY_TAG)


def line_terms(lines: bytes) -> FrameTerms:
    """Return the terms of a frame that contains the record lines `lines`.

    Raises ValueError if a line is not a record.
    """
    return record_terms((), (), lines)


def record_terms(records: Sequence[Record], types: Sequence[type[Record]], lines: bytes = b"") -> FrameTerms:
    """Return the terms of a frame that contains the records `records` and also the encoded records `lines`.

    `types` are the types of `records`. Raises ValueError if a line is not a record.
    """
    all_records: Sequence[object] = records
    all_types: Sequence[type[Record] | None] = types
    if lines:
        decoded = _decode_term_lines(lines)
        all_records = [*records, *decoded]
        all_types = [*types, *map(_INDEXED_TYPES.get, map(_kind_getter, decoded))]
    present = set(all_types)

    def records_of_type(type_: type[Record]) -> Iterable[object]:
        if type_ not in present:
            return ()
        return all_records if len(present) == 1 else compress(all_records, map(is_, all_types, repeat(type_)))

    codes = set(map(_diagnostic_code_getter, records_of_type(Diagnostic)))
    metrics = set(map(_metric_value_getter, records_of_type(Metric)))
    names = set(map(_symbol_name_getter, records_of_type(Symbol)))
    edges = set(map(_edge_target_getter, records_of_type(Edge)))
    targets = {target for edge_type, target in edges if edge_type != "depends"}
    dependencies = [target for edge_type, target in edges if edge_type == "depends"]
    terms: tuple[Collection[bytes], ...] = (
        [keys.code_term(*code) for code in codes],
        set(map(_metric_term, metrics)),
        list(map(str.encode, names)),
        list(map(str.encode, set(map(_last_component, targets)))),
        list(map(str.encode, dependencies)),
    )
    return FrameTerms(
        tuple(map(len, terms)),
        tuple(
            [
                (_SEPARATOR + tag).join([b"", *tag_terms]) if tag_terms else b""
                for tag, tag_terms in zip(_TAGS_IN_ORDER, terms, strict=True)
            ]
        ),
    )


def _decode_term_lines(lines: bytes) -> list[_TermLine]:
    try:
        return _decoder.decode_lines(lines)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"one of its records cannot be read: {error}") from error


def collect_terms(frames: Iterable[FrameTerms]) -> ShardTerms:
    """Return the terms of a shard file. `frames` has the terms of each of its frames, in order."""
    posted = list(frames)
    counts = zip(*[frame.counts for frame in posted], strict=True)
    texts = map(b"".join, zip(*[frame.texts for frame in posted], strict=True))
    return ShardTerms(
        len(posted),
        tuple(
            TermColumn(array("I", frame_counts), text[len(_SEPARATOR) :])
            for frame_counts, text in zip(counts, texts, strict=True)
            if text
        ),
    )


def terms_path(store_root: Path, digest: Digest) -> Path:
    """Return the path of the terms file of a shard file."""
    return store_root / layout.INDEXES / layout.TERMS / digest


def write_terms(files: StoreFiles, store_root: Path, digest: Digest, terms: ShardTerms) -> None:
    """Write the terms file of a shard file. It only saves time, so it is not synced. Raises StoreUnwritable."""
    path = terms_path(store_root, digest)
    try:
        files.write_volatile(path, encode_terms(digest, terms))
    except FileNotFoundError:  # All of `indexes/` may be deleted at any time.
        files.make_directory(path.parent)
        files.write_volatile(path, encode_terms(digest, terms))


def encode_terms(digest: Digest, terms: ShardTerms) -> bytes:
    """Return the bytes of the terms file for the shard file whose trailer has the digest `digest`."""
    chunks = [_head_struct.pack(_FILE_MAGIC, TERMS_VERSION, bytes.fromhex(digest), terms.frames, len(terms.columns))]
    for counts, texts in terms.columns:
        chunks += (little_endian(counts).tobytes(), _length_struct.pack(len(texts)), texts)
    data = compress_frame(b"".join(chunks))
    return data + _crc_struct.pack(zlib.crc32(data))


def decode_terms(data: bytes, digest: Digest) -> ShardTerms:
    """Decode a terms file. Raises ValueError if it is damaged, or belongs to another shard file or version."""
    end = len(data) - _crc_struct.size
    if end < 0 or _crc_struct.unpack_from(data, end) != (zlib.crc32(memoryview(data)[:end]),):
        raise ValueError("it is damaged")
    data = decompress_all(data[:end])
    end = len(data)
    if end < _head_struct.size:
        raise ValueError("it is inconsistent")
    name, version, trailer_digest, frames, column_count = _head_struct.unpack_from(data)
    if (name, version, trailer_digest.hex()) != (_FILE_MAGIC, TERMS_VERSION, digest):
        raise ValueError("it belongs to another shard or version")
    columns: list[TermColumn] = []
    position = _head_struct.size
    for _ in range(column_count):
        start = position + 4 * frames + _length_struct.size
        if start > end:
            raise ValueError("it is inconsistent")
        counts = array("I", data[position : start - _length_struct.size])
        (length,) = _length_struct.unpack_from(data, start - _length_struct.size)
        position = start + length
        texts = data[start:position]
        columns.append(TermColumn(little_endian(counts), texts))
        if position > end or sum(columns[-1].counts) != texts.count(_SEPARATOR) + 1:
            raise ValueError("it is inconsistent")
        if 2 * _SEPARATOR in _SEPARATOR + texts + _SEPARATOR:
            raise ValueError("it has an invalid key")
    if position != end:
        raise ValueError("it is inconsistent")
    return ShardTerms(frames, tuple(columns))
