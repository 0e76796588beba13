"""The use case `run`: analyse a source tree, from its files to merged outputs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from codebatch.errors import InvalidInput
from codebatch.model.task import task_name
from codebatch.operations.history.checkouts import find_commit
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.project.project_snapshot import nothing_to_do_error, rules_for, take_project_snapshot
from codebatch.operations.project.projects import find_project
from codebatch.operations.project.stores import StoreLocator
from codebatch.operations.runs.execution import ExecutionSettings, Listener, RunAction
from codebatch.operations.runs.planning import choose_pipeline, make_planner
from codebatch.operations.runs.repair import RepairSession
from codebatch.operations.runs.resume import BatchRun, existing_batch_action, finish_run, make_run_scope
from codebatch.operations.runs.run_result import RunResult
from codebatch.query.filters.arguments import path_argument, refuse_invalid_texts
from codebatch.query.status.batch_status import read_current_state
from codebatch.snapshotting.roots import resolve_sources
from codebatch.snapshotting.snapshot import selects_any_file
from codebatch.store.batches.batch_directory import check_name


def run(
    *paths: str | Path,
    store: str | Path | None = None,
    pipeline: str | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    jobs: int | None = None,
    name: str | None = None,
    listener: Listener | None = None,
) -> RunResult:
    """Analyse paths with a pipeline. If a complete batch of the same files, tasks and settings exists, nothing is
    executed.

    Settings and custom tasks are taken from the project that contains the current directory.

    - `store`: the directory of the store. It is created if it does not exist.
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
    return run_paths(
        tuple(map(path_argument, paths)),
        StoreLocator(None if store is None else path_argument(store)),
        ExecutionSettings(configuration=load_configuration(Path.cwd()), jobs=jobs),
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
    listener: Listener,
) -> RunResult:
    """Take a snapshot of paths and choose the batch for it: an existing, adopted or new one. Execute its open work.

    - `name`: given to the batch once it has ended, unless a signal ended the run.
    - `forces_rerun`: create a new batch without reuse, even if a batch exists.
    - `include` replaces the configured patterns; `exclude` is added to them.

    Invalid arguments are reported before anything is written. Raises CodebatchError.
    """
    started = time.monotonic()
    configuration = execution.configuration
    chosen_pipeline = choose_pipeline(configuration, pipeline)
    projects = {path: find_project(path) for path in resolve_sources(paths, None).roots}
    place = place.for_projects(projects.values())
    check_name(name)
    if task is not None and task_name(task) not in chosen_pipeline.tasks:
        raise InvalidInput(
            f"pipeline {chosen_pipeline.name} has no task {task!r}", hint=f"one of: {', '.join(chosen_pipeline.tasks)}"
        )
    rules = rules_for(configuration, include, exclude)
    if not (allow_empty or place.has_store() or selects_any_file(paths, rules)):
        raise nothing_to_do_error(paths)
    store = place.open_or_create_store(listener.note)
    with store.writing() as lock:
        frozen = take_project_snapshot(
            store,
            paths,
            rules,
            listener.note,
            projects=projects,
            allow_empty=allow_empty,
            phase=listener.phase,
        )
        listener.frozen(frozen)
        listener.phase("planning")
        planner = make_planner(
            configuration, store, frozen, chosen_pipeline, listener.note, find_commit(frozen.sources)
        )
        before = planner.latest_batch()
        batch, is_new = planner.find_or_make_batch(forces_new=forces_rerun, reuses=execution.reuses)
        if before is not None and (missing_imports := sorted(before.about.imports.keys() - batch.about.imports.keys())):
            listener.note(
                f"imported findings of {', '.join(missing_imports)} are only in batch {before.id}; "
                "to add them to the new batch, import the reports again"
            )
        state = read_current_state(batch)
        action: RunAction = "new" if is_new else existing_batch_action(state)
        listener.chosen(batch, action)
        work = BatchRun(RepairSession(execution, store, lock, listener), action, started, task, name)
        scope = None if state.is_settled_and_merged else make_run_scope(batch, task)
        result = work.do(batch, scope, frozen.snapshot, planner.find_answering)
    return finish_run(execution, result, listener, frozen.snapshot)
