"""Keys, values and terms files of an index, byte by byte."""

from __future__ import annotations

import contextlib
import hashlib
import struct
import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.index import keys
from codebatch.index.keys import Lookup
from codebatch.index.terms import Terms, collect_terms, decode_terms, encode_terms, posted_by, posted_by_lines
from codebatch.model.digest import Digest
from codebatch.model.record import Record, Symbol

from .batches import calls, depends, diagnostic, metric, symbol

DIGEST = Digest("ab" * 32)
TERMS = Terms([b"nf", b"nlong"], [2, 1], b"\0\0\0\0\2\0\0\0\1\0\0\0")
FILE = (
    b"cbterms\x02" + b"\xab" * 32 + b"\x02\0\0\0"
    b"\x02\0\x05\0\x02\0\0\0\x01\0\0\0"
    b"nfnlong\0\0\0\0\x02\0\0\0\x01\0\0\0"
)  # fmt: skip
CRC = zlib.crc32(FILE).to_bytes(4, "little")

# Long ones too, which differ behind what a key holds of them.
names = st.text(max_size=6) | st.builds(
    lambda start, end: start * 401 + end, st.sampled_from("aä"), st.text(max_size=2)
)


def _finds(lookup: Lookup, key: bytes) -> bool:
    return key.startswith(lookup.key) if lookup.is_prefix else key == lookup.key


def _lines(*records: Record) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def test_keys_and_values_have_these_bytes() -> None:
    assert keys.make_key(keys.SYMBOL, "é".encode()) == b"n\xc3\xa9"
    long = b"x" * 401
    assert keys.make_key(keys.SYMBOL, long[:400]) == b"n" + b"x" * 400
    assert keys.make_key(keys.SYMBOL, long) == b"n" + b"x" * 400 + b"\xff" + hashlib.sha256(long).digest()[:16]
    assert keys.code_term("E1", "error") == b"E1\0error"
    assert keys.metric_term("loc", 258) == b"loc\0\0\0\x01\x02"
    assert [keys.metric_term("", value)[1:] for value in (-1, 2**32)] == [b"\0\0\0\0", b"\xff\xff\xff\xff"]
    assert keys.encode_postings(b"\1\0\0\0", b"\2\0\0\0\3\0\0\0") == b"\x02\0\0\0\x01\0\0\0\x03\0\0\0\x01\0\0\0"
    for cut in (b"\0" * 7, b"\0" * 9):
        with pytest.raises(ValueError, match="cut"):
            keys.items_by_slot([b"\0" * 8, cut])


@pytest.mark.parametrize(
    ("target", "last"),
    [("f", "f"), ("a.b::c", "c"), ("a->b", "b"), ("./x/y.h", "h"), ("a\\B", "B"), ("a.", ""), ("", "")],
)
def test_the_last_component_of_a_target(target: str, last: str) -> None:
    assert keys.last_component(target) == last


@given(names, st.integers(0, 403))
def test_a_lookup_finds_all_that_it_must(name: str, cut: int) -> None:
    key = keys.make_key(keys.SYMBOL, name.encode())
    assert len(key) <= 511
    assert _finds(keys.look_for(keys.SYMBOL, f"{name[:cut]}*"), key)
    if not name.endswith("*"):
        assert _finds(keys.look_for(keys.SYMBOL, name), key)


@given(names, st.sampled_from(["error", "hint"]), st.integers(0, 403))
def test_a_code_is_found_under_every_severity(code: str, severity: str, cut: int) -> None:
    key = keys.make_key(keys.CODE, keys.code_term(code, severity))
    assert _finds(keys.look_for_code(f"{code[:cut]}*"), key)
    if not code.endswith("*"):
        assert _finds(keys.look_for_code(code), key)


def test_a_lookup_finds_little_else() -> None:
    assert not _finds(keys.look_for(keys.SYMBOL, "f"), b"nfg")
    assert not _finds(keys.look_for_code("E1"), keys.make_key(keys.CODE, keys.code_term("E10", "error")))
    assert not _finds(keys.look_for(keys.SYMBOL, "x" * 401), keys.make_key(keys.SYMBOL, b"x" * 402))


def test_what_no_utf_8_is_may_be_looked_for() -> None:
    assert keys.look_for(keys.SYMBOL, "\udcff").key == b"n\xed\xb3\xbf"
    assert keys.look_for_code("\udcff*").key == b"d\xed\xb3\xbf"


