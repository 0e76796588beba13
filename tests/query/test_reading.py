"""Tests of the counters of a query: they count what was read."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from codebatch.model.record import Record
from codebatch.operations.runs.indexing import build_index
from codebatch.query.answers.counting import count_records
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.sources.read_counters import ReadCounters
from codebatch.query.sources.records import BatchRecords
from tests.index.batches import diagnostic, make_saying, make_store, symbol

SYMBOL_BYTES = len(msgspec.json.encode(symbol("f"))) + 1
TASKS = ("symbols",)
RECORDS: list[list[Record]] = [
    [symbol("f")],
    [symbol("g")],
    [diagnostic("c")],
    [symbol("g")],
    [],
    [],
    [diagnostic("c")],
    [],
    [],
]
"""The records of three shards. The last one has no symbol."""


@pytest.fixture
def records(tmp_path: Path) -> BatchRecords:
    store = make_store(tmp_path)
    batch = make_saying(store, len(RECORDS), {"symbols": RECORDS})
    build_index(store, batch)
    return BatchRecords(store, batch, pytest.fail)


def test_reading_counts_shards_and_frames_that_the_index_omits(records: BatchRecords) -> None:
    assert len(list(records.iter_records("symbols", RecordFilter(names=("f",))))) == 1
    assert records.reading == ReadCounters(
        shards=3, answered_from_counts=1, shards_read=1, shards_read_in_part=1, matched=1
    )
    assert records.reading.excluded_by_index == 1


def test_reading_counts_whole_shards_without_an_index(records: BatchRecords) -> None:
    assert len(list(records.iter_by_path(TASKS, RecordFilter(kinds=("symbol",))))) == 3
    assert records.reading == ReadCounters(shards=3, answered_from_counts=1, shards_read=2, matched=3)
    read = records.source.frames_read
    assert read.frames == 2
    first_length = len(records.source.item_lines("symbols", 0) or b"")
    assert (read.frames, first_length) == (3, SYMBOL_BYTES)
    assert read.record_bytes > 4 * SYMBOL_BYTES, "an item was read without the rest of its frame"


def test_grouped_counts_read_only_undetermined_shards(records: BatchRecords) -> None:
    assert count_records(records, TASKS, RecordFilter(codes=("c",)), "code").total == 2
    assert records.reading == ReadCounters(shards=3, answered_from_counts=3, matched=2)
    assert count_records(records, TASKS, RecordFilter(codes=("c",)), "line").total == 2
    assert records.reading.shards_read == 2


def test_reading_of_a_single_item_is_counted(records: BatchRecords) -> None:
    assert records.item_records("symbols", 0)
    assert records.reading == ReadCounters(shards=1, shards_read=1, shards_read_in_part=1)
