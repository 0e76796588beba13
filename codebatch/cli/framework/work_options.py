"""Options that commands for task lists share with other commands.

This module does not import the code that runs batches.
"""

from __future__ import annotations

from typing import Literal, get_args

import click
import msgspec

from codebatch.cli.framework.commands import option
from codebatch.cli.framework.common_options import common_option

AttemptOutput = Literal["failed", "all", "none"]
ATTEMPT_OUTPUTS: tuple[AttemptOutput, ...] = get_args(AttemptOutput)
"""Values of `--output`: show the last lines of failed tasks, all lines, or nothing."""

trust_option = option(
    "--trust",
    "is_trusted",
    is_flag=True,
    help="Run commands even if the store was not created on this machine",
    details="Without this option, codebatch shows the commands of such a store and does not run them.",
)
output_option = option(
    "--output",
    metavar="WHICH",
    type=click.Choice(ATTEMPT_OUTPUTS),
    default="failed",
    show_default=True,
    help="Output of tasks to show: failed, all or none",
    details="With failed, the last lines of each failed task are shown.",
)

live_batch_option = common_option("batch", default_text="the only running batch")


reload_option = option(
    "--reload",
    "reloads",
    is_flag=True,
    help="Task lists: use the current definitions of tasks that are not done",
)


class ResumeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of `resume` for a batch of commands, with their names in `resume_work`."""

    is_forced: bool
    only: tuple[str, ...]
    blocked: bool
    wait_answers: bool
    reloads: bool
