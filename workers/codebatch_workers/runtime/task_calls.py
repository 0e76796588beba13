"""Calls of tasks that convert exceptions into failures, with the traceback as evidence."""

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
    """Return the result of a task. An exception, except an error of the store, becomes a failure."""
    try:
        return call(*arguments, **options)
    except ObjectMissing as error:
        return TaskFailure(reason="object", evidence=error.message)
    except StoreError:
        raise  # Results of other tasks cannot be read. This is not a failure of this task, so there is no outcome.
    except MemoryError:
        return TaskFailure(reason="memory", evidence=_evidence())
    except BaseException:
        return TaskFailure(reason="exception", evidence=_evidence())


def _evidence() -> str:
    """Return the current traceback as valid text. The message of an exception may contain any characters."""
    text = traceback.format_exc()[-EVIDENCE_CHARACTERS_MAX:]
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
