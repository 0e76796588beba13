"""Errors for queries that need a task that the batch does not have. Each names the pipelines that have the task."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from codebatch.errors import TaskNotRun
from codebatch.model.task import PIPELINES


def task_not_run_error(message: str, tasks: Collection[str], *, hint: str | None = None) -> TaskNotRun:
    """Return the error that the batch has none of some tasks. Each of these tasks can give the answer.

    The hint names the built-in pipelines that have one of the tasks. If there are none, it is `hint`.
    """
    names = [name for name, pipeline in PIPELINES.items() if not set(tasks).isdisjoint(pipeline.tasks)]
    return TaskNotRun(message, tasks=tuple(tasks), hint=pipelines_hint(names) or hint)


def pipelines_hint(names: Sequence[str]) -> str:
    """Return the hint to run one of some pipelines. Empty if there are none."""
    if not names:
        return ""
    first, *others = names
    more = f"; also in the pipeline{'s' if others[1:] else ''} {', '.join(others)}" if others else ""
    return f"run with: codebatch run --pipeline {first}{more}"
