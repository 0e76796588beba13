"""Calls of tasks. If a task raises an exception, the result is a failure with the traceback as evidence."""

from __future__ import annotations

import traceback  # Imported early, because a task may have used up the file descriptors that an import needs.
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from codebatch.errors import ObjectMissing, StoreError
from codebatch_workers.runtime.results import TaskFailure

EVIDENCE_CHARACTERS_MAX = 4000

P = ParamSpec("P")
T = TypeVar("T")


def call_guarded(call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T | TaskFailure:
    """Call a function and return its result. An exception becomes a failure, except that StoreError is raised.

    ObjectMissing becomes a failure, too: only this file is affected.
    """
    try:
        return call(*arguments, **options)
    except ObjectMissing as error:
        return TaskFailure(reason="object", evidence=error.message)
    except StoreError:
        raise  # The store is unreadable, so any task would fail. This task is not the cause and gets no outcome.
    except MemoryError:
        return TaskFailure(reason="memory", evidence=_evidence())
    except BaseException:
        return TaskFailure(reason="exception", evidence=_evidence())


def _evidence() -> str:
    """Return the end of the current traceback. Characters that are not valid Unicode are escaped."""
    text = traceback.format_exc()[-EVIDENCE_CHARACTERS_MAX:]
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
