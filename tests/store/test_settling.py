"""Tests of settled batches: they answer as before, and without their outputs they are damaged, not pending."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from codebatch.errors import StoreCorrupt
from codebatch.operations import ignore_note
from codebatch.operations.queries.batch_query import open_batch_query
from codebatch.operations.queries.batches import list_batches
from codebatch.query.status.batch_status import read_current_state
from codebatch.scheduling.lifecycle import BatchState
from codebatch.store.batches.batch_directory import BatchDir, open_batch
from codebatch.store.batches.store_directory import StoreDir, create_store, open_store
from codebatch.store.maintenance.collection import execute_collection, plan_collection
from codebatch.store.results.adoption import adopt_batch
from codebatch.store.results.compaction import read_compacted
from codebatch.store.results.outputs import current_outputs
from codebatch.system.files.files import RealFiles
from tests.store.test_readers import QUESTIONS, ask_while
from tests.support import stores as support
from tests.support.batches import make_batch
from tests.support.calls import Fate, Operation, WatchedCalls
from tests.support.crashes import PLACE, killed_at_each_write
from tests.support.disk import Disk
from tests.support.invariants import merged
from tests.support.schedule import Killed
from tests.support.stores import make_merged

PATHS = [b"a.py", b"b.py"]


def _settle(store: StoreDir, *spared: str) -> None:
    with store.exclusive_lock():
        execute_collection(
            store, plan_collection(store, keep=9, now_ns=0, on_skipped=ignore_note, spared=spared), ignore_note
        )


def test_settled_batch_keeps_only_outputs_and_answers_as_before(store: StoreDir) -> None:
    batch = make_merged(store, PATHS)
    (batch.root / "journal" / "x.jsonl").write_text("history")
    before = {name: question(open_batch_query(store)) for name, question in QUESTIONS.items()}
    content = merged(batch)
    _settle(store)
    names = {path.name for path in batch.root.iterdir()}
    assert names == {"batch.json", "plan.json", "settled.json", "journal", "outputs"}
    assert (batch.root / "journal" / "x.jsonl").read_text() == "history"
    assert {name: question(open_batch_query(store)) for name, question in QUESTIONS.items()} == before
    assert merged(batch) == content
    assert read_current_state(batch).state is BatchState.COMPLETED


@pytest.mark.parametrize("paths", [[b"a.py", b"fails.py"], [b"fails.py"]])
def test_batch_with_failures_is_not_settled(store: StoreDir, paths: list[bytes]) -> None:
    batch = make_merged(store, paths)
    _settle(store)
    assert read_compacted(batch) is None
    assert list((batch.root / "outcomes").iterdir())


def test_unmerged_or_spared_batch_is_not_settled(store: StoreDir) -> None:
    open_one = make_batch(store, PATHS, shard_items=2)
    support.work(store, open_one)
    spared = make_merged(store, PATHS, second=1)
    _settle(store, spared.id)
    assert [read_compacted(batch) for batch in (open_one, spared)] == [None, None]


def test_next_gc_removes_leftovers_of_settling(store: StoreDir) -> None:
    batch = make_merged(store, PATHS)
    _settle(store)
    (batch.root / "results").mkdir()
    (batch.root / "results" / "left.seg").write_text("x")
    _settle(store)
    assert not (batch.root / "results").exists()


@pytest.mark.parametrize("damage", ["outputs", "manifest", "settled.json"])
def test_settled_batch_with_damaged_outputs_is_damaged(store: StoreDir, damage: str) -> None:
    batch = make_merged(store, PATHS)
    _settle(store)
    (outputs,) = (batch.root / "outputs").iterdir()
    if damage == "outputs":
        store.files.remove_tree(outputs)
    elif damage == "manifest":
        (outputs / "manifest.json").write_text("{}")
    else:
        (batch.root / "settled.json").write_text("{}")
    assert [entry.state for entry in list_batches(store)] == ["DAMAGED"]
    with pytest.raises(StoreCorrupt) as raised:
        read_current_state(batch)
    assert "codebatch run PATH" in (raised.value.hint or "")
    _settle(store)  # this leaves the batch unchanged


def test_settled_batch_does_not_use_outputs_of_another_name(store: StoreDir) -> None:
    """Outputs of an earlier generation, from before a retry, do not replace the outputs of a settled batch."""
    batch = make_merged(store, PATHS)
    _settle(store)
    (outputs,) = (batch.root / "outputs").iterdir()
    outputs.rename(outputs.with_name("0" * 64))
    with pytest.raises(StoreCorrupt, match="is missing"):
        current_outputs(batch)


def test_hint_for_damaged_output_of_a_settled_batch_is_not_resume(store: StoreDir) -> None:
    batch = make_merged(store, PATHS)
    _settle(store)
    for path in batch.root.glob("outputs/*/parse/*.jsonl.zst"):
        path.write_bytes(b"")
    with pytest.raises(StoreCorrupt) as raised:
        QUESTIONS["search"](open_batch_query(store))
    assert "resume" not in (raised.value.hint or "")


def test_batch_adopted_from_a_settled_batch_is_settled(store: StoreDir) -> None:
    batch = make_merged(store, PATHS)
    _settle(store)
    adopted = adopt_batch(store, batch, sources=(b"/elsewhere",), stat_cache="", at_ns=10**9)
    store.files.remove_tree(batch.root)
    assert merged(adopted).result_digest == read_current_state(adopted).outputs.manifest.result_digest  # type: ignore[union-attr]
    for path in (adopted.root / "outputs").iterdir():
        store.files.remove_tree(path)
    with pytest.raises(StoreCorrupt):
        read_current_state(adopted)


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_merging_and_settling_during_a_query_changes_no_answer(store: StoreDir, question: str) -> None:
    batch = make_batch(store, PATHS, shard_items=2)
    support.work(store, batch)
    whole = QUESTIONS[question](open_batch_query(store))

    def merge_and_settle() -> None:
        support.merge(batch)
        _settle(store)

    saved = store.root / "saved"
    for at in range(1, 1000):
        store.files.remove_tree(saved)
        _copy(batch.root, saved)
        answer, is_reached = ask_while(store.root, question, at, merge_and_settle)
        assert answer == whole
        store.files.remove_tree(batch.root)
        saved.rename(batch.root)
        if not is_reached:
            assert at > 5
            return


def _copy(source: Path, target: Path) -> None:
    """Copy a directory with its hard links: the inode of a register identifies its commit."""
    target.mkdir()
    for path in sorted(source.rglob("*")):
        if path.is_dir():
            (target / path.relative_to(source)).mkdir()
        else:
            (target / path.relative_to(source)).hardlink_to(path)


@pytest.fixture(scope="module")
def prepared() -> tuple[Disk, str]:
    """A disk with a store and a batch to settle. Tests copy it."""
    disk = Disk()
    batch = make_merged(create_store(RealFiles(disk.calls()), PLACE)[0], PATHS)
    disk.sync()
    return disk, batch.id


@pytest.mark.slow
@pytest.mark.parametrize("seed", [None, *range(4)])
def test_settling_killed_at_any_write_leaves_a_completed_batch(prepared: tuple[Disk, str], seed: int | None) -> None:
    reference = merged(_open_batch(*copy.deepcopy(prepared)))
    disk, batch_id = prepared
    for left, _ in killed_at_each_write(disk, lambda files: _settle(open_store(files, PLACE)), seed=seed, least=10):
        batch = _open_batch(left, batch_id)
        assert read_current_state(batch).state is BatchState.COMPLETED
        assert merged(batch) == reference


def _open_batch(disk: Disk, batch_id: str) -> BatchDir:
    return open_batch(open_store(RealFiles(disk.calls()), PLACE), batch_id)


@pytest.mark.slow
def test_settling_makes_outputs_durable_before_it_removes_results() -> None:
    """A writer was killed between the rename of the outputs and the fsync of their directory.

    The settling process saw them.
    """
    disk = Disk()
    store = create_store(RealFiles(disk.calls()), PLACE)[0]
    batch = make_batch(store, PATHS, shard_items=2)
    support.work(store, batch)
    disk.sync()
    renames = 0

    def watch(operation: Operation) -> Fate | None:
        nonlocal renames
        renames += operation.call == "rename"
        return Fate(Killed()) if renames and operation.call == "fsync" else None

    with pytest.raises(Killed):
        support.merge(BatchDir(RealFiles(WatchedCalls(disk.calls(), watch)), batch.root, batch.about))
    _settle(store)
    disk.lose_power()
    assert read_current_state(_open_batch(disk, batch.id)).state is BatchState.COMPLETED
