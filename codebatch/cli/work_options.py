"""Options that commands for batches of commands share with others. Imports nothing that conducts."""

from __future__ import annotations

from typing import Literal, get_args

import click
import msgspec

Output = Literal["failed", "all", "none"]
OUTPUTS: tuple[Output, ...] = get_args(Output)
"""What of tasks' output is shown: the last lines of what failed, every line, nothing."""

trust_option = click.option(
    "--trust", "is_trusted", is_flag=True, help="Run commands of a store that was not made here by you."
)
output_option = click.option(
    "--output",
    type=click.Choice(OUTPUTS),
    default="failed",
    help="What is shown of what tasks print: the last lines of those that failed (default), all lines, none.",
)

live_batch_option = click.option(
    "--batch", "batch_reference", metavar="ID", help="A batch of commands. Default: the only one that is at work."
)


reload_option = click.option(
    "--reload", "reloads", is_flag=True, help="Of commands: use changed definitions of tasks that are not done."
)


class WorkWishes(msgspec.Struct, frozen=True, kw_only=True):
    """Options of `resume` for a batch of commands, as `resume_work` has them."""

    is_forced: bool
    only: tuple[str, ...]
    blocked: bool
    wait_answers: bool
    reloads: bool
