"""What a filter lets pass, and which shards it reads at all: by tables."""

from __future__ import annotations

import json

import pytest

from codebatch.errors import InvalidInput
from codebatch.model.counts import Counts
from codebatch.query.filters import JsonRecord, RecordFilter, decode_records

FINDING: JsonRecord = {
    "kind": "diagnostic", "path": "src/a.py", "severity": "error", "code": "E501", "tool": "ruff", "name": "x",
}  # fmt: skip
SYMBOL: JsonRecord = {"kind": "symbol", "path": "src/b.py", "name": "parse_line"}
NAMELESS: JsonRecord = {"kind": "file", "path_b64": "/w=="}
RECORDS = [FINDING, SYMBOL, NAMELESS]


@pytest.mark.parametrize(
    ("asked", "passed"),
    [
        (RecordFilter(), [FINDING, SYMBOL, NAMELESS]),
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
        (RecordFilter(path="src/"), [FINDING, SYMBOL]),
        (RecordFilter(path="b.p"), [SYMBOL]),
        (RecordFilter(path="\\xff"), [NAMELESS]),
        (RecordFilter(kinds=("diagnostic",), path="b.p"), []),
    ],
)
def test_a_record_passes_where_every_field_that_is_asked_for_fits(
    asked: RecordFilter, passed: list[JsonRecord]
) -> None:
    assert [record for record in RECORDS if asked.matches(record)] == passed


COUNTS = Counts(kinds={"diagnostic": 2, "file": 1, "symbol": 0}, severities={"error": 2}, codes={"E501": 2})


@pytest.mark.parametrize(
    ("asked", "may"),
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
        (RecordFilter(path="nowhere"), True),
    ],
)
def test_a_shard_is_read_where_its_counts_leave_room_for_an_answer(asked: RecordFilter, may: bool) -> None:
    assert asked.may_match(COUNTS) is may


def test_nothing_is_in_a_shard_without_records() -> None:
    assert not RecordFilter().may_match(Counts())


def _line(record: JsonRecord) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def test_what_is_asked_for_is_found_in_order_across_blocks() -> None:
    blocks = [_line(FINDING) + _line(NAMELESS), b"", _line(SYMBOL)]
    assert list(RecordFilter().iter_matching(blocks)) == [FINDING, NAMELESS, SYMBOL]
    assert list(RecordFilter(kinds=("symbol", "diagnostic")).iter_matching(blocks)) == [FINDING, SYMBOL]
    assert list(RecordFilter(kinds=("diagnostic",), path="b").iter_matching(blocks)) == []
    assert decode_records(b"".join(blocks)) == [FINDING, NAMELESS, SYMBOL]


def test_lines_of_another_kind_are_not_decoded() -> None:
    assert list(RecordFilter(kinds=("symbol",)).iter_matching([b'{"kind":"edge"\n', _line(SYMBOL)])) == [SYMBOL]


@pytest.mark.parametrize("asked", [RecordFilter(kinds=("symbols",)), RecordFilter(severities=("grave",))])
def test_a_kind_or_severity_that_does_not_exist_is_refused(asked: RecordFilter) -> None:
    with pytest.raises(InvalidInput, match="there is no"):
        asked.check()
    sound = RecordFilter(kinds=("symbol",), severities=("error",))
    assert sound.check() is sound
