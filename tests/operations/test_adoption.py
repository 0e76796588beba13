"""Tests of adoption: a batch of an equal tree answers for a new tree. Batches are completed without workers."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.coordinator.analysis.merge import merge_outputs
from codebatch.errors import StoreUnwritable
from codebatch.model.outcome import TaskOutcome
from codebatch.model.plan import Plan
from codebatch.operations import ignore_note
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.project.project_snapshot import rules_for, take_project_snapshot
from codebatch.operations.runs.planning import BatchPlanner, choose_pipeline, make_planner
from codebatch.operations.runs.run_result import RunResult
from codebatch.protocol.record_frames import FrameWriter
from codebatch.query.sources.records import BatchRecords
from codebatch.query.status.batch_status import read_current_state
from codebatch.store.batches.batch_directory import BatchDir, batch_ids, iter_batches
from codebatch.store.batches.holders import new_holder_id
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store_directory import StoreDir, create_store
from codebatch.store.results.adoption import adopt_batch
from codebatch.store.results.bases import ReuseBase
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeCommitter, OutcomeRegisters, encode_outcome
from codebatch.system.files.files import RealFiles
from codebatch.system.files.system_calls import RealCalls
from tests.support.calls import Fate, Operation, WatchedCalls
from tests.support.inline_workers import inline, resume, run


@pytest.fixture
def store(tmp_path: Path) -> StoreDir:
    """A store next to two equal trees."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text("x = 1\n")
    return create_store(RealFiles(), tmp_path / "store")[0]


def _planner(
    store: StoreDir,
    name: str,
    notes: list[str] | None = None,
    kind: type[BatchPlanner] = BatchPlanner,
    *,
    pipeline: str = "parse",
    configured: Path | None = None,
) -> BatchPlanner:
    tree = store.root.parent / name
    note = ignore_note if notes is None else notes.append
    configuration = load_configuration(configured or tree)
    with store.writing():
        frozen = take_project_snapshot(store, [tree], rules_for(configuration, (), ()), note, allow_empty=False)
    planner = make_planner(configuration, store, frozen, choose_pipeline(configuration, pipeline), note)
    return kind(**{field: getattr(planner, field) for field in BatchPlanner.__struct_fields__})


def _end(batch: BatchDir) -> BatchDir:
    """Commit an empty result of every task for every file, and merge."""
    plan = batch.plan()
    committer = OutcomeCommitter(batch.files, batch.root, new_holder_id())
    for shard in plan.shards:
        outcome = TaskOutcome(shard=shard.id, task="parse", start=0, end=shard.items, type="result")
        committer.commit_outcomes([encode_outcome(outcome, [b""] * shard.items, FrameWriter())], epoch=1, round_=1)
    committer.close()
    merge_outputs(batch, plan, load_ledger(plan, OutcomeRegisters(batch.files, batch.root)))
    return batch


def _run_or_reuse(store: StoreDir, name: str, notes: list[str] | None = None) -> BatchDir:
    batch, is_new = _planner(store, name, notes).find_or_make_batch(forces_new=False)
    return _end(batch) if is_new else batch


def test_base_offers_the_results_of_every_shard(store: StoreDir) -> None:
    tree = store.root.parent / "one"
    (tree / "codebatch.toml").write_text("[shard]\nfiles_average = 2\nfiles_min = 1\nfiles_max = 2\n")
    for number in range(7):
        (tree / f"m{number}.py").write_text(f"x = {number}\n")
    batch = _run_or_reuse(store, "one")
    base, shards = ReuseBase(store, batch), batch.plan().shards
    assert len(shards) > 2
    offered = [(results.start, results.end) for results in base.task_results("parse")]
    assert offered == [(shard.start, shard.end) for shard in shards]
    assert base.has_all_results("parse")


def test_equal_trees_do_not_adopt_each_other_repeatedly(store: StoreDir) -> None:
    first, second = _run_or_reuse(store, "one"), _run_or_reuse(store, "two")
    assert [_run_or_reuse(store, name).id for name in ("one", "two", "one")] == [first.id, second.id, first.id]
    assert batch_ids(store) == [first.id, second.id]


def test_batch_with_a_damaged_plan_is_reported_once_and_skipped(store: StoreDir) -> None:
    damaged = _run_or_reuse(store, "one")
    (damaged.root / "plan.json").write_text("{")
    notes: list[str] = []
    batch = _run_or_reuse(store, "two", notes)
    assert batch.plan().item_count == 1
    assert [note.partition(": ")[0] for note in notes if "batch" in note] == [f"{damaged.id} skipped"]
    assert _run_or_reuse(store, "one").plan().item_count == 1


def test_batch_created_during_planning_is_adopted(store: StoreDir) -> None:
    class Late(BatchPlanner, frozen=True):
        def plan(self) -> Plan:
            _run_or_reuse(self.store, "one")
            return super().plan()

    batch, is_new = _planner(store, "two", kind=Late).find_or_make_batch(forces_new=False)
    assert not is_new
    assert batch.about.sources == (str(store.root.parent / "two").encode(),)


