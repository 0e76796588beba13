"""The open rule once more, as short as it can be said: what a command is, by its rounds and by requests in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from codebatch.model.digest import Digest
from codebatch.model.work.command import CommandId
from codebatch.model.work.question import coordinator_question_digest
from codebatch.model.work.request import Answer, Open, Request, RequestBody, Skip
from codebatch.model.work.work_batch import TaskPolicy
from codebatch.scheduling.work.events import AttemptOutcome

WAITS_MAX = 100

_OURS = {"again": "open", "failed": "failed", "done": "done"}


def own_of(
    id_: CommandId, policy: TaskPolicy, rounds: Mapping[int, AttemptOutcome], requests: Iterable[Request]
) -> str:
    """`open`, `retry`, or what it ended as."""
    bodies = [request.body for request in requests]
    opens = [
        (place, body.rounds[id_]) for place, body in enumerate(bodies) if isinstance(body, Open) and id_ in body.rounds
    ]
    if (skipped := _skipped(id_, rounds, bodies, opens)) is not None:
        return skipped
    found, failures, waits = "open", 0, 0
    for round_, one in sorted(rounds.items()):
        waits = waits + (one.reason == "limited") if one.reason in ("limited", "unbegun") else 0
        is_wait = one.reason == "limited" and waits <= WAITS_MAX
        failures += one.type == "failed" and not is_wait
        is_last = one.reason not in policy.retry_reasons or failures > policy.retries or one.is_final
        if any(over == round_ for _, over in opens):
            found, failures, waits = "open", 0, 0
        elif is_wait:
            found = "retry"
        elif one.reason == "unbegun":
            found = "open"
        elif one.type == "blocked" and one.question:
            found = "open" if _answers(bodies, id_, round_, one.question) else "blocked"
        elif one.type == "blocked":
            found = _ours("interrupted", bodies, id_, round_)
        elif one.type == "failed" and one.reason == "stall" and policy.on_stall == "ask":
            found = _ours("stall", bodies, id_, round_)
        elif one.type == "failed" and is_last and policy.on_exhausted == "ask":
            found = _ours("exhausted", bodies, id_, round_)
        elif one.type == "failed":
            found = "failed" if is_last else "retry"
        else:
            found = {"result": "done", "cancelled": "cancelled"}[one.type]
        failures = 0 if found == "open" and one.reason != "unbegun" else failures
    return found


def _skipped(
    id_: CommandId,
    rounds: Mapping[int, AttemptOutcome],
    bodies: Sequence[RequestBody],
    opens: Sequence[tuple[int, int]],
) -> str | None:
    begun = [one for one in rounds.values() if one.reason != "unbegun"]
    for place, body in reversed([*enumerate(bodies)]):
        if isinstance(body, Skip) and body.task == id_:
            is_lifted = any(later > place and over >= body.round for later, over in opens)
            if not is_lifted and all(one.round <= body.round for one in begun):
                has_result = bool(begun) and max(begun, key=lambda one: one.round).type == "result"
                return "done" if body.marked_done or has_result else "skipped"
            return None
    return None


def _answers(bodies: Iterable[object], id_: CommandId, round_: int, question: Digest) -> list[str]:
    mine = [body for body in bodies if isinstance(body, Answer) and (body.task, body.round) == (id_, round_)]
    return [body.text for body in mine if body.question == question]


def _ours(kind: str, bodies: Iterable[object], id_: CommandId, round_: int) -> str:
    texts = _answers(bodies, id_, round_, coordinator_question_digest(kind, id_, round_))  # type: ignore[arg-type]
    return next((_OURS[text] for text in texts if text in _OURS), "blocked")
