"""Tests of indexes that `run` builds: unless configured otherwise, and only if something changed."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from codebatch.errors import BatchRemoved, InvalidInput, StoreUnwritable
from codebatch.index.generations import list_generations
from codebatch.operations.queries.batch_query import open_batch_query
from codebatch.operations.queries.code_search import CodeSearch, find_code
from codebatch.operations.queries.records import search_records
from codebatch.operations.queries.references import find_references
from codebatch.operations.runs.indexing import verify_index
from codebatch.operations.runs.run_result import RunResult
from codebatch.query.fields import JsonRecord
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
    return tree


def test_run_builds_an_index(tree: Path, tmp_path: Path) -> None:
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


_NAMES_IN_FILES = ("aeiou", "größe", "shared", "only_wide", "only_latin", "in_cell", "$dollar", "empty?", "nope", "x")


def _note_files(read: list[int], _: int, files: int) -> None:
    read.append(files)


def _write_files_in_several_encodings(tree: Path) -> None:
    cell: dict[str, object] = {
        "cell_type": "code",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
        "source": "if 1:\n\tin_cell()\n",
    }
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    (tree / "book.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    (tree / "copy.json").write_text(json.dumps(notebook), encoding="utf-8")
    (tree / "wide.py").write_text("only_wide = shared = größe = 1\n", encoding="utf-16")
    (tree / "latin.py").write_text("# coding: latin-1\nonly_latin = größe = shared\n", encoding="latin-1")
    (tree / "money.js").write_text("const $dollar = aeiou, x$dollar = shared;\n", encoding="utf-8")
    (tree / "ruby.rb").write_text("def empty?\n  shared.empty?\nend\n", encoding="utf-8")
    (tree / "only.md").write_text("nope\n", encoding="utf-8")
    (tree / "data.bin").write_bytes(b"\0\1shared\xff x aeiou")
    for number in range(40):
        (tree / f"other{number}.py").write_text(f"def own{number}():\n    return shared\n", encoding="utf-8")


def _references(result: RunResult, name: str) -> tuple[list[JsonRecord], int]:
    """Return the references to a name, and the number of files that were read for them."""
    read = [0]
    question = open_batch_query(result.store, result.batch.id, note=pytest.fail)
    rows = find_references(question, name, progress=lambda _, files: read.append(files)).result
    return rows, read[-1]


def test_references_are_the_same_with_and_without_the_words_of_an_index(tree: Path, tmp_path: Path) -> None:
    _write_files_in_several_encodings(tree)
    with inline():
        result = run(tree, tmp_path / "store")
        with_index = {name: _references(result, name) for name in _NAMES_IN_FILES}
        shutil.rmtree(result.store.root / "indexes" / result.batch.id)
        without = {name: _references(result, name) for name in _NAMES_IN_FILES}
        assert {name: rows for name, (rows, _) in with_index.items()} == {
            name: rows for name, (rows, _) in without.items()
        }
        assert {name for name, (rows, _) in with_index.items() if not rows} == {"nope", "x"}
        assert {read for _, read in without.values()} == {50}
        assert [with_index[name][1] for name in ("only_wide", "only_latin", "in_cell", "nope")] == [1, 1, 1, 1]
        assert run(tree, tmp_path / "store").batch.id == result.batch.id, "a run of an unchanged tree"
    assert _references(result, "only_wide")[1] == 1, "which also builds a missing index"


def test_references_after_an_edit_are_found_through_a_small_segment(tree: Path, tmp_path: Path) -> None:
    _write_files_in_several_encodings(tree)
    with inline():
        run(tree, tmp_path / "store")
        (tree / "other7.py").write_text("def edited():\n    return shared\n", encoding="utf-8")
        (tree / "other8.py").unlink()
        result = run(tree, tmp_path / "store")
    assert [row["path"] for row in _references(result, "edited")[0]] == ["other7.py"]
    assert [_references(result, name)[1] for name in ("edited", "own9", "nope")] == [1, 1, 1]
    for name in ("own7", "own8"):
        with pytest.raises(InvalidInput, match="no name"):
            _references(result, name)
    verify_index(result.store, result.batch)
    segments = sorted((result.store.root / "indexes" / result.batch.id).glob("*/words-*"))
    assert len(segments) == 2
    assert segments[1].stat().st_size < 100


def test_find_reads_only_files_with_the_identifiers_of_a_pattern(tree: Path, tmp_path: Path) -> None:
    _write_files_in_several_encodings(tree)
    searches = [
        ("python", "only_wide = $A = $B = $C"),
        ("python", "in_cell()"),
        ("python", "$A = größe = $B"),
        ("python", "def own7(): $$$"),
        ("ruby", "$A.empty?"),
        ("javascript", "x$dollar"),
        ("python", "return nope"),
    ]

    def answers(result: RunResult) -> list[tuple[list[JsonRecord], int, int]]:
        found = []
        for language, pattern in searches:
            read: list[int] = [0]
            question = open_batch_query(result.store, result.batch.id, note=pytest.fail)
            code_search = CodeSearch(language=language, pattern=pattern)
            answer = find_code(question, code_search, partial(_note_files, read))
            found.append((answer.result, answer.completeness.planned, read[-1]))
        return found

    with inline():
        result = run(tree, tmp_path / "store")
    with_index = answers(result)
    shutil.rmtree(result.store.root / "indexes" / result.batch.id)
    without = answers(result)
    assert [(rows, planned) for rows, planned, _ in with_index] == [(rows, planned) for rows, planned, _ in without]
    assert [len(rows) for rows, _, _ in with_index] == [1, 1, 2, 1, 1, 1, 0]
    assert [read for _, _, read in with_index] == [1, 1, 2, 1, 1, 1, 0]


@pytest.mark.parametrize("error", [StoreUnwritable("the disk is full"), BatchRemoved("it was removed")])
def test_a_failed_build_is_noted_and_fails_no_run(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("codebatch.operations.runs.indexing.build_generation", fail)
    with inline():
        assert run(tree, tmp_path / "store").shortfall is None


def test_run_builds_no_index_if_configured(tree: Path, tmp_path: Path) -> None:
    (tree / "codebatch.toml").write_text('[index]\nbuild = "never"\n', encoding="utf-8")
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
