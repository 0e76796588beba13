"""Previews of runs: the tasks, tools and files of a run, and how many results are cached. No task is executed."""

from __future__ import annotations

import msgspec

from codebatch.coordinator.analysis.adoption import ReuseSource
from codebatch.model.analysis.result_key import PlanItems
from codebatch.model.entry import display_path
from codebatch.model.plan import needed_tasks, plan_items
from codebatch.model.task import task_name
from codebatch.operations.project.stores import open_or_temporary_store
from codebatch.operations.queries.batches import task_states
from codebatch.operations.runs.execution import Listener
from codebatch.operations.runs.planning import BatchPlanner
from codebatch.operations.runs.run_request import RunRequest
from codebatch.store.results.bases import find_bases
from codebatch.store.results.untrusted import untrusted_keys


class TaskPreview(msgspec.Struct, frozen=True, kw_only=True):
    """A task of a run.

    - `tools`: the distributions that can change its results, with their versions.
    - `results`: the number of results: one for each file, or one if the task runs once per project.
    - `cached`: the number of these results that earlier batches have.
    """

    task_id: str
    version: str
    scope: str
    tools: dict[str, str]
    results: int
    cached: int


class RunPreview(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch run --dry-run`.

    - `paths`: the paths of the project to which the run is restricted.
    - `bytes`: the size of the files.
    - `batch_id`: the existing batch of the same files, tasks and settings, or null. The run resumes or uses it.
    """

    pipeline: str
    project: str
    paths: tuple[str, ...]
    files: int
    bytes: int
    batch_id: str | None
    tasks: tuple[TaskPreview, ...]

    @property
    def results(self) -> int:
        """The number of results of all tasks."""
        return sum(task.results for task in self.tasks)

    @property
    def cached(self) -> int:
        """The number of cached results of all tasks."""
        return sum(task.cached for task in self.tasks)


def preview_run(
    request: RunRequest, task: str | None, listener: Listener, *, forces_rerun: bool, allow_empty: bool
) -> RunPreview:
    """Return what a run would do. No batch is created and no task is executed.

    The snapshot is stored in the store, so that the run need not read the files again. If there is no store, the
    snapshot is stored in a temporary one. `task` and `forces_rerun` are as for the run. Raises CodebatchError.
    """
    reuses = request.execution.reuses and not forces_rerun
    with open_or_temporary_store(request.place) as store, store.writing():
        frozen, planner = request.freeze(store, listener, allow_empty=allow_empty)
        existing = None if forces_rerun else planner.find()
        if existing is not None:
            batch_id: str | None = existing[0].id
            cached = {state.task_id: state.files_done for state in task_states(store, existing[0])}
        else:
            batch_id = None
            cached = _count_cached(planner) if reuses else {}
        chosen = _chosen_tasks(planner, task)
        return RunPreview(
            pipeline=planner.pipeline,
            project=", ".join(map(display_path, frozen.sources)),
            paths=tuple(map(display_path, frozen.paths)),
            files=frozen.files,
            bytes=frozen.size_bytes,
            batch_id=batch_id,
            tasks=tuple(
                TaskPreview(
                    task_id=planned.name,
                    version=planned.version,
                    scope=planned.scope,
                    tools=planned.tools,
                    results=frozen.files if planned.scope == "file" else 1,
                    cached=cached.get(planned.name, 0),
                )
                for planned in planner.tasks
                if planned.name in chosen
            ),
        )


def _count_cached(planner: BatchPlanner) -> dict[str, int]:
    """Return for each task how many results a new batch would reuse."""
    store, plan, snapshot = planner.store, planner.plan(), planner.frozen.snapshot
    bases = find_bases(store, planner.frozen.sources, planner.pipeline, planner.tasks)
    source = ReuseSource(store, planner.catalogue, bases, untrusted_keys(store), snapshot)
    return source.count_reusable(plan, PlanItems(plan_items(snapshot.entries, plan.paths), plan.contexts))


def _chosen_tasks(planner: BatchPlanner, task: str | None) -> frozenset[str]:
    """Return the tasks that a run executes: all, or one. For a project task, the tasks that it needs are added."""
    if task is None:
        return frozenset(planned.name for planned in planner.tasks)
    name = task_name(task)
    is_project = any(planned.scope == "project" for planned in planner.tasks if planned.name == name)
    return needed_tasks(planner.tasks, name) if is_project else frozenset({name})
