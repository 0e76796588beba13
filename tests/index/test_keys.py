"""Tests of keys, values and terms files of an index, byte by byte."""

from __future__ import annotations

import contextlib
import hashlib
import struct
import zlib
from array import array

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.index import keys
from codebatch.index.keys import TermLookup
from codebatch.index.terms import (
    ShardTerms,
    TermColumn,
    collect_terms,
    decode_terms,
    encode_terms,
    line_terms,
    record_terms,
)
from codebatch.model.digest import Digest
from codebatch.model.record import Record, Symbol
from codebatch.store.objects.frames import compress_frame

from .batches import calls, depends, diagnostic, metric, symbol

DIGEST = Digest("ab" * 32)
TERMS = ShardTerms(
    3,
    (
        TermColumn(array("I", [0, 1, 1]), b"dE\0hint\xffdE\0hint"),
        TermColumn(array("I", [2, 0, 1]), b"nf\xffnlong\xffnf"),
    ),
)
FILE = (
    b"cbterms\x01" + b"\xab" * 32 + b"\x03\0\0\0\x02"
    b"\0\0\0\0\x01\0\0\0\x01\0\0\0" + b"\x0f" + b"\0" * 7 + b"dE\0hint\xffdE\0hint"
    b"\x02\0\0\0\0\0\0\0\x01\0\0\0" + b"\x0b" + b"\0" * 7 + b"nf\xffnlong\xffnf"
)

# Some names are long and differ only after the part that a key contains.
names = st.text(max_size=6) | st.builds(
    lambda start, end: start * 401 + end, st.sampled_from("aä"), st.text(max_size=2)
)


def _finds(lookup: TermLookup, key: bytes) -> bool:
    return key.startswith(lookup.key) if lookup.is_prefix else key == lookup.key


def _lines(*records: Record) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def test_keys_and_values_match_the_specified_bytes() -> None:
    assert keys.make_key(keys.SYMBOL_TAG, "é".encode()) == b"n\xc3\xa9"
    long = b"x" * 401
    assert keys.make_key(keys.SYMBOL_TAG, long[:400]) == b"n" + b"x" * 400
    assert keys.make_key(keys.SYMBOL_TAG, long) == b"n" + b"x" * 400 + b"\xff" + hashlib.sha256(long).digest()[:16]
    assert keys.code_term("E1", "error") == b"E1\0error"
    assert keys.metric_term("loc", 258) == b"loc\x0000000102"
    assert [keys.metric_term("", value)[1:] for value in (-1, 2**32)] == [b"00000000", b"ffffffff"]
    assert keys.encode_postings(1, 2) == [b"\0\0\0\0\x01\0\0\0", b"\x01\0\0\0\x01\0\0\0"]
    for cut in (b"\0" * 7, b"\0" * 9):
        with pytest.raises(ValueError, match="truncated"):
            keys.frames_by_slot([b"\0" * 8, cut])


@pytest.mark.parametrize(
    ("target", "last"),
    [("f", "f"), ("a.b::c", "c"), ("a->b", "b"), ("./x/y.h", "h"), ("a\\B", "B"), ("a.", ""), ("", "")],
)
def test_last_component_of_a_target_is_extracted(target: str, last: str) -> None:
    assert keys.last_component(target) == last


@given(names, st.integers(0, 403))
def test_lookup_finds_every_matching_key(name: str, cut: int) -> None:
    key = keys.make_key(keys.SYMBOL_TAG, name.encode())
    assert len(key) <= 511
    assert _finds(keys.make_lookup(keys.SYMBOL_TAG, f"{name[:cut]}*"), key)
    if not name.endswith("*"):
        assert _finds(keys.make_lookup(keys.SYMBOL_TAG, name), key)


@given(names, st.sampled_from(["error", "hint"]), st.integers(0, 403))
def test_code_lookup_matches_every_severity(code: str, severity: str, cut: int) -> None:
    key = keys.make_key(keys.CODE_TAG, keys.code_term(code, severity))
    assert _finds(keys.make_code_lookup(f"{code[:cut]}*"), key)
    if not code.endswith("*"):
        assert _finds(keys.make_code_lookup(code), key)


def test_lookup_excludes_similar_keys() -> None:
    assert not _finds(keys.make_lookup(keys.SYMBOL_TAG, "f"), b"nfg")
    assert not _finds(keys.make_code_lookup("E1"), keys.make_key(keys.CODE_TAG, keys.code_term("E10", "error")))
    assert not _finds(keys.make_lookup(keys.SYMBOL_TAG, "x" * 401), keys.make_key(keys.SYMBOL_TAG, b"x" * 402))


def test_lookup_accepts_non_utf8_text() -> None:
    assert keys.make_lookup(keys.SYMBOL_TAG, "\udcff").key == b"n\xed\xb3\xbf"
    assert keys.make_code_lookup("\udcff*").key == b"d\xed\xb3\xbf"


