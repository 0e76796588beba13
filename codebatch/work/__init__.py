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
    from codebatch.query.status.work_status import CommandStatus, WorkBatchStatus
    from codebatch.work.api import (
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
    from codebatch.work.control.attempts import AttemptInfo
    from codebatch.work.control.batches import WorkBatch
    from codebatch.work.control.listener import CommandEnded, CommandRunning, CommandStopped, WorkListener, WorkProgress
    from codebatch.work.control.questions import OpenQuestion
    from codebatch.work.control.run import WorkRunResult

__all__ = [
    "AttemptInfo",
    "CommandEnded",
    "CommandRunning",
    "CommandStatus",
    "CommandStopped",
    "OpenQuestion",
    "WorkBatch",
    "WorkBatchStatus",
    "WorkListener",
    "WorkProgress",
    "WorkRunResult",
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

_EXPORTED_NAMES = {
    "query.status.work_status": "CommandStatus WorkBatchStatus",
    "work.api": (
        "answer attempts cancel change get iter_batches iter_events pause questions resume retry skip start unpause"
    ),
    "work.control.attempts": "AttemptInfo",
    "work.control.batches": "WorkBatch",
    "work.control.listener": "CommandEnded CommandRunning CommandStopped WorkListener WorkProgress",
    "work.control.questions": "OpenQuestion",
    "work.control.run": "WorkRunResult",
}
"""Public names by module."""

if not TYPE_CHECKING:  # If type checkers saw `__getattr__`, they would not report names that do not exist.

    def __getattr__(name: str) -> object:
        for module, names in _EXPORTED_NAMES.items():
            if name in names.split():
                value = globals()[name] = getattr(importlib.import_module(f"codebatch.{module}"), name)
                return value
        raise AttributeError(f"module 'codebatch.work' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
