"""Classification of ended calls: a valid answer, a damaged one, a loss, or an error that ends the run."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import msgspec

from codebatch.coordinator.engines.capsules import codebatch_version
from codebatch.coordinator.engines.foreign_objects import describe_error
from codebatch.coordinator.engines.ports import ReceivedAnswer
from codebatch.errors import CodebatchError, ToolMismatch, make_error
from codebatch.model.capsule import AnswerHeader
from codebatch.model.digest import Digest
from codebatch.scheduling.analysis.part_dispatcher import EnginePart

Records = TypeVar("Records")

_VERSIONS_HINT = "install the same versions there, then check all workers: codebatch engine check --on URL"
_CAUSES_MAX = 10


class PartLoss(msgspec.Struct, frozen=True):
    """A call that ended without an answer."""

    reason: str


class PartDamage(msgspec.Struct, frozen=True):
    """An answer that is damaged, or does not belong to the part."""

    reason: str


class PartRefusal(msgspec.Struct, frozen=True):
    """A part that a machine could not execute, for a reason that holds for all parts."""

    error: CodebatchError


def classify_result(
    future: Future[bytes],
    part: EnginePart,
    *,
    engine: str,
    plan_digest: Digest,
    read_answer: Callable[[bytes], tuple[AnswerHeader, Records]],
) -> ReceivedAnswer[Records] | PartLoss | PartDamage | PartRefusal:
    """Return the result of a call that has ended. `engine` is the name of the engine."""
    if future.cancelled():
        return PartLoss("it was cancelled")
    error = future.exception()
    if error is not None:
        if _is_codebatch_missing(error):
            return PartRefusal(
                ToolMismatch(
                    f"a worker of {engine} cannot import codebatch {codebatch_version()}: {describe_error(error)}",
                    hint=_VERSIONS_HINT,
                )
            )
        return PartLoss(describe_error(error))
    answer = future.result()
    if not isinstance(answer, bytes):
        return PartDamage(f"a value of the type {type(answer).__name__}")
    try:
        header, records = read_answer(answer)
    except ValueError as damage:
        return PartDamage(describe_error(damage))
    if header.refusal is not None:
        # A machine with another version cannot read the capsule, so its refusal may name neither plan nor shards.
        refusal = header.refusal
        return PartRefusal(
            make_error(
                refusal.code,
                f"{header.host} cannot execute a part: {refusal.message}",
                refusal.hint or _VERSIONS_HINT,
            )
        )
    if header.plan_digest != plan_digest:
        return PartDamage(f"{header.host} answered for another plan")
    if sorted(header.shards) != sorted(part.shards):
        return PartDamage(f"{header.host} answered for another part")
    return ReceivedAnswer(part=part, header=header, records=records)


def _is_codebatch_missing(error: BaseException) -> bool:
    """Return whether a process of the engine could not import `run_part`. Engines may wrap this error in others."""
    cause: BaseException | None = error
    for _ in range(_CAUSES_MAX):  # Exceptions of a foreign process may be causes of themselves.
        if isinstance(cause, ImportError):
            return True
        if isinstance(cause, AttributeError) and "Can't get attribute" in describe_error(cause):  # Raised by pickle.
            return True
        cause = None if cause is None else cause.__cause__
    return False
