"""Tests of the headline cache: the headline is computed again only if one of its inputs changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.model.digest import digest_bytes
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.operations.runs import headline_cache
from codebatch.operations.runs.headline import Headline
from codebatch.operations.runs.headline_cache import find_headline
from codebatch.store import layout
from codebatch.store.results.outputs import current_outputs
from tests.index.batches import make_saying, make_store


def test_headline_is_computed_once_per_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    headlines: list[Headline] = []

    def make(_question: BatchQuery) -> Headline:
        headlines.append(Headline(partially_parsed=len(headlines)))
        return headlines[-1]

    monkeypatch.setattr(headline_cache, "make_headline", make)
    store = make_store(tmp_path)
    batches = [make_saying(store, 3, {}), make_saying(store, 3, {}, second=1)]

    def ask(number: int = 0, commit: str = "none") -> int:
        question = BatchQuery(store, batches[number], is_named=True, note=pytest.fail)
        vars(question)["newest_commit"] = commit
        outputs = current_outputs(batches[number])
        assert outputs is not None
        return find_headline(question, outputs).partially_parsed

    assert [ask(), ask(), ask(1), ask(), ask(1)] == [0, 0, 1, 0, 1]
    assert [ask(commit="a"), ask(commit="a"), ask(commit="b")] == [2, 2, 3]
    monkeypatch.setattr(headline_cache, "package_digest", lambda package: package)
    assert [ask(), ask()] == [4, 4]
    cached = store.root / layout.CACHE / layout.headline_cache_name(digest_bytes(batches[0].id.encode()))
    sound = cached.read_bytes()
    for damaged in (sound[:-1], sound[:-1] + b"?", b"", sound[:12]):
        cached.write_bytes(damaged)
        assert ask() == len(headlines) - 1


def test_headline_with_pending_history_is_not_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    headlines = [
        Headline(history_note="the next question reads more"),
        Headline(partially_parsed=1),
        Headline(partially_parsed=2),
    ]
    monkeypatch.setattr(headline_cache, "make_headline", lambda _: headlines.pop(0))
    store = make_store(tmp_path)
    batch = make_saying(store, 3, {})
    outputs = current_outputs(batch)
    assert outputs is not None
    questions = [BatchQuery(store, batch, is_named=True, note=pytest.fail) for _ in range(3)]
    assert [find_headline(question, outputs).partially_parsed for question in questions] == [0, 1, 1]
