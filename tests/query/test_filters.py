"""Tests of filters, as tables: the records that they match, and the shards that are read."""

from __future__ import annotations

import json
import os

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.errors import InvalidInput, StoreCorrupt
from codebatch.model.record_counts import RecordCounts
from codebatch.query.fields import FileLanguages
from codebatch.query.filters.filters import JsonRecord, RecordFilter, decode_records
from codebatch.query.filters.paths import PathFilter, exact_path_pattern

FINDING: JsonRecord = {
    "kind": "diagnostic", "path": "src/a.py", "severity": "error", "code": "E501", "tool": "ruff", "name": "x",
}  # fmt: skip
SYMBOL: JsonRecord = {"kind": "symbol", "path": "src/b.py", "name": "parse_line", "symbol_type": "function"}
NAMELESS: JsonRecord = {"kind": "file", "path_b64": "/w==", "lang": "text"}
CALL: JsonRecord = {"kind": "edge", "path": "src/b.py", "target": "std::io.read", "name": "no"}
SIZE: JsonRecord = {"kind": "metric", "path": "src/b.py", "metric": "lines", "value": 3}
RECORDS = [FINDING, SYMBOL, NAMELESS, CALL, SIZE]
LANGUAGES: FileLanguages = {("src/b.py", None): "python", ("src/a.py", None): "rust"}


@pytest.mark.parametrize(
    ("record_filter", "passed"),
    [
        (RecordFilter(), RECORDS),
        (RecordFilter(kinds=("symbol", "file")), [SYMBOL, NAMELESS]),
        (RecordFilter(severities=("warning", "error")), [FINDING]),
        (RecordFilter(severities=("warning",)), []),
        (RecordFilter(codes=("E501",)), [FINDING]),
        (RecordFilter(codes=("E5",)), []),
        (RecordFilter(codes=("W*", "E5*")), [FINDING]),
        (RecordFilter(codes=("*",)), [FINDING]),
        (RecordFilter(tools=("ruff",)), [FINDING]),
        (RecordFilter(tools=("codebatch",)), []),
        (RecordFilter(names=("parse_line",)), [SYMBOL]),
        (RecordFilter(names=("parse*",)), [SYMBOL]),
        (RecordFilter(names=("parse",)), []),
        (RecordFilter(symbol_types=("class", "function")), [SYMBOL]),
        (RecordFilter(symbol_types=("class",)), []),
        (RecordFilter(metrics=("lines",)), [SIZE]),
        (RecordFilter(metrics=("bytes",)), []),
        (RecordFilter(targets=("read",)), [CALL]),
        (RecordFilter(targets=("io", "std::io.read")), []),
        (RecordFilter(languages=("python", "text")), [SYMBOL, NAMELESS, CALL, SIZE]),
        (RecordFilter(languages=("rust",), kinds=("diagnostic", "edge")), [FINDING]),
        (RecordFilter(path="src/"), [FINDING, SYMBOL, CALL, SIZE]),
        (RecordFilter(path="B.P"), [SYMBOL, CALL, SIZE]),
        (RecordFilter(path="\\xff"), [NAMELESS]),
        (RecordFilter(kinds=("diagnostic",), path="b.p"), []),
    ],
)
def test_filter_matches_records_by_every_field(record_filter: RecordFilter, passed: list[JsonRecord]) -> None:
    assert [record for record in RECORDS if record_filter.matches(record, LANGUAGES)] == passed


def test_records_of_each_of_several_paths_are_found() -> None:
    lines = b"".join(msgspec.json.encode(record) + b"\n" for record in (FINDING, SYMBOL))
    for path in (("/src/a.py", "/src/b.py"), ("/src/b.py", "a.py"), ("/nowhere", "/src")):
        assert [*RecordFilter(path=path).iter_matching([lines])] == [FINDING, SYMBOL]


COUNTS = RecordCounts(kinds={"diagnostic": 2, "file": 1, "symbol": 0}, diagnostics={"error": {"E501": 2}})


@pytest.mark.parametrize(
    ("record_filter", "is_read"),
    [
        (RecordFilter(), True),
        (RecordFilter(kinds=("edge",)), False),
        (RecordFilter(kinds=("edge", "file")), True),
        (RecordFilter(kinds=("symbol",)), False),
        (RecordFilter(severities=("warning",)), False),
        (RecordFilter(severities=("warning", "error")), True),
        (RecordFilter(codes=("E5*",)), True),
        (RecordFilter(codes=("W*",)), False),
        (RecordFilter(kinds=("file",), codes=("E5*",)), False),
        (RecordFilter(kinds=("file",), severities=("error",)), False),
        (RecordFilter(kinds=("file",), tools=("ruff",)), False),
        (RecordFilter(names=("x",)), False),
        (RecordFilter(targets=("x",)), False),
        (RecordFilter(metrics=("x",)), False),
        (RecordFilter(languages=("x",)), True),
        (RecordFilter(path="nowhere"), True),
    ],
)
def test_shard_is_read_if_its_counts_allow_a_match(record_filter: RecordFilter, is_read: bool) -> None:
    assert record_filter.may_match(COUNTS) is is_read


def test_empty_shard_matches_nothing() -> None:
    assert not RecordFilter().may_match(RecordCounts())


def _line(record: JsonRecord) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def test_matching_records_are_found_in_order_across_blocks() -> None:
    blocks = [_line(FINDING) + _line(NAMELESS), b"", _line(SYMBOL)]
    assert list(RecordFilter().iter_matching(blocks)) == [FINDING, NAMELESS, SYMBOL]
    assert list(RecordFilter(kinds=("symbol", "diagnostic")).iter_matching(blocks)) == [FINDING, SYMBOL]
    assert list(RecordFilter(kinds=("diagnostic",), path="b").iter_matching(blocks)) == []
    assert decode_records(b"".join(blocks)) == [FINDING, NAMELESS, SYMBOL]


