"""Tests of readers, which hold no lock: their answers if a batch is removed or moved at any moment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.errors import BatchRemoved, StoreCorrupt, UnknownId
from codebatch.model.digest import digest_bytes
from codebatch.operations.queries.batch_query import BatchQuery, open_batch_query
from codebatch.operations.queries.batches import list_batches, read_batch_status, shard_states
from codebatch.operations.queries.records import list_files, search_records, summarise
from codebatch.operations.queries.references import find_references
from codebatch.query.filters.filters import RecordFilter
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir, open_store
from codebatch.system.files.files import RealFiles
from codebatch.system.files.system_calls import RealCalls
from tests.support import stores as support
from tests.support.batches import make_batch
from tests.support.calls import Fate, Operation, WatchedCalls
from tests.support.stores import make_merged

PATHS = [b"a.py", b"b.py"]

QUESTIONS: dict[str, Callable[[BatchQuery], object]] = {
    "search": lambda question: list(search_records(question, RecordFilter(kinds=("metric",))).result),
    "summarise": lambda question: summarise(question).result,
    "list_files": lambda question: list_files(question).result,
    "references": lambda question: find_references(question, "a").result,
    "status": lambda question: read_batch_status(question.store, question.batch).tasks,
    "shards": lambda question: list(shard_states(question.store, question.batch, "parse")),
}


def ask_while(root: Path, question: str, at: int, act: Callable[[], object]) -> tuple[object, bool]:
    """Run a query and an action before its call number `at`. Return the answer, and whether that call was reached."""
    calls = 0

    def watch(_: Operation) -> Fate | None:
        nonlocal calls
        calls += 1
        if calls == at:
            act()
        return None

    store = open_store(RealFiles(WatchedCalls(RealCalls(), watch)), root)
    try:
        return QUESTIONS[question](open_batch_query(store)), calls >= at
    except UnknownId as error:
        return error, calls >= at


def _make_unmerged(store: StoreDir) -> BatchDir:
    batch = make_batch(store, PATHS, shard_items=2)
    support.work(store, batch)
    return batch


def _make_merged(store: StoreDir) -> BatchDir:
    return make_merged(store, PATHS)


@pytest.mark.parametrize("make", [_make_merged, _make_unmerged])
@pytest.mark.parametrize("question", QUESTIONS)
def test_query_of_a_batch_collected_meanwhile_answers_or_reports_unknown(
    store: StoreDir, question: str, make: Callable[[StoreDir], BatchDir]
) -> None:
    batch = make(store)
    whole = QUESTIONS[question](open_batch_query(store))
    hidden = store.root / "hidden"
    error_types = set()
    for at in range(1, 1000):
        answer, is_reached = ask_while(store.root, question, at, lambda: batch.root.rename(hidden))
        if not is_reached:
            break
        hidden.rename(batch.root)
        assert isinstance(answer, UnknownId) or answer == whole
        error_types.add(type(answer) if isinstance(answer, UnknownId) else None)
    assert BatchRemoved in error_types


@pytest.mark.parametrize("question", ["search", "references"])
def test_repacking_during_a_query_changes_no_answer(store: StoreDir, question: str) -> None:
    _make_merged(store)
    whole = QUESTIONS[question](open_batch_query(store))
    objects = store.objects()
    ((name, content, _),) = objects.iter_packs()
    pack, index = ((store.root / "objects" / f"{name}{suffix}").read_bytes() for suffix in (".pack", ".idx"))

    frames = [pack[content.offsets[row] :][: content.lengths[row]] for row in range(len(content))]
    reordered = b"".join(frames[::-1] if b"".join(frames) == pack else frames)

    def gather() -> None:
        """Replace the pack by another pack with the same objects."""
        (store.root / "objects" / f"{digest_bytes(reordered)}.pack").write_bytes(reordered)
        (store.root / "objects" / f"{name}.pack").unlink()
        (store.root / "objects" / f"{name}.idx").unlink()

    for at in range(1, 1000):
        answer, is_reached = ask_while(store.root, question, at, gather)
        assert not [*(store.root / "objects").glob("*.bad")]
        for path in (store.root / "objects").iterdir():
            path.unlink()
        (store.root / "objects" / f"{name}.pack").write_bytes(pack)
        (store.root / "objects" / f"{name}.idx").write_bytes(index)
        assert answer == whole
        if not is_reached:
            return


def test_batch_list_omits_a_batch_that_is_removed_meanwhile(store: StoreDir) -> None:
    batch = _make_unmerged(store)
    hidden = store.root / "hidden"
    reached = True
    at = 1
    while reached:
        calls = 0

        def watch(_: Operation, at: int = at) -> Fate | None:
            nonlocal calls
            calls += 1
            if calls == at:
                batch.root.rename(hidden)
            return None

        watched = open_store(RealFiles(WatchedCalls(RealCalls(), watch)), store.root)
        assert [entry.state for entry in list_batches(watched)] in ([], ["COMPLETED"])
        reached = calls >= at
        if hidden.exists():
            hidden.rename(batch.root)
        at += 1


def test_missing_file_of_an_existing_batch_is_damage(store: StoreDir) -> None:
    batch = _make_merged(store)
    for path in batch.root.glob("outputs/*/parse/*.jsonl.zst"):
        path.unlink()
    with pytest.raises(StoreCorrupt, match="is missing"):
        QUESTIONS["search"](open_batch_query(store))
