"""The command `cancel`.

The request should take effect as soon as possible. So modules that are needed only later are imported after the request
was written.
"""

from __future__ import annotations

import click

from codebatch.cli.answers.trust import explaining_untrusted_commands
from codebatch.cli.answers.work_status import answer_work_status, status_summary
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.context import CommandContext, with_common_options
from codebatch.cli.framework.work_options import live_batch_option, trust_option
from codebatch.cli.output.progress import ProgressStage
from codebatch.errors import InvalidInput
from codebatch.model.work.command import CommandId
from codebatch.store.batches.batch_directory import is_work
from codebatch.work.control import cancel as cancelling
from codebatch.work.control.listener import WorkListener, WorkProgress
from codebatch.work.definition.tables import SECONDS_MAX

_RUNNING_SHOWN_MAX = 3


class CancelListener(WorkListener):
    """A listener for a cancellation.

    While the command waits for processes and tasks to end, it prints them on standard error.
    """

    def __init__(self, context: CommandContext) -> None:
        self._context = context

    def note(self, text: str) -> None:
        self._context.note(text)

    def waiting(self, running: tuple[CommandId, ...], process_text: str) -> None:
        more = f" and {len(running) - _RUNNING_SHOWN_MAX:,} more" if len(running) > _RUNNING_SHOWN_MAX else ""
        tasks = f"{', '.join(running[:_RUNNING_SHOWN_MAX])}{more} of " if running else ""
        self._context.display.show_stage(ProgressStage(f"waiting for {tasks}{process_text}"))

    def update(self, progress: WorkProgress) -> None:
        running_ids = ", ".join(command.id for command in progress.running[:_RUNNING_SHOWN_MAX])
        self._context.display.show_stage(ProgressStage(f"waiting for {running_ids}" if running_ids else "ending"))


def _refuse_infinite(_: click.Context, __: click.Parameter, seconds: float | None) -> float | None:
    # For NaN, `seconds <= SECONDS_MAX` is false, so this condition refuses NaN too.
    if seconds is not None and not seconds <= SECONDS_MAX:
        raise InvalidInput(f"--grace must be from 0 to {SECONDS_MAX:,}, not {seconds}")
    return seconds


@command()
@live_batch_option
@option(
    "--grace",
    type=click.FloatRange(min=0),
    callback=_refuse_infinite,
    metavar="SECONDS",
    default_text="grace period of each task",
    help="Task lists: grace period before running tasks are killed",
)
@option("--force", "is_forced", is_flag=True, help="First kill the processes that run the batch on this host")
@option("--no-wait", is_flag=True, help="Do not wait until the batch has ended")
@trust_option
@with_common_options
def cancel(
    context: CommandContext,
    batch_reference: str | None,
    grace: float | None,
    is_forced: bool,
    no_wait: bool,
    is_trusted: bool,
) -> int:
    """Cancel a running batch.

    The batch may run in another terminal, in the background or on another host. `codebatch resume` continues a
    cancelled batch.

    Running tasks of a task list are terminated, and killed after the grace period. Workers of an analysis finish their
    current file. Results so far are kept.
    """
    store, batch = context.live_batch(batch_reference, "any")
    if not is_work(batch):
        if grace is not None or is_trusted:
            raise InvalidInput("--grace and --trust apply only to task lists", hint=f"batch {batch.id} is an analysis")
        cancelling.cancel_analysis(batch, is_forced=is_forced, waits=not no_wait, listener=CancelListener(context))
        from codebatch.cli.answers.analysis_status import answer_analysis_status  # The import follows the request.

        context.batches.append(batch)
        answer_analysis_status(context, store, batch, name="cancel")
        return 0
    work_batch = explaining_untrusted_commands(
        context,
        lambda: cancelling.cancel_batch(
            store,
            batch,
            grace_seconds=grace,
            is_forced=is_forced,
            waits=not no_wait,
            is_trusted=is_trusted,
            listener=CancelListener(context),
        ),
    )
    is_ended = (
        work_batch.standing.state.is_final
        and work_batch.standing.coordinator is None
        and not work_batch.standing.workers
    )
    how = "" if is_ended else "; running tasks are being stopped"
    answer_work_status(context, work_batch, [f"{work_batch.standing.state.value}: {status_summary(work_batch)}{how}"])
    return 0
