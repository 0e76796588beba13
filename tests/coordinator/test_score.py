"""Tests of the progress of a run: no count exceeds what is planned."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.coordinator.analysis.progress_counter import ProgressCounter, RunningUnit, RunScope
from codebatch.coordinator.processes.worker_backend import finished_items
from codebatch.model.outcome import Commit, HolderId, OutcomeType, TaskOutcome, WorkUnit
from codebatch.model.plan import Plan
from codebatch.model.record_counts import RecordCounts
from codebatch.model.shard import ProjectWork, ShardId
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.store.batches.store_directory import create_store
from codebatch.system.files.files import RealFiles
from codebatch.system.processes.progress_cell import (
    PHASE_BATCHED,
    PHASE_COMMIT,
    PHASE_IDLE,
    PHASE_ITEM,
    PHASE_LEASE,
    PHASE_PROJECT,
    WorkerStep,
)
from tests.support.batches import make_batch


def test_progress_counts_the_outcomes_in_the_chains(tmp_path: Path) -> None:
    """A late owner's outcomes beyond the chain, replaced rounds and retried work do not count."""
    store, _ = create_store(RealFiles(), tmp_path / "store")
    plan = make_batch(store, [b"a", b"b", b"c"], shard_items=3).plan()
    ledger = OutcomeLedger(plan.work_by_id().values(), {task.name: task.needs for task in plan.tasks})

    def commit(start: int, end: int, type_: OutcomeType = "result", round_: int = 1) -> Commit:
        counts = RecordCounts(kinds={"metric": end - start})
        outcome = TaskOutcome(shard=plan.shards[0].id, task="parse", start=start, end=end, type=type_, counts=counts)
        committed = Commit(segment=HolderId("h"), epoch=1, round=round_, outcomes=(outcome,))
        ledger.add(committed)
        return committed

    def progress_counts(score: ProgressCounter) -> tuple[int, int, int]:
        progress = score.progress((), workers=0)
        return progress.done["parse"], progress.records, progress.failures

    costs = _costs(plan)
    score = ProgressCounter(plan, ledger, costs, RunScope())
    score.note_commits([commit(2, 3, "failed"), commit(1, 3), commit(0, 3)])
    assert progress_counts(score) == (3, 3, 0)
    score = ProgressCounter(plan, ledger, costs, RunScope())
    score.note_commits([commit(0, 2, round_=2)])
    assert progress_counts(score) == (3, 3, 1), "the outcome behind the new one, garbage until then, was not counted"
    score = ProgressCounter(plan, ledger, costs, RunScope(retry_failed=True))
    assert progress_counts(score) == (2, 2, 0)
    score.note_commits([commit(2, 3, "failed", round_=2)])
    assert progress_counts(score) == (3, 3, 1)


def _costs(plan: Plan) -> dict[ShardId, list[float]]:
    files = {shard.id: [float(item) for item in range(shard.items + 1)] for shard in plan.shards}
    return {**files, **{ProjectWork(task).id: [0.0, 1.0] for task in plan.project_tasks}}


def test_results_count_once_in_progress_of_worker_or_ledger(tmp_path: Path) -> None:
    """A worker keeps its count while it commits. Once the commit is known, its progress cell adds nothing."""
    store, _ = create_store(RealFiles(), tmp_path / "store")
    plan = make_batch(store, [b"a", b"b", b"c"], shard_items=3).plan()
    ledger = OutcomeLedger(plan.work_by_id().values(), {task.name: task.needs for task in plan.tasks})
    files = tuple(task.name for task in plan.tasks if task.scope == "file")
    score = ProgressCounter(plan, ledger, _costs(plan), RunScope())
    unit = WorkUnit(shard=plan.shards[0].id, start=0, end=3, tasks=files)

    def progress_of(items: int) -> tuple[int, int, float]:
        progress = score.progress([RunningUnit(unit, items)], workers=1)
        return progress.results_done, progress.results_planned, round(progress.work_done, 3)

    planned = 3 * len(files) + len(plan.project_tasks)
    cost = 3 + len(plan.project_tasks)
    assert progress_of(0) == (0, planned, 0.0)
    assert progress_of(2) == (2 * len(files), planned, round(2 / cost, 3))
    assert progress_of(3) == (3 * len(files), planned, round(3 / cost, 3))
    outcomes = tuple(
        TaskOutcome(shard=unit.shard, task=task, start=0, end=3, type="result", counts=RecordCounts(kinds={}))
        for task in files
    )
    commit = Commit(segment=HolderId("h"), epoch=1, round=1, outcomes=outcomes)
    ledger.add(commit)
    score.note_commits([commit])
    assert progress_of(3) == (3 * len(files), planned, round(3 / cost, 3))


def test_results_outside_the_scope_of_a_run_are_not_planned(tmp_path: Path) -> None:
    store, _ = create_store(RealFiles(), tmp_path / "store")
    plan = make_batch(store, [b"a", b"b", b"c"], shard_items=1).plan()
    ledger = OutcomeLedger(plan.work_by_id().values(), {task.name: task.needs for task in plan.tasks})
    outside = TaskOutcome(
        shard=plan.shards[1].id, task="parse", start=0, end=1, type="result", counts=RecordCounts(kinds={"metric": 1})
    )
    commit = Commit(segment=HolderId("h"), epoch=1, round=1, outcomes=(outside,))
    ledger.add(commit)
    scope = RunScope(tasks=frozenset({"parse"}), shards=frozenset({plan.shards[0].id}))
    score = ProgressCounter(plan, ledger, _costs(plan), scope)
    progress = score.progress((), workers=0)
    assert (progress.results_done, progress.results_planned, progress.work_done) == (0, 1, 0.0)
    assert progress.done["parse"] == 1


@pytest.mark.parametrize(
    ("phase", "item", "end", "unit", "expected"),
    [
        (PHASE_LEASE, 10, 10, 2, 0),
        (PHASE_ITEM, 10, 11, 2, 0),
        (PHASE_ITEM, 14, 15, 2, 4),
        (PHASE_BATCHED, 10, 20, 2, 10),
        (PHASE_COMMIT, 10, 18, 2, 8),
        (PHASE_PROJECT, 10, 20, 2, 0),
        (PHASE_IDLE, 0, 0, 2, 0),
        (PHASE_COMMIT, 10, 18, 1, 0),
    ],
)
def test_items_count_as_finished_until_their_unit_is_committed(
    phase: int, item: int, end: int, unit: int, expected: int
) -> None:
    """The progress cell of a worker that has not begun its second unit still describes its first."""
    step = WorkerStep(0, 0, 0, unit, item, end, phase)
    assert finished_items(step, WorkUnit(shard=ShardId("s"), start=10, end=20, tasks=("parse",)), 2) == expected


def test_unreadable_worker_has_finished_no_items() -> None:
    assert finished_items(None, WorkUnit(shard=ShardId("s"), start=10, end=20, tasks=("parse",)), 1) == 0
