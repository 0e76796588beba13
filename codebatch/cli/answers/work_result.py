"""The result of a run of a batch of commands."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection
from pathlib import Path

from msgspec import UNSET, UnsetType

from codebatch.cli.answers.work_status import answer_work_status, end_line
from codebatch.cli.framework.context import CommandContext
from codebatch.errors import NothingLeft
from codebatch.query.status.unrecorded_work import unrecorded_work_text
from codebatch.scheduling.lifecycle import BatchState
from codebatch.store.batches.batch_directory import open_batch
from codebatch.work.control.batches import WorkBatch, load_work_batch
from codebatch.work.control.history import OlderBatch
from codebatch.work.control.run import WorkRunResult
from codebatch.work.control.status import failure_reason_text


def answer_work_run(
    context: CommandContext,
    result: WorkRunResult,
    name: str | None = None,
    older: OlderBatch | UnsetType | None = UNSET,
) -> int:
    """Print the result of a run. Return the exit status, or raise the error for tasks that are not done."""
    lines = [end_line(result, result.seconds)]
    answer_work_status(context, result, lines, name=name, changes=result.changes, older=older)
    if (unapplied := result.unapplied).tasks:
        context.note(f"{unapplied.text} not applied; next: codebatch changes --batch {result.batch.id}")
    report_unrecorded(context, result)
    if result.signal_status:
        if result.standing.state is not BatchState.COMPLETED:
            name = signal.Signals(result.signal_status - 128).name
            context.note(f"stopped by {name}; resume with: codebatch resume --batch {result.batch.id}")
        return result.signal_status
    if result.shortfall is not None:
        raise result.shortfall
    return 0


def report_unrecorded(context: CommandContext, work_batch: WorkBatch, tasks: Collection[str] | None = None) -> bool:
    """Report which work of tasks their changes do not record, by default of all tasks. Return whether there is any."""
    unrecorded = work_batch.unrecorded
    chosen = unrecorded if tasks is None else tasks
    partial = [command for command in work_batch.standing.commands if command.id in chosen]
    for command in partial:
        tree = work_batch.kept_tree(command)
        place = "its tree was not kept" if tree is None else f"it is in {tree}"
        is_partial = command.id in unrecorded
        text = (
            unrecorded_work_text(command.unrecorded, unrecorded[command.id])
            if is_partial
            else failure_reason_text("check", None)
        )
        context.report(f"{command.id}: {text}; {place}")
    return bool(partial)


def report_all_done(context: CommandContext, nothing_left: NothingLeft) -> int:
    """Report that all selected tasks are already done, and print the latest batch of the list.

    Return the exit status.
    """
    store = context.store_place.for_directory(Path(os.fsdecode(nothing_left.root))).open()
    answer_work_status(context, load_work_batch(store, open_batch(store, nothing_left.batch)), [])
    context.report(nothing_left.message)
    return 0
