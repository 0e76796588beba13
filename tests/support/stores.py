"""Finished batches, made without processes, in memory or on a real disk."""

from __future__ import annotations

from collections.abc import Sequence

from codebatch.coordinator.analysis.merge import merge_outputs
from codebatch.model.outcome import HolderId, WorkUnit
from codebatch.model.plan import plan_items
from codebatch.model.shard import ProjectWork
from codebatch.operations import ignore_note
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.maintenance.collection import NS_PER_DAY, execute_collection, plan_collection
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeCommitter, OutcomeRegisters
from codebatch.store.results.outputs import MergedOutputs
from codebatch.store.snapshots.snapshots import load_snapshot
from codebatch.system.clock import wall_ns
from codebatch_workers.runtime.project import BatchProject
from codebatch_workers.runtime.results import TaskFailure, UnitResults
from codebatch_workers.runtime.sources import load_source
from tests.support.batches import FILE_TASKS, CheapRunner, make_batch

HOLDER = HolderId("0" * 32)


def make_merged(store: StoreDir, paths: Sequence[bytes], *, second: int = 0, for_comparison: bool = False) -> BatchDir:
    """Create a batch over generated files with these paths, execute all its tasks and merge it."""
    batch = make_batch(store, paths, shard_items=len(paths), at_ns=second * 10**9, for_comparison=for_comparison)
    work(store, batch)
    merge(batch)
    return batch


def merge(batch: BatchDir) -> MergedOutputs:
    """Merge the outcomes of a batch."""
    plan = batch.plan()
    return merge_outputs(batch, plan, load_ledger(plan, OutcomeRegisters(batch.files, batch.root)))


def work(store: StoreDir, batch: BatchDir) -> None:
    """Execute the plan of a batch with one shard, as one worker does."""
    plan = batch.plan()
    runner = CheapRunner(plan.tasks, lambda: None, lambda: False)
    entries = plan_items(load_snapshot(store.files, store.root, plan.snapshot_id).entries)
    committer = OutcomeCommitter(store.files, batch.root, HOLDER)
    unit = WorkUnit(shard=plan.shards[0].id, start=0, end=len(entries), tasks=FILE_TASKS)
    unit_results = UnitResults(start=0, items=entries, results={name: [] for name in unit.tasks})
    objects = store.objects()
    for entry in entries:
        source = load_source(entry, lambda entry: objects.read(entry.object), {})
        assert not isinstance(source, TaskFailure)
        for name, result in runner.run_item(source, unit.tasks).items():
            unit_results.results[name].append(result)
    committer.commit_outcomes(list(runner.encode_unit(unit, unit_results)), epoch=1, round_=1)
    for task in plan.project_tasks:
        outcomes = OutcomeRegisters(store.files, batch.root)
        ledger = load_ledger(plan, outcomes)
        project = BatchProject(plan, entries, ledger, outcomes, read=lambda _: b"", needs=plan.task_names)
        unit = WorkUnit(shard=ProjectWork(task).id, start=0, end=1, tasks=(task,))
        encoded = runner.run_project(unit, project, plan.shards, ledger.inputs_digest(task))
        committer.commit_outcomes([encoded], epoch=1, round_=1)
    committer.close()


def collect_all(store: StoreDir, *, keep: int, now_ns: int | None = None, notes: list[str] | None = None) -> None:
    """Collect garbage. The time is `now_ns`, or by default long after everything was made."""
    note = ignore_note if notes is None else notes.append
    now_ns = wall_ns() + 30 * NS_PER_DAY if now_ns is None else now_ns
    with store.exclusive_lock():
        execute_collection(store, plan_collection(store, keep=keep, now_ns=now_ns, on_skipped=note), note)
