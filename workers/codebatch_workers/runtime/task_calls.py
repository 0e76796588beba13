"""Calls of tasks: whatever one raises is a failure at its file, with the traceback as evidence."""

from __future__ import annotations

import traceback  # Not where it is needed: a task may have used up the file descriptors that an import takes.
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from codebatch.errors import ObjectMissing, StoreError
from codebatch_workers.runtime.results import TaskFailure

EVIDENCE_CHARACTERS_MAX = 4000

P = ParamSpec("P")
T = TypeVar("T")


def call_guarded(call: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T | TaskFailure:
    """Return the answer of a task. Whatever it raises, except an error of the store, is a failure."""
    try:
        return call(*arguments, **options)
    except ObjectMissing as error:
        return TaskFailure(reason="object", evidence=error.message)
    except StoreError:
        raise  # What other tasks said cannot be read: no fault of this one, and no outcome.
    except MemoryError:
        return TaskFailure(reason="memory", evidence=_evidence())
    except BaseException:
        return TaskFailure(reason="exception", evidence=_evidence())


def _evidence() -> str:
    """The traceback at hand, as text that can be written: an exception may say anything."""
    text = traceback.format_exc()[-EVIDENCE_CHARACTERS_MAX:]
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
