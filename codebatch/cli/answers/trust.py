"""The display of commands that did not run because their store is untrusted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from codebatch.cli.framework.context import CommandContext
from codebatch.work.control.trust import ForeignCommands

Result = TypeVar("Result")


def explaining_untrusted_commands(context: CommandContext, function: Callable[[], Result]) -> Result:
    """Call a function and return its result.

    If the function raises ForeignCommands, first print the commands that did not run.
    """
    try:
        return function()
    except ForeignCommands as error:
        for line in error.commands:
            context.report(line)
        if error.count > len(error.commands):
            context.report(f"… and {error.count - len(error.commands):,} more")
        raise
