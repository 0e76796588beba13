"""Having a batch to compare with: a tree of before, under the very tasks of the batch that is compared.

So what is told of the two differs by the trees alone, and an upgrade of a tool says nothing. What older batches have is
taken over, the compared one's too, so that little is executed; and it is a batch like any other, found again next time.
It sorts before the one that it is compared with, and so is not the latest.
"""

from __future__ import annotations

import os
from pathlib import Path

from codebatch.application.checkouts import repository_of
from codebatch.application.execution import Execution, Listener
from codebatch.application.freezing import rules_for, take
from codebatch.coordinator.planning import check_tools, make_plan
from codebatch.coordinator.score import Scope
from codebatch.errors import Stopped, ToolMismatch
from codebatch.model.imported import are_alike, for_tree_of
from codebatch.model.plan import plan_digest
from codebatch.query.standing import standing
from codebatch.snapshotting.staleness import rules_of
from codebatch.store.bases import find_bases
from codebatch.store.batches import NO_CHECKOUT, Batch, Checkout, create_batch, iter_batches, snapshot_of
from codebatch.store.snapshots import Snapshot, load_snapshot
from codebatch.store.store import Store
from codebatch.system.clock import wall_ns
from codebatch.system.git import GitError
from codebatch.system.git_ancestry import Repository
from codebatch.system.git_tree import tree_of


def run_snapshot_as(
    store: Store,
    head: Batch,
    snapshot: Snapshot,
    execution: Execution,
    listener: Listener,
    checkout: Checkout = NO_CHECKOUT,
    known: Batch | None = None,
) -> Batch:
    """The batch of a snapshot under the tasks of another batch, made and worked to its end where there is none.

    What was imported into that one says nothing of this snapshot: imports are those of `known`, a batch of it.
    Raises ToolMismatch where this installation would run them otherwise, Stopped at a signal, and StoreError.
    """
    plan = head.plan()
    catalogue = execution.configuration.catalogue.with_imports(head.about.imports)
    check_tools(catalogue, plan)
    tasks = for_tree_of(known.plan().tasks if known is not None else (), plan.tasks)
    wanted = plan_digest(snapshot.digest, tasks, plan.paths), head.about.place
    with store.writing() as lock:
        batch = _find(store, wanted)
        if batch is None:
            made = make_plan(catalogue, snapshot, plan.pipeline, tasks, plan.shard_rule, plan.paths)
            with store.making_batch():
                batch = _find(store, wanted) or create_batch(
                    store,
                    made,
                    sources=head.about.sources,
                    bases=find_bases(store, head.about.sources, plan.pipeline),
                    checkout=checkout,
                    at_ns=wall_ns(),
                    before=head.id,
                )
        if not standing(batch).is_over:
            executed = execution.execute(store, lock, batch, Scope(), listener, snapshot)
            if executed.signal_status:
                hint = "run the same command again: what is done is kept"
                raise Stopped("stopped before the base was run", hint=hint, exit_status=executed.signal_status)
    return batch


def under_tasks_of(store: Store, head: Batch, batch: Batch, execution: Execution, listener: Listener) -> Batch:
    """The batch of another one's tree under the tasks of `head`: itself where they are these, or the tree is that one.

    Raises ToolMismatch where this installation would run them otherwise, Stopped at a signal, and StoreError.
    """
    if are_alike(batch.plan().tasks, head.plan().tasks) or batch.about.snapshot_id == head.about.snapshot_id:
        return batch
    checkout = Checkout(batch.about.commit, batch.about.is_clean)
    try:
        listener.note(f"batch {batch.id} is of other tasks: its tree is run under those of {head.id}")
        return run_snapshot_as(store, head, snapshot_of(store, batch), execution, listener, checkout, batch)
    except ToolMismatch as error:
        told = f"batch {batch.id} is of other tasks, and cannot be run under those of {head.id}: {error.message}"
        raise ToolMismatch(told, hint=error.hint) from error


def freeze_commit(store: Store, head: Batch, commit: str, execution: Execution, listener: Listener) -> Snapshot:
    """The snapshot of a commit's tree, of what the batch is of, chosen as its files were.

    Raises GitError where git cannot give it, OSError, and what `freezing.take` raises.
    """
    found = repository_of(head.about.sources)
    if found is None:
        raise GitError("the tree is in no git repository any more")
    rules = rules_of(store.files, store.root, head.about.stat_cache)
    with tree_of(Repository(*found), commit) as directory:
        taken = take(
            store, [Path(os.fsdecode(directory))], rules or rules_for(execution.configuration, (), ()), listener.phase
        )
    return load_snapshot(store.files, store.root, taken.snapshot_id)


def _find(store: Store, wanted: tuple[str, tuple[tuple[bytes, ...], tuple[bytes, ...]]]) -> Batch | None:
    return next((each for each in iter_batches(store) if (each.about.plan_digest, each.about.place) == wanted), None)
