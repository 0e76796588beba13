"""Tests of indexes that `run` builds: only if configured, and only if something changed."""

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
        repeated = run(tree, tmp_path / "store")
        assert (repeated.batch.id, list_generations(repeated.store, repeated.batch.id)) == (first.batch.id, [1]), (
            "an unchanged tree got a new index"
        )
        (tree / "b.py").write_text("def h():\n    return 1\n", encoding="utf-8")
        second = run(tree, tmp_path / "store")
    assert verify_index(second.store, second.batch).damaged == 0
    record_filter = RecordFilter(names=("h",))
    assert [
        len(list(search_records(open_batch_query(result.store, result.batch.id), record_filter).result))
        for result in (first, second)
    ] == [0, 1]


def test_workers_provide_the_terms_of_an_index(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They provide terms for files that they process and for shards with reused results.

    Nothing is decoded for the index.
    """
    frame_lines(monkeypatch)
    monkeypatch.setattr("codebatch.index.build._decode_shard", lambda *_: pytest.fail("a shard is decoded"))
    with inline():
        run(tree, tmp_path / "store")
        (tree / "b.py").write_text("import a\n\n\ndef h():\n    return 1\n", encoding="utf-8")
        result = run(tree, tmp_path / "store")
    monkeypatch.undo()
    assert result.executed.reused > 0
    assert verify_index(result.store, result.batch).terms > 5


def test_unwritable_terms_fail_no_run(tree: Path, tmp_path: Path) -> None:
    with inline():
        (tmp_path / "store").mkdir()
        store = create_store(RealFiles(), tmp_path / "store")[0]
        (store.root / "indexes" / "terms").write_bytes(b"in the way")
        assert run(tree, tmp_path / "store").shortfall is None


def test_run_builds_no_index_by_default(tree: Path, tmp_path: Path) -> None:
    (tree / "codebatch.toml").unlink()
    with inline():
        result = run(tree, tmp_path / "store")
    assert [path.name for path in (result.store.root / "indexes").iterdir()] == []


_NAMES = ("f", "g", "Long", "x_1")


def _edit(tree: Path, generator: random.Random, files: int) -> None:
    """Add, change or delete files."""
    for _ in range(files):
        path = tree / f"{generator.choice('abcd')}{generator.randrange(40)}.py"
        if path.exists() and generator.random() < 0.3:
            path.unlink()
        else:
            class_name, method_name = generator.choices(_NAMES, k=2)
            imported = f"import {generator.choice('abcd')}{generator.randrange(40)}\n"
            path.write_text(
                f"{imported}\n\nclass {class_name}:\n    def {method_name}(self):\n        return {class_name}()\n",
                encoding="utf-8",
            )


def _questions(generator: random.Random) -> Iterator[RecordFilter]:
    for _ in range(6):
        name = generator.choice((*_NAMES, "nope")) + generator.choice(("", "*"))
        yield generator.choice(
            (
                RecordFilter(names=(name,)),
                RecordFilter(targets=(name,)),
                RecordFilter(codes=(generator.choice(("F401", "F*", "D", "D*", "nope")),)),
            )
        )


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_answers_with_incremental_indexes_match_answers_without(
    tree: Path, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each index reuses those before it. Sometimes the pipeline changes. Frames have few lines."""
    generator = random.Random(seed)
    monkeypatch.setattr("codebatch.protocol.record_frames.FRAME_BYTES", generator.choice((1, 200, 1000)))
    (tree / "codebatch.toml").write_text(
        '[index]\nbuild = "run"\n[shard]\nfiles_average = 4\nfiles_min = 2\nfiles_max = 8\n', encoding="utf-8"
    )
    _edit(tree, generator, 100)
    known = 0
    for _ in range(6):
        _edit(tree, generator, 1)
        with inline():
            result = run(tree, tmp_path / "store", pipeline=generator.choice(("full", "full", "full", "analyze")))
        directory = result.store.root / "indexes" / result.batch.id
        known += len(list(directory.glob("*/overlay-000000.*")))
        verify_index(result.store, result.batch)
        with_index = BatchRecords(result.store, result.batch, pytest.fail)
        without = BatchRecords(result.store, result.batch)
        for record_filter in _questions(generator):
            tasks = without.task_names
            assert [*with_index.iter_by_path(tasks, record_filter)] == [*without.iter_by_path(tasks, record_filter)]
    assert known > 0
