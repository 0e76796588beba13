"""Tests of counts: the same from the totals of a shard, from tallies, and from single records."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.errors import InvalidInput, StoreCorrupt
from codebatch.model.analysis.record_counting import count_lines
from codebatch.model.record import Names, Record
from codebatch.query.answers.counting import count_from_totals, count_records
from codebatch.query.fields import NO_LANGUAGES
from codebatch.query.filters.decoding import decode_records, make_record_counter
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.filters.shaping import Groups, group_records
from codebatch.query.sources.records import BatchRecords
from tests.index.batches import diagnostic, make_saying, make_store, metric
from tests.query.generated import filters, records

FIELDS = [
    "kind", "severity", "code", "lang", "path", "dir", "name", "line", "parameters", "visibility", "value",
    "lines", "names",
]  # fmt: skip
count_filters = st.builds(
    RecordFilter,
    kinds=st.lists(st.sampled_from(["file", "diagnostic", "edge"]), max_size=2).map(tuple),
    severities=st.sampled_from([(), ("error",), ("error", "hint")]),
    codes=st.lists(st.sampled_from(["f", "fg", "f*", "*", "F"]), max_size=2).map(tuple),
    languages=st.sampled_from([(), ("f",), ("f", "fg", "*")]),
)


def _lines(drawn_records: list[Record]) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in drawn_records)


def _group_individually(lines: bytes, record_filter: RecordFilter, field: str) -> Groups:
    every = ((record, 1) for record in decode_records(lines) if record_filter.matches(record))
    return group_records(every, field, NO_LANGUAGES)


@given(drawn_records=st.lists(records(), max_size=8), record_filter=filters, field=st.sampled_from(FIELDS))
def test_tallied_counts_match_the_records(drawn_records: list[Record], record_filter: RecordFilter, field: str) -> None:
    try:
        record_filter.check()
    except InvalidInput:
        return
    lines = _lines(drawn_records)
    tallied = record_filter.iter_tallied([lines], make_record_counter(record_filter.fields_needed((field,))))
    assert group_records(tallied, field, NO_LANGUAGES) == _group_individually(lines, record_filter, field)


@given(drawn_records=st.lists(records(), max_size=8), record_filter=count_filters, field=st.sampled_from(FIELDS[:5]))
def test_counts_from_shard_totals_match_the_records(
    drawn_records: list[Record], record_filter: RecordFilter, field: str
) -> None:
    lines = _lines(drawn_records)
    from_totals = count_from_totals(record_filter, field, count_lines(lines))
    if from_totals is not None:
        groups = _group_individually(lines, record_filter, field)
        assert {value: number for value, number in from_totals.counts.items() if number} == dict(groups.counts)
        assert from_totals.absent == groups.absent


FINDINGS = b'{"kind":"diagnostic","severity":"error","code":"a"}\n{"kind":"diagnostic","severity":"hint","code":"b"}\n'


@pytest.mark.parametrize(
    ("record_filter", "field", "is_answered"),
    [
        (RecordFilter(), "kind", True),
        (RecordFilter(kinds=("diagnostic",)), "severity", True),
        (RecordFilter(kinds=("diagnostic", "file")), "code", True),
        (RecordFilter(severities=("hint",)), "severity", True),
        (RecordFilter(codes=("a",)), "code", True),
        (RecordFilter(codes=("a",)), "kind", True),
        (RecordFilter(codes=("a", "b"), severities=("hint",)), "severity", True),
        (RecordFilter(kinds=("file",), languages=("c",)), "lang", True),
        (RecordFilter(codes=("a",)), "severity", True),
        (RecordFilter(severities=("hint",)), "code", True),
        (RecordFilter(severities=("hint",), codes=("a",)), "kind", True),
        (RecordFilter(), "path", False),
        (RecordFilter(), "lang", False),
        (RecordFilter(path="a"), "kind", False),
        (RecordFilter(kinds=("symbol",), where="line > 1"), "kind", False),
    ],
)
def test_shard_totals_answer_only_determined_questions(
    record_filter: RecordFilter, field: str, is_answered: bool
) -> None:
    assert (count_from_totals(record_filter, field, count_lines(FINDINGS)) is not None) is is_answered


def test_shards_are_not_read_if_their_totals_suffice(tmp_path: Path) -> None:
    """The totals tell the count of each pair of two severities and two codes."""
    store = make_store(tmp_path)
    mixed = [diagnostic("a", "error"), diagnostic("b", "hint"), diagnostic("a", "hint"), diagnostic("b", "error")]
    records_by_item = [mixed, [], [], [diagnostic("a", "error")], [], []]
    batch = make_saying(store, len(records_by_item), {"symbols": records_by_item})
    records = BatchRecords(store, batch)
    for path in batch.root.glob("outputs/*/symbols/*"):
        path.write_bytes(b"")
    errors, code_a = RecordFilter(severities=("error",)), RecordFilter(codes=("a*",))
    assert count_records(records, ("symbols",), errors, "code") == Groups((("a", 2), ("b", 1)), 0)
    assert count_records(records, ("symbols",), errors, "severity") == Groups((("error", 3),), 0)
    assert count_records(records, ("symbols",), code_a, "severity") == Groups((("error", 2), ("hint", 1)), 0)
    both = RecordFilter(severities=("hint",), codes=("b", "c"))
    assert count_records(records, ("symbols",), both, "kind") == Groups((("diagnostic", 1),), 0)
    assert not [*records.iter_records("symbols", RecordFilter(severities=("info",), codes=("a",)))]
    with pytest.raises(StoreCorrupt):
        count_records(records, ("symbols",), errors, "path")


def test_records_are_counted_by_lists_of_numbers_and_of_texts() -> None:
    lines = _lines([Names(path="a", names=("x",), lines=(1, 2))] * 3)
    assert list(make_record_counter(("lines", "names"))(lines)) == [({"lines": [1, 2], "names": ["x"]}, 3)]


@pytest.mark.parametrize("field", ["severity", "code", "kind", "lang"])
def test_records_without_the_field_are_counted_as_absent(tmp_path: Path, field: str) -> None:
    """The counts of all shards are sums, from their totals."""
    store = make_store(tmp_path)
    items: list[list[Record]] = [[diagnostic("E1"), metric("m", 1)], [metric("m", 2)], [], [diagnostic("E2", "hint")]]
    batch = make_saying(store, len(items), {"symbols": items}, shard_items=1)
    records = BatchRecords(store, batch)
    every = [(record, 1) for item in items for record in decode_records(_lines(item))]
    assert count_records(records, ("symbols",), RecordFilter(), field) == group_records(every, field, NO_LANGUAGES)
