"""A short reference of the open rule: the state of a command by its rounds and by the requests in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from codebatch.model.digest import Digest
from codebatch.model.work.command import CommandId
from codebatch.model.work.question import coordinator_question_digest
from codebatch.model.work.request import Answer, Open, Request, RequestBody, Set, Skip
from codebatch.model.work.work_batch import TaskPolicy
from codebatch.scheduling.work.events import AttemptOutcome

WAITS_MAX = 100

_STATE_BY_CHOICE = {"again": "open", "failed": "failed", "done": "done"}


def own_of(
    id_: CommandId, policy: TaskPolicy, rounds: Mapping[int, AttemptOutcome], requests: Iterable[Request]
) -> str:
    """Return `open`, `retry`, or the state in which the command ended."""
    bodies = [request.body for request in requests]
    opens = [
        (place, body.rounds[id_]) for place, body in enumerate(bodies) if isinstance(body, Open) and id_ in body.rounds
    ]
    if (skipped := _skipped(id_, rounds, bodies, opens)) is not None:
        return skipped
    state, failures, waits = "open", 0, 0
    for round_, outcome in sorted(rounds.items()):
        waits = waits + (outcome.reason == "limited") if outcome.reason in ("limited", "unbegun") else 0
        is_wait = outcome.reason == "limited" and waits <= WAITS_MAX
        failures += outcome.type == "failed" and not is_wait
        is_last = (
            outcome.reason not in policy.retry_reasons
            or failures > _retries(bodies, id_, round_, policy)
            or outcome.is_final
        )
        if any(over == round_ for _, over in opens):
            state, failures, waits = "open", 0, 0
        elif is_wait:
            state = "retry"
        elif outcome.reason == "unbegun":
            state = "open"
        elif outcome.type == "blocked" and outcome.question:
            state = "open" if _answers(bodies, id_, round_, outcome.question) else "blocked"
        elif outcome.type == "blocked":
            state = _state_by_answer("interrupted", bodies, id_, round_)
        elif outcome.type == "failed" and outcome.reason == "stall" and policy.on_stall == "ask":
            state = _state_by_answer("stall", bodies, id_, round_)
        elif outcome.type == "failed" and is_last and policy.on_exhausted == "ask":
            state = _state_by_answer("exhausted", bodies, id_, round_)
        elif outcome.type == "failed":
            state = "failed" if is_last else "retry"
        else:
            state = {"result": "done", "cancelled": "cancelled"}[outcome.type]
        failures = 0 if state == "open" and outcome.reason != "unbegun" else failures
    return state


def _skipped(
    id_: CommandId,
    rounds: Mapping[int, AttemptOutcome],
    bodies: Sequence[RequestBody],
    opens: Sequence[tuple[int, int]],
) -> str | None:
    begun = [outcome for outcome in rounds.values() if outcome.reason != "unbegun"]
    for place, body in reversed([*enumerate(bodies)]):
        if isinstance(body, Skip) and body.task == id_:
            is_lifted = any(later > place and over >= body.round for later, over in opens)
            if not is_lifted and all(outcome.round <= body.round for outcome in begun):
                has_result = bool(begun) and max(begun, key=lambda outcome: outcome.round).type == "result"
                return "done" if body.marked_done or has_result else "skipped"
            return None
    return None


def _retries(bodies: Sequence[RequestBody], id_: CommandId, round_: int, policy: TaskPolicy) -> int:
    retries = policy.retries
    for body in bodies:
        if isinstance(body, Set) and id_ in body.tasks and body.tasks[id_].after_round < round_:
            value = body.tasks[id_].retries
            retries = retries if value is None else value
    return retries


def _answers(bodies: Iterable[object], id_: CommandId, round_: int, question: Digest) -> list[str]:
    mine = [body for body in bodies if isinstance(body, Answer) and (body.task, body.round) == (id_, round_)]
    return [body.text for body in mine if body.question == question]


def _state_by_answer(kind: str, bodies: Iterable[object], id_: CommandId, round_: int) -> str:
    texts = _answers(bodies, id_, round_, coordinator_question_digest(kind, id_, round_))  # type: ignore[arg-type]
    return next((_STATE_BY_CHOICE[text] for text in texts if text in _STATE_BY_CHOICE), "blocked")
