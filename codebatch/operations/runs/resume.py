"""Execution of the open work of a batch or of some shards, and the final steps of every run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Literal

import msgspec
from msgspec.structs import replace

from codebatch.coordinator.analysis.execution import NOTHING_EXECUTED, RunOutcome
from codebatch.coordinator.analysis.planning import missing_tools
from codebatch.coordinator.analysis.progress_counter import RunScope
from codebatch.errors import CodebatchError, InvalidInput, NothingToDo
from codebatch.model.shard import ShardId
from codebatch.model.task import task_name
from codebatch.operations import PhaseCallback, ignore_note
from codebatch.operations.history.ci_services import read_ci_change
from codebatch.operations.project.configuration import KEEP_IN_CI
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.operations.runs.call_totals import read_call_totals, tasks_without_files
from codebatch.operations.runs.collection import collect_garbage_after_run
from codebatch.operations.runs.execution import ExecutionSettings, Listener, RunAction
from codebatch.operations.runs.headline import make_headline
from codebatch.operations.runs.headline_cache import find_headline
from codebatch.operations.runs.index_helpers import IndexHelpers
from codebatch.operations.runs.repair import RepairSession
from codebatch.operations.runs.requests import append_cancel_lift
from codebatch.operations.runs.run_result import RunResult, ShardRunResult
from codebatch.query.answers.omissions import read_omissions
from codebatch.query.answers.summary import read_failures, summarise
from codebatch.query.status.batch_status import CurrentState, read_current_state
from codebatch.scheduling.lifecycle import BatchState
from codebatch.store.batches.batch_directory import BatchDir, check_name
from codebatch.store.batches.pins import assign_name
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.ledgers import load_ledger
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.snapshots.snapshots import Snapshot

FAILURES_READ_MAX = 20


def run_batch(
    execution: ExecutionSettings,
    store: StoreDir,
    batch: BatchDir,
    task: str | None,
    listener: Listener,
    *,
    name: str | None = None,
) -> RunResult:
    """Execute the open work of a batch as planned. With `task`, execute only the work of this task.

    Raises CodebatchError. `name` is as in `run_paths`.
    """
    started = time.monotonic()
    check_name(name)
    with store.writing() as lock:
        state = read_current_state(batch)
        scope = make_run_scope(batch, task)
        action: RunAction = "new" if state.state is BatchState.PENDING else existing_batch_action(state)
        work = BatchRun(RepairSession(execution, store, lock, listener), action, task, name)
        result = work.do(batch, None if state.is_settled_and_merged else scope)
    return finish_run(execution, started, result, listener)


def resume(execution: ExecutionSettings, store: StoreDir, batch: BatchDir, listener: Listener) -> RunResult:
    """Execute the open work of a batch, and repeat failed work. Raises CodebatchError."""
    started = time.monotonic()
    with store.writing() as lock:
        state = read_current_state(batch)
        is_done = state.state is BatchState.COMPLETED and state.outputs is not None
        work = BatchRun(RepairSession(execution, store, lock, listener), "up to date" if is_done else "resumed")
        result = work.do(batch, None if is_done else RunScope(retry_failed=True))
    return finish_run(execution, started, result, listener)


def run_shards(
    execution: ExecutionSettings, store: StoreDir, batch: BatchDir, task: str, prefix: str
) -> ShardRunResult:
    """Execute one task for all shards whose ID starts with a prefix.

    Raises CodebatchError, and NothingToDo if no ID has the prefix.
    """
    scope, name, plan = make_run_scope(batch, task), task_name(task), batch.plan()
    if name in plan.project_tasks:
        raise InvalidInput(
            f"the task {name} runs once per project and has no shards",
            hint=f"run it with: codebatch run --batch {batch.id} --task {name}",
        )
    shard_ids = frozenset(shard.id for shard in plan.shards if shard.id.startswith(prefix))
    if not shard_ids:
        raise NothingToDo(
            f"no shard id starts with {prefix!r}", hint=f"see: codebatch shards --batch {batch.id} --task {name}"
        )
    with store.writing() as lock:
        state = read_current_state(batch)
        if state.state is BatchState.COMPLETED and state.is_settled_and_merged:
            return ShardRunResult(states=dict.fromkeys(sorted(shard_ids), "done"), open=())
        append_cancel_lift(batch)
        executed = execution.execute(store, lock, batch, replace(scope, shards=shard_ids), Listener())
        ledger = load_ledger(plan, OutcomeRegisters(batch.files, batch.root))
    states: dict[ShardId, Literal["done", "failed"]] = {
        shard: "failed" if ledger.unsuccessful_links(shard, name) else "done"
        for shard in sorted(shard_ids)
        if not ledger.list_holes(shard, name)
    }
    return ShardRunResult(
        states=states, open=tuple(sorted(shard_ids - set(states))), signal_status=executed.signal_status
    )


class BatchRun(msgspec.Struct, frozen=True):
    """The execution of a batch and the making of its RunResult."""

    repairing: RepairSession
    action: RunAction
    task: str | None = None
    name: str | None = None
    helpers: IndexHelpers | None = None
    joined: int = 0
    """The number of results that were joined before the execution."""

    def do(
        self,
        batch: BatchDir,
        scope: RunScope | None,
        snapshot: Snapshot | None = None,
        answering_one: Callable[[BatchDir], BatchDir] = lambda batch: batch,
    ) -> RunResult:
        """Execute the open work in a scope, and return the result. If `scope` is None, execute nothing.

        `answering_one` returns the batch that queries use after the execution. The result is that of this batch.
        """
        execution, store, lock, listener = self.repairing
        executed = NOTHING_EXECUTED
        if scope is not None:
            append_cancel_lift(batch)
            execute = partial(execution.execute, store, lock, batch, scope, listener, snapshot)
            executed = self.repairing(batch, execute)
            executed = replace(executed, reused=executed.reused + self.joined, executed=executed.executed - self.joined)
            batch = answering_one(batch)
            if self.helpers is not None and not executed.signal_status:
                self.helpers.start_index(batch)
        listener.phase("counting")
        make_result = partial(
            _make_result,
            execution,
            store,
            batch,
            self.action,
            executed=executed,
            task=self.task,
            on_phase=listener.phase,
        )
        result = self.repairing(batch, make_result, executed.signal_status)
        if self.name is None or executed.signal_status:
            return result
        return replace(result, name=self.name, name_was=assign_name(store, batch.id, self.name))


def finish_run(
    execution: ExecutionSettings,
    started: float,
    result: RunResult,
    listener: Listener,
    snapshot: Snapshot | None = None,
    helpers: IndexHelpers | None = None,
) -> RunResult:
    """Update the index and collect garbage at the end of a run. Return the result with the time since `started`.

    `snapshot` is the snapshot of the batch, if the caller already has it. `helpers` have built parts of the
    index. They are ended. If a signal ended the run, neither update the index nor collect garbage.
    """
    if not result.executed.signal_status:
        with helpers or IndexHelpers() as ending:
            if execution.builds_index:
                _index_merged(result, listener, snapshot, ending)
        listener.phase("collecting")
        _collect_garbage(execution, result, listener)
    return replace(result, seconds=round(time.monotonic() - started, 3))


def _collect_garbage(execution: ExecutionSettings, result: RunResult, listener: Listener) -> None:
    change, configuration = read_ci_change(os.environ), execution.configuration
    is_small = change.is_in_ci and configuration.settings.store.keep is None
    keep, needed_by = (KEEP_IN_CI, change) if is_small else (configuration.keep, None)
    collected = collect_garbage_after_run(
        result.store, keep=keep, ran=result.batch, note=listener.note, change=needed_by
    )
    if collected is not None and not collected.is_nothing:
        listener.collected(collected)
        if is_small and collected.batches:
            listener.note(f"in CI, the latest {keep} batches are kept by default; to keep more: [store] keep")


def _index_merged(result: RunResult, listener: Listener, snapshot: Snapshot | None, helpers: IndexHelpers) -> None:
    """Build the index of a merged batch. Do nothing if nothing was executed and the batch already has an index."""
    from codebatch.index.generations import is_indexed

    is_known = result.executed is NOTHING_EXECUTED and is_indexed(result.store, result.batch.id)
    if result.standing.outputs is None or is_known:
        return
    listener.phase("indexing")
    if helpers.has_built_index():
        return
    from codebatch.operations.runs.indexing import build_index  # Deferred: LMDB is only needed for an index.

    try:
        build_index(result.store, result.batch, note=listener.note, snapshot=snapshot, read_piece=helpers.read_piece)
    except CodebatchError as error:  # For example, another process has removed the batch.
        listener.note(f"index not updated: {error.message}")


def make_run_scope(batch: BatchDir, task: str | None) -> RunScope:
    """Return the scope that covers the whole batch, or only one task.

    For a project task, the scope includes its dependencies. Raises InvalidInput.
    """
    if task is None:
        return RunScope()
    plan = batch.plan()
    name = task_name(task)
    if name not in plan.task_names:
        raise InvalidInput(f"the batch has no task {task!r}", hint=f"one of: {', '.join(plan.task_names)}")
    return RunScope(tasks=plan.needed_for(name) if name in plan.project_tasks else frozenset({name}))


def existing_batch_action(state: CurrentState) -> RunAction:
    """Return the action that a run takes for an existing batch."""
    if state.is_settled_and_merged:
        return "up to date" if state.state is BatchState.COMPLETED else "already ended"
    return "joined" if state.holders else "resumed"


def _make_result(
    execution: ExecutionSettings,
    store: StoreDir,
    batch: BatchDir,
    action: RunAction,
    *,
    executed: RunOutcome,
    task: str | None,
    on_phase: PhaseCallback,
) -> RunResult:
    state = read_current_state(batch)
    if state.outputs is not None:
        state.outputs.check_lengths()
    question = BatchQuery(store, batch, is_named=True, note=ignore_note)
    question.on_phase = on_phase
    records = question.records
    summary = summarise(records)
    catalogue = execution.configuration.catalogue.with_imports(batch.about.imports)
    missing = missing_tools(catalogue, records.plan.tasks).keys() & summary.languages.keys()
    custom_tasks = [
        name for name in records.task_names if name in catalogue.custom_locations and not catalogue.unkeyed_input(name)
    ]
    uncovered = {name: mark for name in custom_tasks if (mark := records.uncovered_inputs(name))}
    if action == "up to date":
        uncovered |= {
            name: reason
            for name in records.task_names
            if name in catalogue.commands and (reason := catalogue.unkeyed_input(name))
        }
    unmatched: dict[str, str] = {}
    totals = read_call_totals(batch, catalogue.commands.keys() & records.task_names)
    if not (executed.signal_status or summary.failures):
        # Facts about the calls for reused results are unknown. A task of project scope has one result.
        has_all_calls = executed.executed and not executed.reused
        known = {
            name: total
            for name, total in totals.items()
            if has_all_calls or catalogue.commands[name].table.scope == "project"
        }
        unmatched = tasks_without_files(known, catalogue.commands, summary.languages)
    return RunResult(
        store=store,
        batch=batch,
        action=action,
        seconds=0.0,  # Set by `finish_run`.
        standing=state,
        summary=summary,
        headline=make_headline(question) if state.outputs is None else find_headline(question, state.outputs),
        failures=tuple(read_failures(records, FAILURES_READ_MAX)) if summary.failures else (),
        missing_grammars={language: summary.languages[language] for language in sorted(missing)},
        executed=executed,
        omissions=read_omissions(records, records.task_names),
        tasks_without_files=unmatched,
        inputs_outside_key=uncovered,
        task=task,
    )
