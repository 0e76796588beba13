"""Execution of a batch from its present state to its merged outputs."""

from __future__ import annotations

import os

import msgspec

from codebatch.coordinator.analysis.adoption import ReuseSource
from codebatch.coordinator.analysis.costs import COST_PER_WORKER, estimate_costs
from codebatch.coordinator.analysis.loop import Coordinator, RunWatcher
from codebatch.coordinator.analysis.merge import merge_outputs
from codebatch.coordinator.analysis.planning import check_tools
from codebatch.coordinator.analysis.process_backend import ProcessWorkerBackend
from codebatch.coordinator.analysis.progress_counter import RunScope
from codebatch.coordinator.processes.limits import ResourceLimits
from codebatch.errors import Stopped, StoreCorrupt
from codebatch.model.plan import Plan, plan_items
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.protocol.launch import WorkerSettings
from codebatch.store.batches.batch_directory import BatchDir, load_batch_snapshot
from codebatch.store.batches.holders import HolderFile
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.ledgers import count_ledger_outcomes
from codebatch.store.results.outputs import MergedOutputs
from codebatch.store.results.untrusted import untrusted_keys
from codebatch.store.snapshots.snapshots import Snapshot
from codebatch.system.clock import running_ns, wall_ns
from codebatch.system.host import this_host, usable_cores


class RunOutcome(msgspec.Struct, frozen=True):
    """The exit status of an execution, and its counts.

    `signal_status` is the exit status for the signal that ended the execution early, otherwise 0. `reused` and
    `executed` count pairs of file and file task: results from older batches, and results that this batch produced.
    """

    signal_status: int
    reused: int
    executed: int


NOTHING_EXECUTED = RunOutcome(0, 0, 0)

STARTING_WORKERS_PER_CORE_MAX = 2
"""Maximum number of workers per core that may be starting at the same time. Starting needs CPU time."""


def execute(
    store: StoreDir,
    batch: BatchDir,
    workers: WorkerSettings,
    *,
    catalogue: TaskCatalogue,
    jobs: int,
    limits: ResourceLimits,
    scope: RunScope,
    watcher: RunWatcher | None,
    reuses: bool = True,
    snapshot: Snapshot | None = None,
) -> RunOutcome:
    """Execute the open work of a batch, and merge the outputs once no work is left.

    Signals are handled only in the main thread. `snapshot` is the snapshot of the batch; if it is None, it is read from
    the store. With `reuses`, results of the batch's bases are reused.

    Raises ToolMismatch, EnvironmentBroken, StoreUnwritable or StoreCorrupt. After a signal, Stopped is raised instead
    of StoreCorrupt. Outcomes that were committed before an error are kept.
    """
    plan = batch.plan()
    catalogue = catalogue.with_imports(batch.about.imports)
    check_tools(catalogue, plan, batch.about.programs)
    snapshot = snapshot or load_batch_snapshot(store, batch)
    assert snapshot.id == plan.snapshot_id
    reuse = ReuseSource(store, catalogue, batch.about.bases, untrusted_keys(store), snapshot) if reuses else None
    items = plan_items(snapshot.entries, plan.paths)
    about = HolderFile(
        holder=workers.coordinator, role="coordinator", pid=os.getpid(), host=this_host(), since_ns=wall_ns()
    )
    crew = ProcessWorkerBackend(
        batch,
        workers,
        limits=limits,
        workers_max=min(jobs, len(items) + len(plan.project_tasks)),
        running_ns=running_ns,
    )
    coordinator = Coordinator(
        batch,
        plan,
        items,
        crew,
        about=about,
        jobs=jobs,
        costs=estimate_costs(plan, items, scope.shuffle_seed),
        cost_per_worker=COST_PER_WORKER,
        starts_max=STARTING_WORKERS_PER_CORE_MAX * usable_cores(),
        scope=scope,
        watcher=watcher,
        wall_ns=wall_ns,
        reuse=reuse,
    )
    try:
        run_and_merge(coordinator, batch, plan, watcher)
    except StoreCorrupt as damage:
        if crew.exit_status:
            raise Stopped.before_repair(damage, crew.exit_status) from damage
        raise
    done = coordinator.progress
    of_files = sum(count for task, count in done.done.items() if task not in plan.project_tasks)
    return RunOutcome(crew.exit_status, done.reused, of_files - done.reused)


def run_and_merge(
    coordinator: Coordinator, batch: BatchDir, plan: Plan, watcher: RunWatcher | None = None
) -> MergedOutputs | None:
    """Run the coordinator and merge the outputs. Return None if work is left, for example because of a stop signal.

    Raises the errors of `Coordinator.run`. The coordinator is closed in every case.
    """
    try:
        coordinator.run()
        if count_ledger_outcomes(coordinator.ledger).open_count:
            return None
        if watcher is not None:
            watcher.phase("merging")
        outputs = merge_outputs(batch, plan, coordinator.ledger)
        coordinator.note_merged(sum(task.counts.records for task in outputs.manifest.tasks))
        return outputs
    finally:
        coordinator.close()
