"""The batch and the TASK arguments of the commands `changes` and `apply`."""

from __future__ import annotations

import click

from codebatch.cli.framework.completion import complete_task
from codebatch.cli.framework.context import CommandContext
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.ids import latest_offset

changed_tasks_argument = click.argument("tasks", metavar="[TASK]...", nargs=-1, shell_complete=complete_task)


def open_changed_batch(context: CommandContext, reference: str | None) -> BatchQuery:
    """Return a query of the batch whose changes are shown or applied. Without a reference, use the latest analysis."""
    store = context.store_place.open()
    batch = resolve_batch(store, reference, context.report)
    is_named = reference is not None and latest_offset(reference) != 0
    question = BatchQuery(store, batch, is_named=is_named, note=context.note)
    question.on_phase = context.phase
    context.questions.append(question)
    context.batches.append(batch)
    return question
