"""The changes of a batch that `apply` may write, and the record that they were written."""

from __future__ import annotations

import os
from collections.abc import Sequence

from codebatch.errors import BatchIncomplete, StoreCorrupt, StoreUnwritable
from codebatch.model.work.application import AppliedChangeSet
from codebatch.model.work.command import CommandId
from codebatch.operations.changes.branch import NewBranch
from codebatch.operations.changes.checks import FileOutcome, FileState
from codebatch.operations.changes.listing import find_changes
from codebatch.operations.changes.task_changes import BatchChanges, TaskChanges, group_by_task
from codebatch.operations.changes.work_changes import check_done, read_work_changes
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.query.filters.paths import PathPatterns
from codebatch.query.status.batch_status import read_current_state
from codebatch.query.status.work_status import read_work_status
from codebatch.scheduling.lifecycle import BatchState
from codebatch.store.batches.batch_directory import is_work
from codebatch.store.work.applications import ApplicationStore
from codebatch.system.clock import wall_ns

_PRESENT_STATES: tuple[FileState | None, ...] = ("written", "applied", None)


def read_applicable_changes(question: BatchQuery, tasks: Sequence[str], path: PathPatterns) -> BatchChanges:
    """Return the changes of a batch that may be applied, by default those of all tasks.

    Raises BatchIncomplete if an analysis is not COMPLETED, or if a named task of a task list is not DONE, and the
    errors of `find_changes` and `read_work_changes`.
    """
    batch = question.batch
    if is_work(batch):
        status = read_work_status(question.store, batch)
        check_done(batch, status, tasks)
        return read_work_changes(question.store, batch, tasks, path, status).only_done()
    _check_completed(question)
    proposed = find_changes(question, tasks, path).result
    root = os.path.realpath(batch.about.project_root)
    if not os.path.isdir(root):
        root = os.path.dirname(root)  # The only source is a file.
    return BatchChanges(tasks=group_by_task(proposed, batch.plan().task_names), root=root, commit=batch.about.commit)


def record_application(
    question: BatchQuery,
    changes: BatchChanges,
    outcomes: Sequence[FileOutcome],
    *,
    root: bytes,
    is_reversed: bool,
) -> None:
    """Record which change sets of a task list are applied now, or not any more. Analyses have no change sets.

    A change set is applied if all its changes were written or applied before. With `is_reversed`, it is not any more if
    one of its changes was undone. If nothing has changed, nothing is recorded.
    """
    states = {outcome.write.path: outcome.state for outcome in outcomes}
    is_chosen = _is_undone if is_reversed else _is_applied
    tasks = [
        task
        for task in changes.tasks
        if is_chosen(task, [states.get(proposed.change.path) for proposed in task.changes])
    ]
    _record_applied(question, tasks, root=root, is_reversed=is_reversed)


def record_branch(question: BatchQuery, changes: BatchChanges, new_branch: NewBranch, *, root: bytes) -> None:
    """Record which change sets of a task list are completely in a new branch."""
    missing = {*new_branch.left_out, *(refused.task for refused in new_branch.refused)}
    tasks = [task for task in changes.tasks if not task.unchosen and task.task not in missing]
    _record_applied(question, tasks, root=root, branch=new_branch.name)


def _record_applied(
    question: BatchQuery,
    tasks: Sequence[TaskChanges],
    *,
    root: bytes,
    is_reversed: bool = False,
    branch: str = "",
) -> None:
    if not is_work(question.batch):
        return
    chosen = {AppliedChangeSet(task=CommandId(task.task), changes=task.change_set) for task in tasks}
    applications = ApplicationStore(question.batch.files, question.batch.root)
    try:
        applied = applications.read_applied()
        new = chosen & applied if is_reversed else chosen - applied
        if new:
            with question.store.writing():
                applications.append(sorted(new), root=root, at_ns=wall_ns(), is_reversed=is_reversed, branch=branch)
    except (StoreCorrupt, StoreUnwritable) as error:
        question.note(f"it cannot be recorded that the changes are applied: {error.message}")


def _is_applied(task: TaskChanges, states: Sequence[FileState | None]) -> bool:
    return not task.unchosen and all(state in _PRESENT_STATES for state in states)


def _is_undone(task: TaskChanges, states: Sequence[FileState | None]) -> bool:
    return "written" in states or _is_applied(task, states)


def _check_completed(question: BatchQuery) -> None:
    batch = question.batch
    state = read_current_state(batch).state
    if state is not BatchState.COMPLETED:
        hint = f"see: codebatch errors --batch {batch.id}"
        if not state.is_final or state is BatchState.CANCELLED:
            hint = f"resume it with: codebatch resume --batch {batch.id}"
        raise BatchIncomplete(
            f"nothing is written: batch {batch.id} is {state.value}, and only a COMPLETED batch can be applied",
            hint=hint,
        )
