"""The command `status`: the state of a batch."""

from __future__ import annotations

from codebatch.cli.framework.commands import command
from codebatch.cli.framework.context import CommandContext, batch_option, with_common_options
from codebatch.cli.framework.read_report import explain_option
from codebatch.store.batches.batch_directory import is_work
from codebatch.system.processes.garbage_collector import collector_paused


@command()
@batch_option
@explain_option
@with_common_options
def status(context: CommandContext, batch_reference: str | None) -> None:
    """Show the state and progress of a batch.

    Also lists the processes that work on the batch.
    """
    store, batch = context.batch(batch_reference, "any")
    if is_work(batch):
        from codebatch.cli.answers.work_status import answer_work_summary  # Analyses do not need this import.
        from codebatch.work.control.batches import load_work_batch

        with collector_paused():
            answer_work_summary(context, load_work_batch(store, batch))
        return
    from codebatch.cli.answers.analysis_status import (
        answer_analysis_status,  # Batches of commands do not need this import.
    )

    if answer_analysis_status(context, store, batch):
        context.note(f"resume with: codebatch resume --batch {batch.id}")
