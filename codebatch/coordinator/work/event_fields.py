"""Fields of events that are computed from the ends of attempts."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch.model.work import event as events
from codebatch.model.work.question import (
    COORDINATOR_CHOICES,
    COORDINATOR_TEXTS,
    CoordinatorQuestion,
    coordinator_question_digest,
)
from codebatch.scheduling.work.command_plan import CommandPlan
from codebatch.scheduling.work.events import AttemptOutcome


def coordinator_question(conclusion: AttemptOutcome, agenda: CommandPlan) -> events.AskedQuestion:
    """Return the question that codebatch asks after an attempt."""
    kind: CoordinatorQuestion = "interrupted"
    if conclusion.type == "failed":
        has_stalled = conclusion.reason == "stall" and agenda.policies[conclusion.item].on_stall == "ask"
        kind = "stall" if has_stalled else "exhausted"
    digest = coordinator_question_digest(kind, agenda.ids[conclusion.item], conclusion.round)
    return events.AskedQuestion(digest=digest, text=COORDINATOR_TEXTS[kind], choices=COORDINATOR_CHOICES, human=True)


def critical_path(ended_ns: Mapping[int, int], agenda: CommandPlan) -> list[int]:
    """Return the critical path: the chain of commands, each needed by the next, that ended last.

    The commands are in order of execution. `ended_ns` maps the commands that are included to their ends.
    """
    path: list[int] = []
    heads = list(ended_ns)
    while heads:
        path.append(max(heads, key=lambda item: (ended_ns[item], item)))
        heads = [need.item for need in agenda.needs[path[-1]] if need.item in ended_ns]
    return path[::-1]
