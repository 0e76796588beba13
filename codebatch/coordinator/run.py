"""Running a batch from its present state to its merged outputs."""

from __future__ import annotations

import os

from codebatch.coordinator.costs import COST_PER_WORKER, estimate
from codebatch.coordinator.limits import Limits
from codebatch.coordinator.loop import Coordinator, Scope, Watcher
from codebatch.coordinator.merge import merge_outputs
from codebatch.coordinator.planning import check_tools
from codebatch.coordinator.process_crew import ProcessCrew
from codebatch.model.plan import Plan, items_of
from codebatch.store.batches import Batch, snapshot_of
from codebatch.store.holders import HolderFile, new_holder_id
from codebatch.store.ledgers import tally_of
from codebatch.store.outputs import Outputs
from codebatch.store.snapshots import Snapshot
from codebatch.store.store import Store
from codebatch.system.clock import running_ns, wall_ns
from codebatch.system.host import this_host
from codebatch.system.task_catalogue import TaskCatalogue


def execute(
    store: Store,
    batch: Batch,
    *,
    catalogue: TaskCatalogue,
    jobs: int,
    limits: Limits,
    scope: Scope,
    watcher: Watcher | None,
    snapshot: Snapshot | None = None,
) -> int:
    """Do what is open in a batch, and merge once nothing is. Main thread only.

    `snapshot` is the batch's, where the caller has it: what it has decoded is not decoded again. Returns 0, or the exit
    status of the signal that ended it early. Raises ToolMismatch, EnvironmentBroken,
    StoreUnwritable or StoreCorrupt; what was committed before is kept.
    """
    plan = batch.plan()
    check_tools(catalogue, plan)
    snapshot = snapshot or snapshot_of(store, batch)
    assert snapshot.id == plan.snapshot_id
    items = items_of(snapshot.entries, plan.paths)
    about = HolderFile(
        holder=new_holder_id(), role="coordinator", pid=os.getpid(), host=this_host(), since_ns=wall_ns()
    )
    crew = ProcessCrew(
        batch,
        store_root=str(store.root),
        coordinator=about.holder,
        own_places=catalogue.own_places,
        limits=limits,
        running_ns=running_ns,
    )
    coordinator = Coordinator(
        batch,
        plan,
        items,
        crew,
        about=about,
        jobs=jobs,
        costs=estimate(plan, items, scope.shuffle_seed),
        cost_per_worker=COST_PER_WORKER,
        scope=scope,
        watcher=watcher,
        wall_ns=wall_ns,
    )
    run_and_merge(coordinator, batch, plan)
    return crew.exit_status


def run_and_merge(coordinator: Coordinator, batch: Batch, plan: Plan) -> Outputs | None:
    """Work until nothing is left to do here; merge if nothing is left at all, else return None.

    Raises as `Coordinator.run` does. The coordinator is closed, whatever happens.
    """
    try:
        coordinator.run()
        if tally_of(coordinator.ledger).open:
            return None
        outputs = merge_outputs(batch, plan, coordinator.ledger)
        coordinator.note_merged(sum(task.counts.records for task in outputs.manifest.tasks))
        return outputs
    finally:
        coordinator.close()
