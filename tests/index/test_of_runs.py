"""`run` makes the index where it is told to, and only when there is something new."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.application.asking import ask
from codebatch.application.indexing import verify_index
from codebatch.application.questions import search
from codebatch.index.read import generations
from codebatch.query.filters import RecordFilter
from codebatch.store.store import create_store
from codebatch.system.files import RealFiles
from tests.application.inline import inline, run

pytestmark = pytest.mark.slow


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.py").write_text("def f():\n    return g()\n", encoding="utf-8")
    (tree / "b.py").write_text("def g():\n    return 1\n", encoding="utf-8")
    (tree / "codebatch.toml").write_text('[index]\nbuild = "run"\n', encoding="utf-8")
    return tree


def test_a_run_is_indexed_where_that_is_configured(tree: Path, tmp_path: Path) -> None:
    with inline():
        first = run(tree, tmp_path / "store")
        assert verify_index(first.store, first.batch).terms > 5
        again = run(tree, tmp_path / "store")
        assert (again.batch.id, generations(again.store, again.batch.id)) == (first.batch.id, [1]), "nothing is new"
        (tree / "b.py").write_text("def h():\n    return 1\n", encoding="utf-8")
        second = run(tree, tmp_path / "store")
    assert verify_index(second.store, second.batch).damaged == 0
    asked = RecordFilter(names=("h",))
    assert [len(search(ask(each.store, each.batch.id), asked).found) for each in (first, second)] == [0, 1]


def test_workers_say_what_is_posted(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of files that they work on, and of those besides of which results are taken over; nothing is decoded for it."""
    monkeypatch.setattr("codebatch.index.build._decode_shard", lambda *_: pytest.fail("a shard is decoded"))
    with inline():
        run(tree, tmp_path / "store")
        (tree / "b.py").write_text("import a\n\n\ndef h():\n    return 1\n", encoding="utf-8")
        ran = run(tree, tmp_path / "store")
    monkeypatch.undo()
    assert ran.executed.served > 0
    assert verify_index(ran.store, ran.batch).terms > 5


def test_terms_that_cannot_be_written_fail_no_run(tree: Path, tmp_path: Path) -> None:
    with inline():
        (tmp_path / "store").mkdir()
        store = create_store(RealFiles(), tmp_path / "store")[0]
        (store.root / "indexes" / "terms").write_bytes(b"in the way")
        assert run(tree, tmp_path / "store").shortfall is None


def test_a_run_makes_no_index_unasked(tree: Path, tmp_path: Path) -> None:
    (tree / "codebatch.toml").unlink()
    with inline():
        ran = run(tree, tmp_path / "store")
    assert [path.name for path in (ran.store.root / "indexes").iterdir()] == []
