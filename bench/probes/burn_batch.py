"""Make a store with a batch of the task `burn` over a directory: `python -m bench.probes.burn_batch STORE DIR`."""

from __future__ import annotations

import sys
from pathlib import Path

from codebatch.coordinator.analysis.planning import make_plan, resolve_tasks
from codebatch.model.shard import ShardRule
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.snapshotting.selection import SourceRules
from codebatch.snapshotting.snapshot import take_snapshot
from codebatch.store.batches.batch_directory import create_batch
from codebatch.store.batches.store_directory import create_store
from codebatch.store.snapshots.snapshots import load_snapshot
from codebatch.system.files.files import RealFiles

if __name__ == "__main__":
    store, _ = create_store(RealFiles(), Path(sys.argv[1]))
    result = take_snapshot(store.files, store.root, [Path(sys.argv[2])], SourceRules(), now=lambda: 0.0)
    snapshot = load_snapshot(store.files, store.root, result.snapshot_id)
    catalogue = TaskCatalogue()
    plan = make_plan(catalogue, snapshot, "burn", resolve_tasks(catalogue, ("burn",)), ShardRule())
    create_batch(store, plan, sources=(), at_ns=1)