def test_records_post_the_expected_terms() -> None:
    items: list[list[Record]] = [
        [symbol("f"), symbol("f"), calls("a.f"), calls("f")],
        [],
        [symbol("f"), depends("a/b.py"), diagnostic("E1", "hint"), metric("loc", 3)],
        [metric("loc", 2**32), metric("loc", 2**33)],
        [metric("loc", 2**34)],
    ]
    terms = {
        b"dE1\0hint": b"\2\0\0\0",
        b"mloc\x0000000003": b"\2\0\0\0",
        b"mloc\0ffffffff": b"\3\0\0\0\4\0\0\0",
        b"nf": b"\0\0\0\0\2\0\0\0",
        b"rf": b"\0\0\0\0",
        b"ta/b.py": b"\2\0\0\0",
    }
    from_records = collect_terms(record_terms(records, list(map(type, records))) for records in items)
    from_lines = collect_terms(line_terms(_lines(*records)) for records in items)
    assert from_records.frames_by_key() == from_lines.frames_by_key() == terms
    assert [*from_records.frames_by_key()] == sorted(terms)
    assert line_terms(b'{"kind":"yet unknown","whatever":[1]}\n') == record_terms([], [])


@pytest.mark.parametrize(
    "names", [["a\nnb", "c"], ["x" * 401, "x" * 402, "c"], ["é" * 201, "\n"], ["", "\n"], ["\n" * 401, ""]]
)
def test_names_with_any_characters_are_keys(names: list[str]) -> None:
    posted = [record_terms([symbol(name)], [Symbol]) for name in names]
    expected = {
        keys.make_key(keys.SYMBOL_TAG, name.encode()): bytes([item, 0, 0, 0]) for item, name in enumerate(names)
    }
    assert collect_terms(posted).frames_by_key() == expected


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"kind":"symbol","name":5}', b"\xff", b"[" * 100_000, b'{"name":"f"}'])
def test_invalid_record_is_rejected(line: bytes) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        line_terms(line + b"\n")


def _with_crc(data: bytes) -> bytes:
    return data + zlib.crc32(data).to_bytes(4, "little")


def test_terms_file_has_the_specified_bytes_and_rejects_truncation() -> None:
    data = encode_terms(DIGEST, TERMS)
    assert data == _with_crc(compress_frame(FILE))
    assert decode_terms(data, DIGEST) == TERMS
    for length in range(len(data)):
        with pytest.raises(ValueError, match="damaged"):
            decode_terms(data[:length], DIGEST)
    for place in range(len(data)):
        with pytest.raises(ValueError, match="damaged"):
            decode_terms(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :], DIGEST)


def test_terms_file_of_another_shard_is_rejected() -> None:
    with pytest.raises(ValueError, match="another shard"):
        decode_terms(encode_terms(DIGEST, TERMS), Digest("00" * 32))


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_postings_round_trip(slot: int, items: int) -> None:
    values = keys.encode_postings(slot, items)
    assert values == [struct.pack("<Q", slot << 32 | item) for item in range(items)]
    other_postings = keys.encode_postings(slot ^ 1, 1)
    assert keys.frames_by_slot([b"".join(values), *other_postings, *values]) == {slot: [*range(items)], slot ^ 1: [0]}


@given(st.lists(st.sets(names, max_size=4), max_size=5))
def test_terms_files_round_trip(names_by_item: list[set[str]]) -> None:
    terms = collect_terms(record_terms([*map(symbol, item_names)], [Symbol]) for item_names in names_by_item)
    read = decode_terms(encode_terms(DIGEST, terms), DIGEST)
    assert read == terms
    assert read.frames_by_key() == {
        keys.make_key(keys.SYMBOL_TAG, name.encode()): b"".join(
            struct.pack("<I", item) for item, item_names in enumerate(names_by_item) if name in item_names
        )
        for name in set[str]().union(*names_by_item)
    }


@pytest.mark.parametrize("texts", [b"", b"\xff", b"nf\xff", b"\xffnf", b"nf\xff\xffng"])
def test_terms_file_with_an_invalid_key_is_rejected(texts: bytes) -> None:
    data = encode_terms(DIGEST, ShardTerms(1, (TermColumn(array("I", [texts.count(b"\xff") + 1]), texts),)))
    with pytest.raises(ValueError, match="an invalid key"):
        decode_terms(data, DIGEST)


def test_terms_file_with_a_wrong_count_is_rejected() -> None:
    with pytest.raises(ValueError, match="inconsistent"):
        decode_terms(encode_terms(DIGEST, ShardTerms(2, (TermColumn(array("I", [1, 1]), b"nf"),))), DIGEST)


@given(st.binary(max_size=60))
def test_forged_terms_file_is_rejected_or_decoded(middle: bytes) -> None:
    data = b"cbterms\x01" + b"\xab" * 32 + middle
    for forged in (data, data[: len(middle)], compress_frame(data), compress_frame(data[: len(middle)])):
        with contextlib.suppress(ValueError):
            decode_terms(_with_crc(forged), DIGEST)


def test_last_component_of_a_long_name_is_found_in_linear_time() -> None:
    """The time must not be quadratic in the length, which would be an hour."""
    assert keys.last_component("a" * 10**6 + ".") == ""
