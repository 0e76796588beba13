"""Running a batch from its present state to its merged outputs."""

from __future__ import annotations

from codebatch.coordinator.limits import Limits
from codebatch.coordinator.loop import Coordinator, Scope, Watcher
from codebatch.coordinator.merge import merge_outputs
from codebatch.coordinator.planning import check_tools
from codebatch.store.batches import Batch, snapshot_of
from codebatch.store.ledgers import tally_of
from codebatch.store.store import Store
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
) -> int:
    """Do what is open in a batch, and merge once nothing is. Main thread only.

    Returns 0, or the exit status of the signal that ended it early. Raises ToolMismatch, EnvironmentBroken,
    StoreUnwritable or StoreCorrupt; what was committed before is kept.
    """
    plan = batch.plan()
    check_tools(catalogue, plan)
    snapshot = snapshot_of(store, batch)
    coordinator = Coordinator(
        store,
        batch,
        plan,
        snapshot,
        own_places=catalogue.own_places,
        jobs=jobs,
        limits=limits,
        scope=scope,
        watcher=watcher,
    )
    try:
        exit_status = coordinator.run()
        if tally_of(coordinator.ledger).open == 0:
            outputs = merge_outputs(batch, plan, coordinator.ledger)
            coordinator.note_merged(sum(task.counts.records for task in outputs.manifest.tasks))
        return exit_status
    finally:
        coordinator.close()
