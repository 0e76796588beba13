"""Task lists: run commands in dependency order, and resume them after any interruption.

    from codebatch import work
    ran = work.start("work.toml")
    print(ran.standing.counts, ran.shortfall)

This package contains all public names. Each name is imported on first use. Invalid input and failures raise
CodebatchError.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codebatch.query.work import CommandStanding, WorkStanding
    from codebatch.work.attempts_made import AttemptMade
    from codebatch.work.calls import (
        answer,
        attempts,
        cancel,
        change,
        get,
        iter_batches,
        iter_events,
        pause,
        questions,
        resume,
        retry,
        skip,
        start,
        unpause,
    )
    from codebatch.work.listening import CommandEnded, CommandRunning, CommandStopped, WorkListener, WorkProgress
    from codebatch.work.open_questions import OpenQuestion
    from codebatch.work.running import WorkRan
    from codebatch.work.standing import WorkBatch

__all__ = [
    "AttemptMade",
    "CommandEnded",
    "CommandRunning",
    "CommandStanding",
    "CommandStopped",
    "OpenQuestion",
    "WorkBatch",
    "WorkListener",
    "WorkProgress",
    "WorkRan",
    "WorkStanding",
    "answer",
    "attempts",
    "cancel",
    "change",
    "get",
    "iter_batches",
    "iter_events",
    "pause",
    "questions",
    "resume",
    "retry",
    "skip",
    "start",
    "unpause",
]

_NAMES = {
    "query.work": "CommandStanding WorkStanding",
    "work.attempts_made": "AttemptMade",
    "work.calls": "answer attempts cancel change get iter_batches iter_events pause questions resume retry skip start "
    "unpause",
    "work.listening": "CommandEnded CommandRunning CommandStopped WorkListener WorkProgress",
    "work.open_questions": "OpenQuestion",
    "work.running": "WorkRan",
    "work.standing": "WorkBatch",
}
"""By module."""

if not TYPE_CHECKING:  # Who checks types is to see a name that there is not.

    def __getattr__(name: str) -> object:
        for module, names in _NAMES.items():
            if name in names.split():
                value = globals()[name] = getattr(importlib.import_module(f"codebatch.{module}"), name)
                return value
        raise AttributeError(f"module 'codebatch.work' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
