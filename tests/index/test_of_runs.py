"""`run` makes the index where it is told to, and only when there is something new."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from codebatch.index.generations import list_generations
from codebatch.operations.queries.batch_query import open_batch_query
from codebatch.operations.queries.records import search_records
from codebatch.operations.runs.indexing import verify_index
from codebatch.query.filters.filters import RecordFilter
from codebatch.query.sources.records import BatchRecords
from codebatch.store.batches.store_directory import create_store
from codebatch.system.files.files import RealFiles
from tests.support.inline_workers import inline, run

from .batches import frame_lines

pytestmark = pytest.mark.slow


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.py").write_text("def f():\n    return g()\n", encoding="utf-8")
    (tree / "b.py").write_text("def g():\n    return 1\n", encoding="utf-8")
    (tree / "codebatch.toml").write_text('[index]\nbuild = "run"\n', encoding="utf-8")
    return tree


def test_run_builds_an_index_if_configured(tree: Path, tmp_path: Path) -> None:
    with inline():
        first = run(tree, tmp_path / "store")
        assert verify_index(first.store, first.batch).terms > 5
        again = run(tree, tmp_path / "store")
        assert (again.batch.id, list_generations(again.store, again.batch.id)) == (first.batch.id, [1]), (
            "nothing is new"
        )
        (tree / "b.py").write_text("def h():\n    return 1\n", encoding="utf-8")
        second = run(tree, tmp_path / "store")
    assert verify_index(second.store, second.batch).damaged == 0
    asked = RecordFilter(names=("h",))
    assert [
        len(list(search_records(open_batch_query(each.store, each.batch.id), asked).result)) for each in (first, second)
    ] == [0, 1]


def test_workers_provide_the_terms_of_an_index(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of files that they work on, and of those besides of which results are taken over; nothing is decoded for it."""
    frame_lines(monkeypatch)
    monkeypatch.setattr("codebatch.index.build._decode_shard", lambda *_: pytest.fail("a shard is decoded"))
    with inline():
        run(tree, tmp_path / "store")
        (tree / "b.py").write_text("import a\n\n\ndef h():\n    return 1\n", encoding="utf-8")
        ran = run(tree, tmp_path / "store")
    monkeypatch.undo()
    assert ran.executed.reused > 0
    assert verify_index(ran.store, ran.batch).terms > 5


def test_unwritable_terms_fail_no_run(tree: Path, tmp_path: Path) -> None:
    with inline():
        (tmp_path / "store").mkdir()
        store = create_store(RealFiles(), tmp_path / "store")[0]
        (store.root / "indexes" / "terms").write_bytes(b"in the way")
        assert run(tree, tmp_path / "store").shortfall is None


def test_run_builds_no_index_by_default(tree: Path, tmp_path: Path) -> None:
    (tree / "codebatch.toml").unlink()
    with inline():
        ran = run(tree, tmp_path / "store")
    assert [path.name for path in (ran.store.root / "indexes").iterdir()] == []


_NAMES = ("f", "g", "Long", "x_1")


def _edit(tree: Path, chance: random.Random, files: int) -> None:
    """So many files are added, changed or deleted."""
    for _ in range(files):
        path = tree / f"{chance.choice('abcd')}{chance.randrange(40)}.py"
        if path.exists() and chance.random() < 0.3:
            path.unlink()
        else:
            one, other = chance.choices(_NAMES, k=2)
            imported = f"import {chance.choice('abcd')}{chance.randrange(40)}\n"
            path.write_text(
                f"{imported}\n\nclass {one}:\n    def {other}(self):\n        return {one}()\n", encoding="utf-8"
            )


def _questions(chance: random.Random) -> Iterator[RecordFilter]:
    for _ in range(6):
        name = chance.choice((*_NAMES, "nope")) + chance.choice(("", "*"))
        yield chance.choice(
            (
                RecordFilter(names=(name,)),
                RecordFilter(targets=(name,)),
                RecordFilter(codes=(chance.choice(("F401", "F*", "D", "D*", "nope")),)),
            )
        )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_answers_with_incremental_indexes_match_answers_without(
    tree: Path, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each stands on those before it; now and then the pipeline is another one. Frames are of few lines."""
    chance = random.Random(seed)
    monkeypatch.setattr("codebatch.protocol.record_frames.FRAME_BYTES", chance.choice((1, 200, 1000)))
    (tree / "codebatch.toml").write_text(
        '[index]\nbuild = "run"\n[shard]\nfiles_average = 4\nfiles_min = 2\nfiles_max = 8\n', encoding="utf-8"
    )
    _edit(tree, chance, 100)
    known = 0
    for _ in range(6):
        _edit(tree, chance, 1)
        with inline():
            ran = run(tree, tmp_path / "store", pipeline=chance.choice(("full", "full", "full", "analyze")))
        directory = ran.store.root / "indexes" / ran.batch.id
        known += len(list(directory.glob("*/overlay-000000.*")))
        verify_index(ran.store, ran.batch)
        with_index = BatchRecords(ran.store, ran.batch, pytest.fail)
        without = BatchRecords(ran.store, ran.batch)
        for asked in _questions(chance):
            tasks = without.task_names
            assert [*with_index.iter_by_path(tasks, asked)] == [*without.iter_by_path(tasks, asked)]
    assert known > 0
