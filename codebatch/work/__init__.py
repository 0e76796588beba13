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
    from codebatch.operations.changes.changed_files import ChangedFile
    from codebatch.operations.queries.batch_status import StatusAnswer
    from codebatch.query.status.work_status import CommandStatus, WorkBatchStatus
    from codebatch.work.api import (
        answer,
        attempts,
        cancel,
        change,
        changes,
        get,
        iter_batches,
        iter_events,
        open_events,
        pause,
        questions,
        read_log,
        resume,
        retry,
        skip,
        start,
        unpause,
    )
    from codebatch.work.control.attempts import AttemptInfo
    from codebatch.work.control.batches import WorkBatch
    from codebatch.work.control.event_feed import AnalysisProgress, EventFeed
    from codebatch.work.control.listener import CommandEnded, CommandRunning, CommandStopped, WorkListener, WorkProgress
    from codebatch.work.control.logs import LogPart
    from codebatch.work.control.questions import OpenQuestion
    from codebatch.work.control.run import WorkRunResult
    from codebatch.work.control.status import WorkStatus, WorkTaskRow

__all__ = [
    "AnalysisProgress",
    "AttemptInfo",
    "ChangedFile",
    "CommandEnded",
    "CommandRunning",
    "CommandStatus",
    "CommandStopped",
    "EventFeed",
    "LogPart",
    "OpenQuestion",
    "StatusAnswer",
    "WorkBatch",
    "WorkBatchStatus",
    "WorkListener",
    "WorkProgress",
    "WorkRunResult",
    "WorkStatus",
    "WorkTaskRow",
    "answer",
    "attempts",
    "cancel",
    "change",
    "changes",
    "get",
    "iter_batches",
    "iter_events",
    "open_events",
    "pause",
    "questions",
    "read_log",
    "resume",
    "retry",
    "skip",
    "start",
    "unpause",
]

_EXPORTED_NAMES = {
    "operations.changes.changed_files": "ChangedFile",
    "operations.queries.batch_status": "StatusAnswer",
    "query.status.work_status": "CommandStatus WorkBatchStatus",
    "work.api": (
        "answer attempts cancel change changes get iter_batches iter_events open_events pause questions read_log "
        "resume retry skip start unpause"
    ),
    "work.control.attempts": "AttemptInfo",
    "work.control.batches": "WorkBatch",
    "work.control.event_feed": "AnalysisProgress EventFeed",
    "work.control.listener": "CommandEnded CommandRunning CommandStopped WorkListener WorkProgress",
    "work.control.logs": "LogPart",
    "work.control.questions": "OpenQuestion",
    "work.control.run": "WorkRunResult",
    "work.control.status": "WorkStatus WorkTaskRow",
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
