"""Answers have the same bytes with an index and without, however sound it is; and less is read for them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.application.indexing import build_index
from codebatch.application.stores import open_store
from codebatch.errors import StoreCorrupt
from codebatch.model.record import Record
from codebatch.query.filters import RecordFilter
from codebatch.query.narrowing import lookups_of
from codebatch.query.records import BatchRecords
from codebatch.store.batches import Batch
from codebatch.store.store import Store
from tests.index.batches import calls, diagnostic, make_saying, make_store, metric, symbol
from tests.proof.plans import FILE_TASKS

NAMES = ["f", "fg", "g", "Ä", "", "f*", "x" * 400, "x" * 401, "x" * 402]
CODES = ["E1", "E10", "E", "F\0error", "y" * 401]
ASKED = [*NAMES, *CODES, "*", "x*", "x" * 399 + "*", "E1*", "nope", "nope*", "\udcff"]
SYMBOLS = RecordFilter(names=("f",))

filters = st.builds(
    lambda names, codes, severities, kinds: RecordFilter(
        names=tuple(names), codes=tuple(codes), severities=tuple(severities), kinds=tuple(kinds)
    ),
    st.lists(st.sampled_from(ASKED), max_size=2),
    st.lists(st.sampled_from(ASKED), max_size=2),
    st.lists(st.sampled_from(["error", "hint"]), max_size=1),
    st.lists(st.sampled_from(["symbol", "diagnostic", "metric"]), max_size=1),
)


def _answer(records: BatchRecords, asked: RecordFilter) -> bytes:
    return msgspec.json.encode([[*records.iter_records(task, asked)] for task in records.task_names])


def _notes(store: Store, batch: Batch, asked: RecordFilter = SYMBOLS) -> list[str]:
    """What is said beside an answer, which is right."""
    notes: list[str] = []
    assert _answer(BatchRecords(store, batch, notes.append), asked) == _answer(BatchRecords(store, batch), asked)
    return notes


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, list[Batch]]:
    """Two batches with an index each, that have a shard file in common; and two whose indexes know the other's."""
    store = make_store(tmp_path_factory.mktemp("pair"))
    first = {task: [_some_records(f"{task}{item}") for item in range(7)] for task in FILE_TASKS}
    second = {**first, "symbols": [*first["symbols"][:3], *first["symbols"][5:], *first["symbols"][3:5]]}
    batches = [make_saying(store, 7, said, second=number) for number, said in enumerate((first, second) * 2)]
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
    return chance.choices([*every, calls("f"), metric("f", 1)], k=chance.randrange(4))


@given(asked=filters)
def test_answers_are_the_same_with_an_index(pair: tuple[Store, list[Batch]], asked: RecordFilter) -> None:
    store, batches = pair
    assert [_notes(store, batch, asked) for batch in batches] == [[], [], [], []]


def _made(tmp_path: Path, items: Sequence[Sequence[Record]]) -> tuple[Store, Batch]:
    store = make_store(tmp_path)
    batch = make_saying(store, len(items), {"symbols": items})
    build_index(store, batch)
    return store, batch


def test_only_shards_that_hold_it_are_read(tmp_path: Path) -> None:
    store, batch = _made(tmp_path, [[symbol("f")], [], [], [symbol("g")], [], []])
    (other,) = batch.root.glob("outputs/*/symbols/000001-*")
    other.write_bytes(b"")
    assert b'"name":"f"' in _answer(BatchRecords(store, batch, pytest.fail), SYMBOLS)
    with pytest.raises(StoreCorrupt, match="it is cut"):
        _answer(BatchRecords(store, batch), SYMBOLS)


def test_only_frames_that_hold_it_are_read(tmp_path: Path) -> None:
    """Some hundred records an item fill more than a frame each; of the three, the middle one's frames are damaged."""
    many = [[symbol(f"{name}{number}") for number in range(600)] for name in "abc"]
    store, batch = _made(tmp_path, many)
    (path,) = batch.root.glob("outputs/*/symbols/000000-*")
    records = BatchRecords(store, batch, pytest.fail)
    assert _answer(records, RecordFilter(names=("b599",))).count(b'"b599"') == 2, "name and qualified name"
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    assert _answer(records, RecordFilter(names=("c599",))).count(b'"c599"') == 2
    with pytest.raises(StoreCorrupt, match="damaged"):
        _answer(records, RecordFilter(names=("a0",)))


@pytest.mark.parametrize("name", ["base.lmdb", "index.json"])
def test_an_index_that_is_damaged_is_told_of_once_and_all_is_read(tmp_path: Path, name: str) -> None:
    store, batch = _made(tmp_path, [[symbol("f")], [], [symbol("f")]])
    path = store.root / "indexes" / batch.id / "1" / name
    data = path.read_bytes()
    for at in [*range(0, len(data), 1000), None]:
        path.write_bytes(b"" if at is None else data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        (note,) = _notes(store, batch)
        assert note.startswith("all is read, for the index cannot be used: ")
        assert "codebatch index-build --rebuild" in note
    build_index(store, batch)
    assert _notes(store, batch) == []


def test_an_index_of_other_terms_is_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, batch = _made(tmp_path, [[symbol("f")], [], [symbol("f")]])
    monkeypatch.setattr("codebatch.index.generations.TERMS_VERSION", 2)
    assert _notes(store, batch) == []


def test_something_else_in_the_place_of_an_index_is_told(tmp_path: Path) -> None:
    store, batch = _made(tmp_path, [[symbol("f")], [], [symbol("f")]])
    place = store.root / "indexes" / batch.id
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    (note,) = _notes(open_store(store.root), batch)
    assert note.startswith("all is read, for the index cannot be used: ")
    assert "remove" not in note, "the store is none the worse for it"


def test_a_filter_without_names_and_codes_asks_no_index() -> None:
    assert lookups_of(RecordFilter(kinds=("symbol",), severities=("error",), path="a")) == ()
