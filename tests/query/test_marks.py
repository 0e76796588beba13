"""Tests of prefiltering: lines that cannot match are not decoded, and the answer is that of a full search."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.errors import InvalidInput, StoreCorrupt
from codebatch.model.record import Record
from codebatch.query.filters.filters import RecordFilter, decode_records
from tests.query.generated import filters, records


@given(blocks_of_records=st.lists(st.lists(records(), max_size=6), max_size=3), record_filter=filters)
def test_prefiltered_search_matches_a_full_search(
    blocks_of_records: list[list[Record]], record_filter: RecordFilter
) -> None:
    try:
        record_filter.check()
    except InvalidInput:
        return
    blocks = [b"".join(msgspec.json.encode(record) + b"\n" for record in block) for block in blocks_of_records]
    every = [record for block in blocks for record in decode_records(block)]
    assert list(record_filter.iter_matching(blocks)) == [record for record in every if record_filter.matches(record)]


def test_star_matches_any_target() -> None:
    block = b'{"kind":"edge","path":"a","target":"f"}\n{"kind":"edge","path":"a","target":""}\n'
    assert len(list(RecordFilter(targets=("*",)).iter_matching([block]))) == 2


def test_a_path_that_is_not_utf_8_is_found_by_its_directory() -> None:
    block = b'{"kind":"symbol","path_b64":"c3JjL/8ucHk=","name":"f"}\n{"kind":"symbol","path":"a.py","name":"f"}\n'
    for path in ("/src", "src/*.py"):
        assert len(list(RecordFilter(path=path).iter_matching([block]))) == 1


def test_invalid_record_is_reported_when_it_is_read() -> None:
    blocks = [b'{"kind":"symbol","name":"f"}\n', b'{"kind":"symbol","name":"g"\n']
    assert len(list(RecordFilter(names=("f",)).iter_matching(blocks))) == 1
    for record_filter in (RecordFilter(), RecordFilter(names=("g",))):
        with pytest.raises(StoreCorrupt, match="a record cannot be read"):
            list(record_filter.iter_matching(blocks))


@pytest.mark.parametrize(
    "record_filter",
    [
        RecordFilter(names=("f",)),
        RecordFilter(names=("f", "m*")),
        RecordFilter(codes=("f*",)),
        RecordFilter(targets=("f",)),
        RecordFilter(metrics=("f",)),
        RecordFilter(severities=("hint",)),
        RecordFilter(path="/src/f"),
        RecordFilter(kinds=("symbol",), path="/src/f"),
        RecordFilter(kinds=("edge",)),
        RecordFilter(kinds=("file",), languages=("f",)),
        RecordFilter(where="line > 3 and name == 'f'"),
    ],
)
def test_irrelevant_lines_are_not_decoded(record_filter: RecordFilter) -> None:
    no_json = b'{"kind":"file","path":"a","lang":"g"\n{"kind":"symbol","path":"a","name":"n","code":"c","metric":"m"\n'
    assert list(record_filter.iter_matching([no_json])) == []
