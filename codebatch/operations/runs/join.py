"""The use case `join`: commit the results of parts that ran on other machines, and execute what is missing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from codebatch.coordinator.analysis.progress_counter import RunScope
from codebatch.errors import BatchIncomplete, InvalidInput
from codebatch.model.digest import Digest
from codebatch.model.plan import Plan, PlannedTask, plan_items
from codebatch.model.text.quantities import count_text
from codebatch.operations.project.stores import open_or_temporary_store
from codebatch.operations.runs.execution import ExecutionSettings, Listener, RunAction
from codebatch.operations.runs.index_helpers import IndexHelpers
from codebatch.operations.runs.part_selection import (
    JoinTarget,
    MissingParts,
    check_parts,
    find_missing_parts,
    read_parts,
)
from codebatch.operations.runs.parts import refuse_object_tasks
from codebatch.operations.runs.planning import BatchPlanner
from codebatch.operations.runs.repair import RepairSession
from codebatch.operations.runs.resume import BatchRun, existing_batch_action, finish_run
from codebatch.operations.runs.run_request import RunRequest
from codebatch.operations.runs.run_result import RunResult
from codebatch.query.status.batch_status import read_current_state
from codebatch.store.batches.batch_directory import BatchDir, load_batch_snapshot
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.external_outcomes import ExternalCommitter, new_external_holder, registered_committer
from codebatch.store.part_files import PartFile, iter_part_outcomes
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.snapshots.snapshots import Snapshot


def join(
    request: RunRequest,
    files: Sequence[Path],
    listener: Listener,
    *,
    is_strict: bool = False,
    allow_empty: bool = False,
) -> RunResult:
    """Commit the results of part files to the batch of a tree, then execute what is missing and merge.

    With `is_strict`, a missing part raises BatchIncomplete before any work. Raises CodebatchError.
    """
    started = time.monotonic()
    parts = read_parts(files, listener.note)
    execution = request.execution
    store = request.place.open_or_create_store(listener.note)
    with IndexHelpers() as helpers:
        with store.writing() as lock:
            frozen, planner = request.freeze(store, listener, allow_empty=allow_empty)
            planner = planner.for_parts()
            check_parts(parts, _planned_target(planner))
            refuse_object_tasks(planner.tasks, planner.catalogue)
            if is_strict:
                _check_complete(parts, planner.plan(), frozen.snapshot)
            batch, is_new = planner.find_or_make_batch(forces_new=False, reuses=execution.reuses)
            state = read_current_state(batch)
            action: RunAction = "new" if is_new else existing_batch_action(state)
            listener.chosen(batch, action)
            if not state.is_settled_and_merged and execution.builds_index:
                helpers.start_words(store, batch, frozen.snapshot, jobs=execution.workers_max)
            joined = 0 if state.is_settled_and_merged else commit_parts(batch, parts, listener)
            work = BatchRun(RepairSession(execution, store, lock, listener), action, helpers=helpers, joined=joined)
            scope = None if state.is_settled_and_merged else RunScope()
            result = work.do(batch, scope, frozen.snapshot, planner.find_answering)
        return finish_run(execution, started, result, listener, frozen.snapshot, helpers)


def join_batch(
    execution: ExecutionSettings,
    store: StoreDir,
    batch: BatchDir,
    files: Sequence[Path],
    listener: Listener,
    *,
    is_strict: bool = False,
) -> RunResult:
    """Like `join`, for an existing batch. Raises CodebatchError."""
    started = time.monotonic()
    parts = read_parts(files, listener.note)
    with store.writing() as lock:
        plan, snapshot = batch.plan(), load_batch_snapshot(store, batch)
        check_parts(parts, _make_target(plan.digest, snapshot, plan.paths, plan.tasks))
        if is_strict:
            _check_complete(parts, plan, snapshot)
        state = read_current_state(batch)
        joined = 0 if state.is_settled_and_merged else commit_parts(batch, parts, listener)
        action = existing_batch_action(state)
        work = BatchRun(RepairSession(execution, store, lock, listener), action, joined=joined)
        result = work.do(batch, None if state.is_settled_and_merged else RunScope(), snapshot)
    return finish_run(execution, started, result, listener, snapshot)


def list_missing_parts(
    request: RunRequest, files: Sequence[Path], listener: Listener, *, allow_empty: bool = False
) -> MissingParts:
    """Return the parts that must run again. Nothing is joined. Raises CodebatchError.

    Without a store, the snapshot is stored in a temporary one.
    """
    parts = read_parts(files, listener.note)
    with open_or_temporary_store(request.place) as store, store.writing():
        frozen, planner = request.freeze(store, listener, allow_empty=allow_empty)
        planner = planner.for_parts()
        check_parts(parts, _planned_target(planner))
        return find_missing_parts(parts, planner.plan(), frozen.snapshot)


def commit_parts(batch: BatchDir, parts: Sequence[PartFile], listener: Listener) -> int:
    """Commit the outcomes of parts to their batch. Return the number of results. On return they are durable.

    Raises InvalidInput if a part has an outcome that cannot be of this plan. The outcomes before it are then committed.
    """
    plan = batch.plan()
    ledger = load_ledger(plan, OutcomeRegisters(batch.files, batch.root))
    sizes = {shard.id: shard.items for shard in plan.shards}
    results = 0
    with registered_committer(batch, new_external_holder()) as committer:
        external = ExternalCommitter(plan, ledger, committer)
        for number, part in enumerate(parts):
            listener.phase("joining", number, len(parts), "parts")
            if any(sizes.get(shard.id) != len(shard.files) for shard in part.header.shards):
                raise InvalidInput(
                    f"the part {str(part.path)!r} has other shards",
                    hint="use the same [shard] settings and codebatch for all parts, and no --batch of a run",
                )
            try:
                results += external.commit([iter_part_outcomes(part)])
            except ValueError as error:
                raise InvalidInput(
                    f"the part {str(part.path)!r} has {error}", hint="run this part again, with the same codebatch"
                ) from error
    return results


def _check_complete(parts: Sequence[PartFile], plan: Plan, snapshot: Snapshot) -> None:
    """Raise BatchIncomplete if some shards of a plan are in none of the parts."""
    known = {shard.id for part in parts for shard in part.header.shards}
    missing = [shard for shard in plan.shards if shard.id not in known]
    if not missing:
        return
    listed = f": {', '.join(find_missing_parts(parts, plan, snapshot).parts)}" if parts else ""
    files = count_text(sum(shard.items for shard in missing), "file")
    raise BatchIncomplete(f"parts with {files} are missing{listed}", hint="run them, or join without --strict")


def _planned_target(planner: BatchPlanner) -> JoinTarget:
    return _make_target(planner.digest, planner.frozen.snapshot, planner.frozen.paths, planner.tasks)


def _make_target(
    plan_digest: Digest, snapshot: Snapshot, paths: tuple[bytes, ...], tasks: tuple[PlannedTask, ...]
) -> JoinTarget:
    return JoinTarget(
        plan_digest=plan_digest,
        snapshot_digest=snapshot.digest,
        paths=paths,
        tasks=tasks,
        items=plan_items(snapshot.entries, paths),
    )
