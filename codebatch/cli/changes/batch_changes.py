"""The batch and the TASK arguments of the commands `changes` and `apply`."""

from __future__ import annotations

import click
from msgspec import UNSET

from codebatch.cli.framework.completion import complete_task
from codebatch.cli.framework.context import CommandContext
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.store.batches.batch_directory import BatchDir, is_work
from codebatch.store.batches.resolution import iter_project_batches, resolve_batch
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.ids import latest_offset
from codebatch.store.work.work_batches import read_work
from codebatch.work.control.batch_selection import select_latest

changed_tasks_argument = click.argument("tasks", metavar="[TASK]...", nargs=-1, shell_complete=complete_task)


def open_changed_batch(context: CommandContext, reference: str | None, *, is_change: bool = False) -> BatchQuery:
    """Return a query of the batch whose changes are shown or, with `is_change`, applied.

    Without a reference, and for `latest`, it is the latest batch of the project that can have changes: an analysis, or
    a task list with isolated tasks, as in `select_latest`.
    """
    store = context.store_place.open()
    is_latest = reference is None or latest_offset(reference) == 0
    batch = _latest_changed_batch(store, context, is_change=is_change) if is_latest else None
    if batch is None:
        is_id = reference is not None and latest_offset(reference) is None
        batch = resolve_batch(store, reference, context.report, kind="any" if is_id else "analysis")
    question = BatchQuery(store, batch, is_named=not is_latest, note=context.note)
    question.on_phase = context.phase
    context.questions.append(question)
    context.batches.append(batch)
    context.report_other_directory(store, batch, reference)
    return question


def _latest_changed_batch(store: StoreDir, context: CommandContext, *, is_change: bool) -> BatchDir | None:
    batches = iter_project_batches(store, context.report, kind="any")
    changed = (batch for batch in batches if not is_work(batch) or read_work(batch).trees is not UNSET)
    return select_latest(store, changed, is_change=is_change)
