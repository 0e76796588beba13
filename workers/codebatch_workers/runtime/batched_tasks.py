"""Calls of batched tasks, which pass many files to a tool at a time (`BatchedFileTask`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from codebatch.model.record import Record
from codebatch_workers.api.protocols import BatchedFileTask, FileFailure
from codebatch_workers.runtime.results import TaskFailure, TaskResult
from codebatch_workers.syntax.source import SourceFile


def complete_files(
    task: BatchedFileTask,
    files: Sequence[SourceFile],
    records: Sequence[list[Record]],
    check: Callable[..., list[Record]] | None,
) -> list[TaskResult]:
    """Return the result of each file. `records` are those of `run_file`, and `check` is `validate_records` or None.

    Raises RuntimeError if the task returns another number of results.
    """
    answers = task.complete(files, records)
    if len(answers) != len(files):
        raise RuntimeError(f"the task was given {len(files)} files and returned {len(answers)} results")
    completed: list[TaskResult] = []
    for answer, file in zip(answers, files, strict=True):
        if isinstance(answer, FileFailure):
            completed.append(TaskFailure(reason=answer.reason, evidence=answer.evidence))
        else:
            completed.append(answer if check is None else check(answer, file, partial(_run_on_file, task)))
    return completed


def _run_on_file(task: BatchedFileTask, file: SourceFile) -> list[Record]:
    """Return all values of a task for one file. Raises FileFailure if the task fails."""
    (answer,) = task.complete([file], [task.run_file(file)])
    if isinstance(answer, FileFailure):
        raise answer
    return answer
