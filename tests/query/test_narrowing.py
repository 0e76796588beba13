"""Tests of queries with an index: equal answers as without, even if the index is damaged, and less is read."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codebatch.errors import StoreCorrupt
from codebatch.index.keys import TERMS_VERSION
from codebatch.index.read import open_index
from codebatch.model.record import Record
from codebatch.operations.project.stores import open_store
from codebatch.operations.runs.indexing import build_index
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.sources.narrowing import index_lookups
from codebatch.query.sources.records import BatchRecords
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.outputs import current_outputs
from tests.index.batches import (
    BASE,
    calls,
    cut_small,
    depends,
    diagnostic,
    frame_lines,
    make_saying,
    make_store,
    metric,
    symbol,
)
from tests.support.batches import FILE_TASKS

NAMES = ["f", "fg", "g", "Ä", "", "f*", "x" * 400, "x" * 401, "x" * 402]
CODES = ["E1", "E10", "E", "F\0error", "y" * 401]
TERMS = [*NAMES, *CODES, "*", "x*", "x" * 399 + "*", "E1*", "nope", "nope*", "\udcff"]
SYMBOLS = RecordFilter(names=("f",))

VALUES = [-7, 0, 1, 255, 256, 2**32 - 1, 2**32, 2**40]
LIMITS = [*VALUES, -0.5, 0.5, 255.5, 1e300, True]
METRICS = ["m", "m\0", "", "z" * 390, "z" * 396]
TARGETS = ["f", "a.f", "a->f", "f<g>", "f>g", "a/b.py", "a::Ä", "", "x" * 401, "y." + "x" * 402]
CONDITIONS = [
    *(f"name == {name!r} and line == 1" for name in (*NAMES, "nope")),
    *(f"code == {code!r}" for code in CODES),
    *(f"target == {target!r} and edge_type != 'imports'" for target in TARGETS),
    *(
        f"metric == {metric!r} and value {sign} {value!r}"
        for metric in METRICS
        for sign in (">", "==")
        for value in LIMITS
    ),
    *(f"value {sign} {value!r} and metric == 'm'" for sign in ("<", "<=", ">=", "!=") for value in LIMITS),
    *(f"(metric == {metric!r} and value > 0) and value <= {value!r}" for metric in METRICS for value in LIMITS),
    "value > 1 or metric == 'm'",
    "not name == 'f'",
    "1 < value < 300",
]

conditions = st.sampled_from(CONDITIONS).map(lambda condition: RecordFilter(where=condition))
targets = st.builds(
    lambda names, edge_type: RecordFilter(targets=tuple(names), where=f"edge_type == '{edge_type}'"),
    st.lists(st.sampled_from([*TARGETS, "f*", "g", "py", "b.py", "x" * 402]), min_size=1, max_size=2),
    st.sampled_from(["calls", "depends", "imports"]),
)
metrics = st.builds(
    lambda metrics, value: RecordFilter(metrics=tuple(metrics), where=f"value >= {value!r}"),
    st.lists(st.sampled_from(METRICS), min_size=1, max_size=2),
    st.sampled_from(LIMITS),
)

filters = st.builds(
    lambda names, codes, severities, kinds: RecordFilter(
        names=tuple(names), codes=tuple(codes), severities=tuple(severities), kinds=tuple(kinds)
    ),
    st.lists(st.sampled_from(TERMS), max_size=2),
    st.lists(st.sampled_from(TERMS), max_size=2),
    st.lists(st.sampled_from(["error", "hint"]), max_size=1),
    st.lists(st.sampled_from(["symbol", "diagnostic", "metric"]), max_size=1),
)


def _answer(records: BatchRecords, record_filter: RecordFilter) -> bytes:
    return msgspec.json.encode([[*records.iter_records(task, record_filter)] for task in records.task_names])


def _query_notes(store: StoreDir, batch: BatchDir, record_filter: RecordFilter = SYMBOLS) -> list[str]:
    """Return the notes of a query with the index, after checking its answer."""
    notes: list[str] = []
    assert _answer(BatchRecords(store, batch, notes.append), record_filter) == _answer(
        BatchRecords(store, batch), record_filter
    )
    return notes


@pytest.fixture(scope="module", params=[1, 700])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[StoreDir, list[BatchDir]]:
    """A store with four indexed batches that share shard files. The third and fourth have each other's index.

    All indexes are in many parts. A frame of a shard file has one line or some.
    """
    store = make_store(tmp_path_factory.mktemp("pair"))
    first = {task: [_some_records(f"{task}{item}") for item in range(7)] for task in FILE_TASKS}
    second = {**first, "symbols": [*first["symbols"][:3], *first["symbols"][5:], *first["symbols"][3:5]]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codebatch.protocol.record_frames.FRAME_BYTES", request.param)
        batches = [make_saying(store, 7, records, second=number) for number, records in enumerate((first, second) * 2)]
        cut_small(patch)
        for batch in batches:
            build_index(store, batch)
    indexes = store.root / "indexes"
    for new, old in (("other", batches[2].id), (batches[2].id, batches[3].id), (batches[3].id, "other")):
        (indexes / old).rename(indexes / new)
    return store, batches


def _some_records(seed: str) -> list[Record]:
    chance = random.Random(seed)
    every: list[Record] = [symbol(name) for name in NAMES]
    every += [diagnostic(code, severity) for code in CODES for severity in ("error", "hint")]
    every += [metric(name, value) for name in METRICS for value in VALUES]
    every += [edge(target) for target in TARGETS for edge in (calls, depends)]
    return chance.choices(every, k=chance.randrange(8))


@settings(deadline=None)  # each example opens four batches
@given(record_filter=filters | conditions | targets | metrics)
def test_answers_are_the_same_with_an_index(pair: tuple[StoreDir, list[BatchDir]], record_filter: RecordFilter) -> None:
    store, batches = pair
    assert [_query_notes(store, batch, record_filter) for batch in batches] == [[], [], [], []]


def _make_indexed_batch(tmp_path: Path, items: Sequence[Sequence[Record]]) -> tuple[StoreDir, BatchDir]:
    store = make_store(tmp_path)
    batch = make_saying(store, len(items), {"symbols": items})
    build_index(store, batch)
    return store, batch


def test_index_restricts_reading_to_matching_shards(tmp_path: Path) -> None:
    store, batch = _make_indexed_batch(tmp_path, [[symbol("f")], [], [], [symbol("g")], [], []])
    (other_shard,) = batch.root.glob("outputs/*/symbols/000001-*")
    other_shard.write_bytes(b"")
    assert b'"name":"f"' in _answer(BatchRecords(store, batch, pytest.fail), SYMBOLS)
    with pytest.raises(StoreCorrupt, match="it is truncated"):
        _answer(BatchRecords(store, batch), SYMBOLS)


def test_index_restricts_reading_to_matching_frames(tmp_path: Path) -> None:
    """The records of each item fill more than a frame. A frame of the first item is damaged."""
    many = [[symbol(f"{name}{number}") for number in range(600)] for name in "abc"]
    store, batch = _make_indexed_batch(tmp_path, many)
    (path,) = batch.root.glob("outputs/*/symbols/000000-*")
    records = BatchRecords(store, batch, pytest.fail)
    assert _answer(records, RecordFilter(names=("b599",))).count(b'"b599"') == 2, (
        "the name was not found twice, as name and as qualified name"
    )
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    assert _answer(records, RecordFilter(names=("c599",))).count(b'"c599"') == 2
    with pytest.raises(StoreCorrupt, match="damaged"):
        _answer(records, RecordFilter(names=("a0",)))


@pytest.mark.parametrize("name", [BASE, "index.json"])
def test_damaged_index_is_reported_once_and_not_used(tmp_path: Path, name: str) -> None:
    store, batch = _make_indexed_batch(tmp_path, [[symbol("f")], [], [symbol("f")]])
    path = store.root / "indexes" / batch.id / "1" / name
    data = path.read_bytes()
    for at in [*range(0, len(data), 40), None]:
        path.write_bytes(b"" if at is None else data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        (note,) = _query_notes(store, batch)
        assert note.startswith("reading all results, because the index cannot be used: ")
        assert "codebatch index build --rebuild" in note
    build_index(store, batch)
    assert _query_notes(store, batch) == []


def test_index_with_another_terms_version_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, batch = _make_indexed_batch(tmp_path, [[symbol("f")], [], [symbol("f")]])
    monkeypatch.setattr("codebatch.index.generations.TERMS_VERSION", TERMS_VERSION + 1)
    assert _query_notes(store, batch) == []


def test_link_in_place_of_an_index_is_reported(tmp_path: Path) -> None:
    store, batch = _make_indexed_batch(tmp_path, [[symbol("f")], [], [symbol("f")]])
    place = store.root / "indexes" / batch.id
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    (note,) = _query_notes(open_store(store.root), batch)
    assert note.startswith("reading all results, because the index cannot be used: ")
    assert "remove" not in note, "the note suggests to remove an index that is a link"


@pytest.mark.parametrize(
    "record_filter",
    [
        RecordFilter(kinds=("symbol",), severities=("error",), path="a"),
        RecordFilter(names=("*",)),
        RecordFilter(codes=("E1", "*")),
        RecordFilter(metrics=("m",)),
        RecordFilter(targets=("f",)),
        RecordFilter(targets=("f",), where="edge_type == 'depends'"),
        RecordFilter(targets=("f*",), where="edge_type == 'calls'"),
        RecordFilter(where="name == 'f' or name == 'g'"),
        RecordFilter(where="not name == 'f'"),
        RecordFilter(where="value > 3"),
        RecordFilter(where="("),
    ],
)
def test_filter_without_terms_uses_no_index(record_filter: RecordFilter) -> None:
    assert index_lookups(record_filter) == ()


@pytest.mark.parametrize(
    ("record_filter", "positions"),
    [
        (RecordFilter(where="name == 'f' and line == 1"), [0]),
        (RecordFilter(where="code == 'E1'"), [1]),
        (RecordFilter(targets=("f",), where="edge_type == 'calls'"), [2]),
        (RecordFilter(where="target == 'a/b.py' and edge_type == 'depends'"), [3]),
        (RecordFilter(metrics=("m",), where="value >= 9"), [5]),
        (RecordFilter(where="metric == 'm' and value <= 8"), [4]),
        (RecordFilter(where="metric == 'm' and value == 9"), [5]),
    ],
)
def test_filter_terms_narrow_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_filter: RecordFilter, positions: list[int]
) -> None:
    frame_lines(monkeypatch)
    records: list[list[Record]] = [
        [symbol("f")], [diagnostic("E1")], [calls("a.f")], [depends("a/b.py")], [metric("m", 8)], [metric("m", 9)],
    ]  # fmt: skip
    store, batch = _make_indexed_batch(tmp_path, records)
    index, outputs = open_index(store, batch.id), current_outputs(batch)
    assert index is not None
    assert outputs is not None
    symbols = outputs.manifest.task_output("symbols")
    assert symbols is not None
    narrowed = index.narrow_frames(symbols, index_lookups(record_filter))
    assert [3 * shard + frame for shard, frames in enumerate(narrowed) for frame in frames or ()] == positions
    assert len(list(BatchRecords(store, batch, pytest.fail).iter_records("symbols", record_filter))) == 1
