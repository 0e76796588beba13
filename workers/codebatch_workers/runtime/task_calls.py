"""Calls of tasks. If a task raises an exception, the result of the call is a failure that contains the traceback."""

from __future__ import annotations

import traceback  # Imported early: a task may later use up the file descriptors that an import needs.
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from codebatch.errors import ObjectMissing, StoreError, ToolMismatch
from codebatch_workers.api.protocols import FileFailure
from codebatch_workers.runtime.results import TaskFailure

EVIDENCE_CHARACTERS_MAX = 4000

P = ParamSpec("P")
T = TypeVar("T")


def call_guarded(call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T | TaskFailure:
    """Call a function and return its result. If it raises an exception, return a failure instead.

    A StoreError and a ToolMismatch are raised again, except for ObjectMissing. ObjectMissing becomes a failure, because
    it affects only this file.
    """
    try:
        return call(*arguments, **options)
    except FileFailure as error:
        return TaskFailure(reason=error.reason, evidence=error.evidence)
    except ObjectMissing as error:
        return TaskFailure(reason="object", evidence=error.message)
    except (StoreError, ToolMismatch):
        raise  # The store is unreadable, or a program has changed. The file is not the cause, so it gets no outcome.
    except MemoryError:
        return TaskFailure(reason="memory", evidence=_traceback_end())
    except BaseException:
        return TaskFailure(reason="exception", evidence=_traceback_end())


def _traceback_end() -> str:
    """Return the last part of the current traceback. Characters that are not valid Unicode are escaped."""
    text = traceback.format_exc()[-EVIDENCE_CHARACTERS_MAX:]
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
