"""What is told where commands are not run, for somebody else wrote them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from codebatch.cli.framework.context import CommandContext
from codebatch.work.control.trust import CommandsForeign

Done = TypeVar("Done")


def explaining_untrusted_commands(answering: CommandContext, do: Callable[[], Done]) -> Done:
    """Do something; where it would run what somebody else wrote, tell what that is."""
    try:
        return do()
    except CommandsForeign as error:
        for line in error.commands:
            answering.tell(line)
        if error.count > len(error.commands):
            answering.tell(f"… and {error.count - len(error.commands):,} more")
        raise
