"""Tests of incremental indexes: an index reuses the base of an older one, and its overlay has the differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from codebatch.errors import CorruptFile
from codebatch.index import keys
from codebatch.index.build import decode_shard_terms, merge_terms, publish_index
from codebatch.model.record import Record
from codebatch.operations.runs.collection import collect_garbage
from codebatch.operations.runs.indexing import IndexAnswer, build_index, verify_index
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.outputs import current_outputs

from .batches import (
    BASE,
    OVERLAY,
    SHARD_ITEMS,
    cut_small,
    diagnostic,
    frame_lines,
    make_saying,
    make_store,
    opened,
    spoilt,
    symbol,
)

ITEMS = 20 * SHARD_ITEMS

Symbols = dict[int, str]
"""The new name of the symbol of each changed item."""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoreDir:
    """A store whose shard files have a frame for each record."""
    frame_lines(monkeypatch)
    return make_store(tmp_path)


@pytest.fixture(params=["one part", "a part a key"])
def is_cut_small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    is_cut_small: bool = request.param == "a part a key"
    if is_cut_small:
        cut_small(monkeypatch)
    return is_cut_small


def _make(
    store: StoreDir, second: int, changed: Symbols, bases: Sequence[BatchDir] = (), *, lints: bool = True
) -> BatchDir:
    """Make a batch of 20 shards with records of symbols and lint."""
    records: Mapping[str, Sequence[Sequence[Record]]] = {
        "symbols": [[symbol(changed.get(item, f"s{item}"))] for item in range(ITEMS)],
        "lint": [[diagnostic(f"E{item}")] if lints else [] for item in range(ITEMS)],
    }
    return make_saying(store, ITEMS, records, second=second, bases=tuple(base.id for base in bases))


def _directory(store: StoreDir, batch: BatchDir) -> Path:
    (directory,) = (store.root / "indexes" / batch.id).iterdir()
    return directory


def _base(store: StoreDir, batch: BatchDir) -> int:
    """Return the inode of the base of the index."""
    return (_directory(store, batch) / BASE).stat().st_ino


def _has_overlay(store: StoreDir, batch: BatchDir) -> bool:
    return (_directory(store, batch) / OVERLAY).exists()


def _find_frames(store: StoreDir, batch: BatchDir, name: str) -> list[Sequence[int] | None]:
    outputs = current_outputs(batch)
    assert outputs is not None
    task = outputs.manifest.task_output("symbols")
    assert task is not None
    return opened(store, batch).narrow_frames(task, [keys.make_lookup(keys.SYMBOL_TAG, name)])


@pytest.mark.usefixtures("is_cut_small")
def test_changes_since_the_base_go_into_an_overlay(store: StoreDir) -> None:
    """The overlay of each of several successive edits contains every change exactly once."""
    first = _make(store, 0, {})
    assert build_index(store, first).reused == 0
    before, changed = first, Symbols()
    for number in range(4):
        changed = {**changed, 6 * number: "new"}
        batch = _make(store, number + 1, changed, [before])
        answer = build_index(store, batch)
        counts = (answer.shard_files, answer.reused, answer.postings, answer.decoded)
        assert counts == (40, 39 - number, SHARD_ITEMS * (number + 1), 1)
        assert (_base(store, batch), _has_overlay(store, batch)) == (_base(store, first), True)
        assert verify_index(store, batch).shard_files == 40
        at_first = [[0] if shard in range(0, 2 * number + 1, 2) else [] for shard in range(20)]
        assert _find_frames(store, batch, "new") == at_first
        assert not any(_find_frames(store, batch, "s0")), "a replaced posting was returned"
        assert _find_frames(store, batch, "s1") == [[1], *[[]] * 19]
        before = batch


def test_many_changes_produce_a_new_base(store: StoreDir) -> None:
    """The changes are one shard file more than a tenth of 40."""
    first = _make(store, 0, {})
    build_index(store, first)
    batch = _make(store, 1, {SHARD_ITEMS * shard: "new" for shard in range(5)}, [first])
    assert build_index(store, batch).reused == 0
    assert (_base(store, batch) == _base(store, first), _has_overlay(store, batch)) == (False, False)


def test_many_dead_postings_produce_a_new_base(store: StoreDir) -> None:
    first = _make(store, 0, {})
    build_index(store, first)
    batch = _make(store, 1, {}, [first], lints=False)
    answer = build_index(store, batch)
    assert (answer.shard_files, answer.reused, answer.decoded) == (20, 0, 0)


def test_unchanged_batch_has_no_overlay(store: StoreDir) -> None:
    first = _make(store, 0, {})
    build_index(store, first)
    second = _make(store, 1, {}, [first])
    answer = build_index(store, second)
    assert (answer.reused, answer.bytes, _has_overlay(store, second)) == (40, 0, False)
    assert _base(store, second) == _base(store, first)
    assert build_index(store, second).reused == 40, "the index does not reuse its own base"
    assert build_index(store, second, rebuilds=True).reused == 0
    assert verify_index(store, second).terms == 2 * ITEMS


def test_index_reuses_the_nearest_base(store: StoreDir) -> None:
    first = _make(store, 0, {})
    build_index(store, first)
    changed_batch = _make(store, 1, dict.fromkeys(range(ITEMS), "new"))
    build_index(store, changed_batch)
    without = _make(store, 2, {})
    batch = _make(store, 3, {0: "new"}, [without, changed_batch, first])
    assert build_index(store, batch).reused == 39
    assert _base(store, batch) == _base(store, first)


@pytest.mark.parametrize("name", [BASE, "index.json"])
@pytest.mark.parametrize("is_cut", [False, True])
def test_index_never_reuses_a_damaged_base(store: StoreDir, name: str, is_cut: bool) -> None:
    """Batches that share the damaged base report it. The next index gets a new base."""
    first = _make(store, 0, {})
    build_index(store, first)
    second = _make(store, 1, {0: "new"}, [first])
    build_index(store, second)
    path = _directory(store, first) / name
    data = path.read_bytes()
    path.write_bytes(data[:-1] if is_cut else data[:500] + bytes([data[500] ^ 1]) + data[501:])
    for batch in (first, second)[: 2 if name == BASE else 1]:
        with pytest.raises(CorruptFile, match="is damaged"):
            _find_frames(store, batch, "s*")
    third = _make(store, 2, {0: "new"}, [first])
    answers: list[IndexAnswer] = [build_index(store, batch) for batch in (third, first)]
    assert [answer.reused for answer in answers] == [0, 0]
    assert verify_index(store, first).postings == verify_index(store, third).postings == 2 * ITEMS


@pytest.mark.parametrize("name", ["base", "overlay"])
def test_flipped_byte_in_any_part_is_detected(store: StoreDir, name: str, is_cut_small: bool) -> None:
    first = _make(store, 0, {})
    build_index(store, first)
    batch = _make(store, 1, {0: "new"}, [first])
    build_index(store, batch)
    paths = sorted(_directory(store, batch).glob(f"{name}-*"))
    assert len(paths) == ({"base": 2 * ITEMS, "overlay": SHARD_ITEMS}[name] if is_cut_small else 1)
    for path in paths[:: max(len(paths) // 3, 1)]:
        sound = path.read_bytes()
        for data in spoilt(sound):
            path.write_bytes(data)
            with pytest.raises(CorruptFile, match=f"{path.name} is damaged"):
                opened(store, batch).check()
            with pytest.raises(CorruptFile, match=f"{path.name} is damaged"):
                opened(store, batch).read_postings()
        path.unlink()
        with pytest.raises(CorruptFile, match="lacks a file"):
            opened(store, batch).check()
        path.write_bytes(sound)
    opened(store, batch).check()


def test_base_outlives_the_batch_that_created_it(store: StoreDir) -> None:
    first = _make(store, 0, {})
    build_index(store, first)
    batch = _make(store, 1, {0: "new"}, [first])
    build_index(store, batch)
    collect_garbage(store, keep=1)
    assert not (store.root / "indexes" / first.id).exists()
    assert verify_index(store, batch).shard_files == 40


def test_posting_without_a_slot_is_damage(store: StoreDir) -> None:
    batch = _make(store, 0, {})
    outputs = current_outputs(batch)
    assert outputs is not None
    contents = merge_terms(decode_shard_terms(store, outputs, pytest.fail)[0].items())
    publish_index(store, batch.id, contents._replace(slots=contents.slots[:1]), None)
    with pytest.raises(CorruptFile, match="a slot that does not exist"):
        _find_frames(store, batch, "s*")
    with pytest.raises(CorruptFile, match="a slot that does not exist"):
        verify_index(store, batch)


def test_base_removed_during_a_build_is_not_reused(store: StoreDir) -> None:
    """Another process meanwhile builds a newer index of the same batch, which removes the older one."""
    batch = _make(store, 0, {})
    (path,) = (path for path in batch.root.glob("outputs/*/symbols/000000-*"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    build_index(store, batch)
    other_answers: list[IndexAnswer] = []

    def make_another(_: str) -> None:
        if not other_answers:
            other_answers.append(build_index(store, batch))

    answer = build_index(store, batch, note=make_another)
    path.write_bytes(whole)
    assert (len(other_answers), answer.reused, answer.shard_files) == (1, 0, 39)
    assert _find_frames(store, batch, "s4") == [None, [1], *[[]] * 18]