def test_what_records_post() -> None:
    items: list[list[Record]] = [
        [symbol("f"), symbol("f"), calls("a.f"), calls("f")],
        [],
        [symbol("f"), depends("a/b.py"), diagnostic("E1", "hint"), metric("loc", 3)],
        [metric("loc", 2**32), metric("loc", 2**33)],
        [metric("loc", 2**34)],
    ]
    terms = {
        b"dE1\0hint": b"\2\0\0\0",
        b"mloc\0\0\0\0\x03": b"\2\0\0\0",
        b"mloc\0\xff\xff\xff\xff": b"\3\0\0\0\4\0\0\0",
        b"nf": b"\0\0\0\0\2\0\0\0",
        b"rf": b"\0\0\0\0",
        b"ta/b.py": b"\2\0\0\0",
    }
    at_hand = collect_terms(posted_by(records, list(map(type, records))) for records in items)
    written = collect_terms(posted_by_lines(_lines(*records)) for records in items)
    assert at_hand == written
    assert (at_hand.by_key(), at_hand.keys) == (terms, sorted(terms))
    assert posted_by_lines(b'{"kind":"yet unknown","whatever":[1]}\n') == posted_by([], [])


@pytest.mark.parametrize("names", [["a\nnb", "c"], ["x" * 401, "c"], ["é" * 201, "\n"], ["", "\n"], ["\n" * 401, ""]])
def test_names_are_keys_whatever_is_in_them(names: list[str]) -> None:
    posted = [posted_by([symbol(name)], [Symbol]) for name in names]
    expected = {keys.make_key(keys.SYMBOL, name.encode()): bytes([item, 0, 0, 0]) for item, name in enumerate(names)}
    assert collect_terms(posted).by_key() == expected


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"kind":"symbol","name":5}', b"\xff", b"[" * 100_000, b'{"name":"f"}'])
def test_what_is_no_record_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        posted_by_lines(line + b"\n")


def test_a_terms_file_has_these_bytes_and_no_cut_one_is_taken() -> None:
    data = encode_terms(DIGEST, TERMS)
    assert data == FILE + CRC
    assert decode_terms(data, DIGEST) == TERMS
    for length in range(len(data)):
        with pytest.raises(ValueError, match="damaged"):
            decode_terms(data[:length], DIGEST)
    for place in range(len(data)):
        with pytest.raises(ValueError, match="damaged"):
            decode_terms(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :], DIGEST)


def test_a_terms_file_of_another_shard_is_not_taken() -> None:
    with pytest.raises(ValueError, match="another shard"):
        decode_terms(encode_terms(DIGEST, TERMS), Digest("00" * 32))


items = st.lists(st.binary(min_size=4, max_size=4), max_size=4)


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=5))
def test_postings_are_read_as_they_were_written(slot: int, items: list[int]) -> None:
    value = keys.encode_postings(slot.to_bytes(4, "little"), struct.pack(f"<{len(items)}I", *items))
    assert value == struct.pack(f"<{len(items)}Q", *(slot << 32 | item for item in items))
    other = keys.encode_postings((slot ^ 1).to_bytes(4, "little"), struct.pack("<I", items[0]))
    read = {slot: sorted(set(items))}
    assert keys.items_by_slot([value]) == read
    assert keys.items_by_slot([value, other, value]) == read | {slot ^ 1: items[:1]}


@given(st.dictionaries(st.binary(min_size=1, max_size=9), items))
def test_terms_files_are_read_as_they_were_written(posted: dict[bytes, list[bytes]]) -> None:
    ordered = sorted(posted)
    of_keys = [posted[key] for key in ordered]
    terms = Terms(ordered, list(map(len, of_keys)), b"".join(map(b"".join, of_keys)))
    assert decode_terms(encode_terms(DIGEST, terms), DIGEST) == terms
    assert terms.by_key() == {key: b"".join(held) for key, held in posted.items()}


@pytest.mark.parametrize(("length", "is_key"), [(0, False), (1, True), (418, True), (419, False)])
def test_a_key_of_a_terms_file_is_as_long_as_one_can_be(length: int, is_key: bool) -> None:
    data = encode_terms(DIGEST, Terms([b"n" * length], [1], b"\0\0\0\0"))
    with contextlib.nullcontext() if is_key else pytest.raises(ValueError, match="a key that is none"):
        assert decode_terms(data, DIGEST)


@given(st.binary(max_size=60))
def test_a_forged_terms_file_is_refused_or_read(middle: bytes) -> None:
    said = b"cbterms\x02" + b"\xab" * 32 + middle
    with contextlib.suppress(ValueError):
        decode_terms(said + zlib.crc32(said).to_bytes(4, "little"), DIGEST)


def test_what_is_behind_a_long_name_is_found_at_once() -> None:
    """Not in the square of its length, which were an hour."""
    assert keys.last_component("a" * 10**6 + ".") == ""