@pytest.mark.parametrize("strange", ["", "20990101-000000-999999", "20990231-000000-000000", "99991231-235959-999999"])
def test_new_batch_is_the_latest_although_the_clock_was_set_back(
    store: StoreDir, monkeypatch: pytest.MonkeyPatch, strange: str
) -> None:
    """Otherwise queries would still be answered for the old tree, and each run would adopt the batch before it."""
    times = iter(range(10**18, 0, -(10**17)))
    monkeypatch.setattr("codebatch.operations.runs.planning.wall_ns", lambda: next(times))
    batches = [_run_or_reuse(store, "one")]
    if strange:
        (store.batches / f"batch-{strange}-ffffff").mkdir()
    for text in ("x = 2\n", "x = 3\n", "x = 2\n"):
        (store.root.parent / "one" / "a.py").write_text(text)
        batches.append(_run_or_reuse(store, "one"))
        assert _run_or_reuse(store, "one").id == batches[-1].id
    assert [batch for batch in batch_ids(store) if strange not in batch or not strange] == [
        batch.id for batch in batches
    ]
    assert resolve_batch(store, None).id == batches[-1].id


@pytest.mark.parametrize("number", [errno.EMLINK, errno.EPERM, errno.EXDEV, errno.ENOSPC])
def test_adoption_copies_files_that_accept_no_more_links(store: StoreDir, number: int) -> None:
    """A file has at most 65,000 names on ext4, fewer on btrfs.

    A file of another user may get none (fs.protected_hardlinks).
    """
    first = _run_or_reuse(store, "one")

    def watch(operation: Operation) -> Fate | None:
        return Fate(OSError(number, "refused")) if operation.call == "link" else None

    watched = StoreDir(RealFiles(WatchedCalls(RealCalls(), watch)), store.root, store.id)
    if number == errno.ENOSPC:
        with pytest.raises(StoreUnwritable):
            adopt_batch(watched, first, sources=(b"/two",), stat_cache="", at_ns=1)
        assert batch_ids(store) == [first.id]
        return
    adopted = adopt_batch(watched, first, sources=(b"/two",), stat_cache="", at_ns=1)
    assert read_current_state(adopted).is_settled_and_merged
    assert (adopted.root / "plan.json").read_bytes() == (first.root / "plan.json").read_bytes()
    assert (adopted.root / "plan.json").stat().st_nlink == 1


CUSTOM_TASK = """
import pathlib
from codebatch.model.record import Metric
def task(file):
    yield Metric(path="a.py", metric="found", value=int(pathlib.Path({0!r}).read_text()))
"""


@pytest.fixture
def uncovered_input(store: StoreDir) -> Path:
    """The input of a custom task that its cache key does not cover.

    The task's input is not traced here, so the settings declare that its results are not reusable.
    """
    project = store.root.parent / "project"
    project.mkdir()
    (project / "codebatch.toml").write_text("[tasks.own]\npython = 'own.py:task'\nreuse = false\n")
    (project / "own.py").write_text(CUSTOM_TASK.format(str(project / "found")))
    (project / "found").write_text("1")
    return project / "found"


def _run_custom(store: StoreDir, name: str, task: str | None = None) -> RunResult:
    root = store.root.parent
    return run(root / name, store.root, configured=root / "project", task=task)


def _with_marked_results(store: StoreDir, _: Path) -> None:
    _run_custom(store, "one", "own")


def _with_unmarked_results(store: StoreDir, _: Path) -> None:
    _run_custom(store, "one", "parse")


def _resumed_but_unmerged(store: StoreDir, uncovered_input: Path) -> None:
    uncovered_input.unlink()
    failed = _run_custom(store, "one")
    uncovered_input.write_text("1")
    outputs = resume(uncovered_input.parent, failed).standing.outputs
    assert outputs is not None
    shutil.rmtree(outputs.root)


@pytest.mark.parametrize("begin", [_with_marked_results, _with_unmarked_results, _resumed_but_unmerged])
def test_unkeyed_results_of_an_unfinished_batch_are_not_adopted(
    store: StoreDir, uncovered_input: Path, begin: Callable[[StoreDir, Path], None]
) -> None:
    with inline():
        begin(store, uncovered_input)
        uncovered_input.write_text("2")
        ended = _run_custom(store, "two")
    assert (ended.action, ended.is_complete) == ("new", True)
    assert len({batch.about.plan_digest for batch in iter_batches(store)}) == 1
    shutil.copytree(store.root.parent / "two", store.root.parent / "three")
    planner = _planner(store, "three", pipeline="full", configured=uncovered_input.parent)
    assert planner.find_answering(ended.batch).id == ended.batch.id
    assert b'"value":2' in (BatchRecords(store, ended.batch).source.item_lines("own", 0) or b"")
