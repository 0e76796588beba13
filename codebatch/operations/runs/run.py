"""The use case `run`: analyse a source tree, from its files to merged outputs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.project.project_snapshot import nothing_to_do_error
from codebatch.operations.project.stores import StoreLocator, locate_store
from codebatch.operations.runs.execution import ExecutionSettings, Listener, OpenShardExecutor, RunAction
from codebatch.operations.runs.index_helpers import IndexHelpers
from codebatch.operations.runs.repair import RepairSession
from codebatch.operations.runs.resume import BatchRun, existing_batch_action, finish_run, make_run_scope
from codebatch.operations.runs.run_request import prepare_request
from codebatch.operations.runs.run_result import RunResult
from codebatch.query.filters.arguments import path_argument, refuse_invalid_texts
from codebatch.query.status.batch_status import read_current_state
from codebatch.snapshotting.snapshot import selects_any_file
from codebatch.store.batches.batch_directory import BatchDir, check_name


def run(
    *paths: str | Path,
    store: str | Path | None = None,
    pipeline: str | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    jobs: int | None = None,
    name: str | None = None,
    commands: bool = True,
    project: str | Path | None = None,
    listener: Listener | None = None,
) -> RunResult:
    """Analyse paths with a pipeline. If a complete batch of the same files, tasks and settings exists, nothing is
    executed.

    - `project`: a directory of the project from which settings and custom tasks are taken, by default the current
      directory. Settings of other projects are never used, because they can name programs.
    - `store`: the directory of the store. It is created if it does not exist.
    - `commands`: run tasks that call a program, and custom tasks. If false, they are left out.
    - `name`: a name for the batch. If another batch has this name, that batch loses the name.

    If the main thread calls this function, SIGINT, SIGTERM and SIGHUP end the run early, and
    `RunResult.executed.signal_status` is the exit status of the signal. If such a signal arrives during a repair,
    Stopped is raised. In other threads, the caller must handle these signals.

    Raises CodebatchError or OSError. Failures of files are described by `RunResult.shortfall`.

    Example:

        ran = codebatch.run("src", store="/tmp/store")
        print(ran.batch.id, ran.is_complete)
    """
    refuse_invalid_texts(include=include, exclude=exclude)
    place = locate_store(store, project)
    configuration = load_configuration(place.directory)
    return run_paths(
        tuple(map(path_argument, paths)),
        place,
        ExecutionSettings(configuration=configuration if commands else configuration.without_commands(), jobs=jobs),
        pipeline=pipeline,
        include=tuple(include),
        exclude=tuple(exclude),
        name=name,
        listener=listener or Listener(),
    )


def run_paths(
    paths: tuple[Path, ...],
    place: StoreLocator,
    execution: ExecutionSettings,
    *,
    pipeline: str | None = None,
    task: str | None = None,
    name: str | None = None,
    forces_rerun: bool = False,
    include: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
    allow_empty: bool = False,
    opens_engine: OpenShardExecutor | None = None,
    listener: Listener,
) -> RunResult:
    """Take a snapshot of paths and choose the batch for it: an existing, adopted or new one. Execute its open work.

    - `opens_engine`: opens an engine, which executes the file tasks. This machine executes the rest.
    - `name`: given to the batch once it has ended, unless a signal ended the run.
    - `forces_rerun`: create a new batch without reuse, even if a batch exists.
    - `include` replaces the configured patterns; `exclude` is added to them.

    Invalid arguments are reported before anything is written. Raises CodebatchError.
    """
    started = time.monotonic()
    if execution.configuration.unread_note:
        listener.note(execution.configuration.unread_note)
    request = prepare_request(paths, place, execution, pipeline, task, include, exclude)
    check_name(name)
    if not (allow_empty or request.place.has_store() or selects_any_file(paths, request.rules)):
        raise nothing_to_do_error(paths)
    with contextlib.ExitStack() as resources:
        executes_shards = None if opens_engine is None else resources.enter_context(opens_engine())
        store = request.place.open_or_create_store(listener.note)
        helpers = resources.enter_context(IndexHelpers())
        with store.writing() as lock:
            frozen, planner = request.freeze(store, listener, allow_empty=allow_empty)
            before = planner.latest_batch()
            batch, is_new = planner.find_or_make_batch(forces_new=forces_rerun, reuses=execution.reuses)
            _note_missing_imports(before, batch, listener)
            state = read_current_state(batch)
            action: RunAction = "new" if is_new else existing_batch_action(state)
            listener.chosen(batch, action)
            work = BatchRun(RepairSession(execution, store, lock, listener), action, task, name, helpers)
            scope = None if state.is_settled_and_merged else make_run_scope(batch, task)
            if scope is not None and task is None and execution.builds_index:
                helpers.start_words(store, batch, frozen.snapshot, jobs=execution.workers_max)
            if scope is not None and executes_shards is not None:
                is_cancelled = not executes_shards(execution, store, batch, frozen.snapshot, listener)
                scope = None if is_cancelled else scope
            result = work.do(batch, scope, frozen.snapshot, planner.find_answering)
        return finish_run(execution, started, result, listener, frozen.snapshot, helpers)


def _note_missing_imports(before: BatchDir | None, batch: BatchDir, listener: Listener) -> None:
    """Note the imported findings of the latest batch that the new batch lacks."""
    if before is not None and (missing := sorted(before.about.imports.keys() - batch.about.imports.keys())):
        listener.note(
            f"imported findings of {', '.join(missing)} are only in batch {before.id}; "
            "to add them to the new batch, import the reports again"
        )
