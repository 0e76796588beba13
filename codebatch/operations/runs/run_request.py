"""The request of a run: its paths, pipeline, store and file patterns, checked before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.project import ProjectRoot
from codebatch.model.task import Pipeline, task_name
from codebatch.operations.history.checkouts import find_commit
from codebatch.operations.project.project_snapshot import ProjectSnapshot, rules_for, take_project_snapshot
from codebatch.operations.project.projects import find_project
from codebatch.operations.project.stores import StoreLocator
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.operations.runs.planning import BatchPlanner, choose_pipeline, make_planner
from codebatch.snapshotting.roots import resolve_sources
from codebatch.snapshotting.selection import SourceRules
from codebatch.store.batches.store_directory import StoreDir

RunArguments = tuple[
    tuple[Path, ...],
    StoreLocator,
    ExecutionSettings,
    str | None,
    str | None,
    tuple[str, ...],
    tuple[str, ...],
]
"""The arguments of `prepare_request`."""


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The checked arguments of a run. `projects` maps the paths to their projects."""

    execution: ExecutionSettings
    paths: tuple[Path, ...]
    pipeline: Pipeline
    projects: Mapping[bytes, ProjectRoot]
    place: StoreLocator
    rules: SourceRules

    def freeze(self, store: StoreDir, listener: Listener, *, allow_empty: bool) -> tuple[ProjectSnapshot, BatchPlanner]:
        """Take a snapshot of the paths. Return it with the planner of the pipeline over it.

        The caller holds the lock that `StoreDir.writing` returns. Raises CodebatchError.
        """
        configuration = self.execution.configuration
        frozen = take_project_snapshot(
            store,
            self.paths,
            self.rules,
            listener.note,
            projects=self.projects,
            allow_empty=allow_empty,
            phase=listener.phase,
        )
        listener.frozen(frozen)
        listener.phase("planning")
        planner = make_planner(configuration, store, frozen, self.pipeline, listener.note, find_commit(frozen.sources))
        return frozen, planner


def prepare_request(
    paths: tuple[Path, ...],
    place: StoreLocator,
    execution: ExecutionSettings,
    pipeline: str | None,
    task: str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
) -> RunRequest:
    """Check the arguments of a run and find its store. Nothing is written. Raises InvalidInput.

    `include` replaces the configured patterns; `exclude` is added to them.
    """
    configuration = execution.configuration
    chosen_pipeline = choose_pipeline(configuration, pipeline)
    projects = {path: find_project(path) for path in resolve_sources(paths, None).roots}
    if task is not None and task_name(task) not in chosen_pipeline.tasks:
        raise InvalidInput(
            f"pipeline {chosen_pipeline.name} has no task {task!r}", hint=f"one of: {', '.join(chosen_pipeline.tasks)}"
        )
    return RunRequest(
        execution=execution,
        paths=paths,
        pipeline=chosen_pipeline,
        projects=projects,
        place=place.for_projects(projects.values()),
        rules=rules_for(configuration, include, exclude),
    )
