"""How it went when a batch of commands was conducted, and what is told where it is not to be."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from codebatch.cli.options import Answering
from codebatch.cli.work_status import answer_work, end_line
from codebatch.work.running import WorkRan
from codebatch.work.trusting import CommandsForeign

Done = TypeVar("Done")


def telling_foreign(answering: Answering, do: Callable[[], Done]) -> Done:
    """Do something; where it would run what somebody else wrote, tell what that is."""
    try:
        return do()
    except CommandsForeign as error:
        for line in error.commands:
            answering.tell(line)
        if error.count > len(error.commands):
            answering.tell(f"… and {error.count - len(error.commands):,} more")
        raise


def answer_ran(answering: Answering, ran: WorkRan, name: str | None = None) -> int:
    """Say how it went; returns the exit status."""
    answer_work(answering, ran, [end_line(ran, ran.seconds)], name=name)
    if ran.signal_status:
        answering.note(f"stopped; go on with: codebatch resume --batch {ran.batch.id}")
        return ran.signal_status
    if ran.shortfall is not None:
        raise ran.shortfall
    return 0