def test_lines_of_another_kind_are_not_decoded() -> None:
    assert list(RecordFilter(kinds=("symbol",)).iter_matching([b'{"kind":"edge"\n', _line(SYMBOL)])) == [SYMBOL]


@pytest.mark.parametrize(
    "record_filter",
    [
        RecordFilter(kinds=("symbols",)),
        RecordFilter(severities=("grave",)),
        RecordFilter(symbol_types=("klass",)),
    ],
)
def test_unknown_kind_or_severity_is_rejected(record_filter: RecordFilter) -> None:
    with pytest.raises(InvalidInput, match="unknown"):
        record_filter.check()
    sound = RecordFilter(kinds=("symbol",), severities=("error",))
    assert sound.check() is sound


@pytest.mark.parametrize(
    ("pattern", "passed"),
    [
        ("*.py", ["a.py", "src/b.py", "src/sub/c.py"]),
        ("/*.py", ["a.py"]),
        ("src/*.py", ["src/b.py"]),
        ("src/[s]*", ["src/sub/c.py"]),
        ("s*c/", ["src/b.py", "src/sub/c.py"]),
        ("?.py/", []),
        ("src/**/c.py", ["src/sub/c.py"]),
        ("SRC", ["src/b.py", "src/sub/c.py"]),
        ("SR*", []),
        ("\\xE9", ["caf\udce9"]),
        ("f\udce9", ["caf\udce9"]),
        ("a\\x1b", ["a\x1b"]),
        ("caf?", ["caf\udce9"]),
        ("/src", ["src/b.py", "src/sub/c.py"]),
        ("/src/", ["src/b.py", "src/sub/c.py"]),
        ("/src/sub/c.py", ["src/sub/c.py"]),
        ("/sub", []),
        ("/SRC", []),
        ("/caf\\xe9", ["caf\udce9"]),
        ("/", ["a.py", "src/b.py", "src/sub/c.py", "caf\udce9", "a\x1b"]),
        ("", ["a.py", "src/b.py", "src/sub/c.py", "caf\udce9", "a\x1b"]),
    ],
)
def test_path_filter_matches_by_pattern_or_substring(pattern: str, passed: list[str]) -> None:
    """A pattern that matches a directory includes everything below it. Substrings ignore case, patterns do not."""
    paths = PathFilter(pattern)
    every = ("a.py", "src/b.py", "src/sub/c.py", "caf\udce9", "a\x1b")
    assert [path for path in every if paths.matches(os.fsencode(path))] == passed


def test_path_filter_matches_any_of_several_texts() -> None:
    every = ("a.py", "src/b.py", "src/sub/c.py")
    several = PathFilter(("/src/sub", "*.py/", "A.P"))
    assert [path for path in every if several.matches(os.fsencode(path))] == ["a.py", "src/sub/c.py"]
    record_filter = RecordFilter(path=("/src/sub", "A.P"))
    assert [path for path in every if record_filter.matches({"kind": "file", "path": path})] == ["a.py", "src/sub/c.py"]


@given(
    st.binary(min_size=1, max_size=8).filter(lambda path: not {0, ord("/")} & set(path)),
    st.sampled_from([b"", b"/x", b"x", b"/*"]),
)
def test_literal_path_filter_matches_the_path_and_its_descendants(path: bytes, behind: bytes) -> None:
    paths = PathFilter(exact_path_pattern(path))
    assert paths.matches(path + behind) == (not behind or behind.startswith(b"/"))
    assert not paths.matches(path + b"-/" + path)


@pytest.mark.parametrize("record", [{}, {"path": "a", "path_b64": "YQ=="}, {"path_b64": "?"}, {"path": 3}])
def test_a_record_without_a_path_is_damage(record: JsonRecord) -> None:
    """A filter sees such records, and unknown kinds, in stores that another program wrote."""
    with pytest.raises(StoreCorrupt, match="no path"):
        RecordFilter(path="a").matches({"kind": "file", **record})
    assert not RecordFilter(where="line > 1").matches({"kind": "odd", **record})


@pytest.mark.parametrize("pattern", ["[", "a[", "!*.py"])
def test_impossible_path_pattern_is_rejected(pattern: str) -> None:
    with pytest.raises(InvalidInput, match="pattern"):
        RecordFilter(path=pattern).check()


@pytest.mark.parametrize(
    "record_filter",
    [
        RecordFilter(kinds=("file",), codes=("E5*",)),
        RecordFilter(names=("x",), severities=("error",)),
        RecordFilter(targets=("x",), metrics=("lines",)),
    ],
)
def test_impossible_filter_is_rejected(record_filter: RecordFilter) -> None:
    with pytest.raises(InvalidInput, match="no record"):
        record_filter.check().refuse_impossible()


def test_named_kinds_follow_from_kind_specific_filters() -> None:
    assert RecordFilter().named_kinds == RecordFilter(path="a", languages=("c",)).named_kinds == ()
    assert RecordFilter(names=("f",)).named_kinds == ("symbol",)
    assert RecordFilter(kinds=("edge", "file")).named_kinds == ("file", "edge")


@pytest.mark.parametrize(
    ("record_filter", "is_covered"),
    [
        (RecordFilter(path="a"), True),
        (RecordFilter(kinds=("failure", "file")), True),
        (RecordFilter(kinds=("file",)), False),
        (RecordFilter(languages=("c",)), False),
        (RecordFilter(languages=("c",), kinds=("failure",)), True),
    ],
)
def test_filter_includes_failures_if_requested(record_filter: RecordFilter, is_covered: bool) -> None:
    assert record_filter.covers_failures is is_covered
