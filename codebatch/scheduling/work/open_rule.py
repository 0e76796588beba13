"""The open rule of SPEC.md: the state of a command by itself, from outcomes, its policy and requests.

All state is on disk, so every process that reads the same files derives the same states.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from codebatch.model.digest import Digest
from codebatch.model.work.question import OUR_CHOICES, OurQuestion, our_question
from codebatch.model.work.work_batch import WAITS_MAX
from codebatch.scheduling.work.attempt_histories import AttemptHistories
from codebatch.scheduling.work.command_graph import Face
from codebatch.scheduling.work.command_plan import CommandPlan
from codebatch.scheduling.work.events import Conclusion
from codebatch.scheduling.work.request_log import LoggedAnswer, RequestLog

Own = Literal["open", "retry", "done", "failed", "cancelled", "skipped", "blocked"]
"""`retry` is also open, after a failure."""

FACES: dict[Own, Face] = {
    "open": "open",
    "retry": "open",
    "done": "good",
    "failed": "bad",
    "cancelled": "bad",
    "skipped": "bad",
    "blocked": "held",
}
"""The face of each state for dependents."""


class Waiting(NamedTuple):
    """A question that follows a round.

    `ours` is the kind of a question of codebatch; None: the command's own question.
    """

    digest: Digest
    ours: OurQuestion | None


class _Past(NamedTuple):
    """Summary of an item's rounds.

    `tried` is the number of failures since a request last opened the item. `question` is that of the last round,
    `answer` its answer. `lifted` is the number of the last request that opened the item by an answer. `is_limited` is
    whether the item waits for a rate limit.
    """

    tried: int
    question: Waiting | None
    answer: LoggedAnswer | None
    lifted: int
    is_limited: bool


_DONE_AT_ONCE = _Past(0, None, None, 0, False)


class CommandStateRule:
    """The rule for the state of each item by itself."""

    def __init__(self, agenda: CommandPlan, histories: AttemptHistories, requests: RequestLog) -> None:
        self._agenda = agenda
        self._histories = histories
        self._requests = requests

    def own(self, item: int) -> Own:
        """Return the state of an item by itself."""
        last, begun = self._histories.last(item), self._histories.last_begun(item)
        skip = self._requests.skip(item)
        if skip is not None and skip.round >= (begun.round if begun else 0):
            is_done = skip.marked_done or (begun is not None and begun.type == "result")
            return "done" if is_done else "skipped"
        if last is None or last.reason == "unbegun" or self._requests.opens(item, last.round):
            return "open"
        if last.type == "result":
            return "done"
        if last.type == "cancelled":
            return "cancelled"
        past = self._past(item)
        if past.is_limited:
            return "retry"
        if past.question is not None:
            if past.answer is None:
                return "blocked"
            if _opens(past.question, past.answer):
                return "open"
            return "done" if past.answer.text == "done" else "failed"
        return "retry" if self._has_try_left(item, last, past.tried) else "failed"

    def question(self, item: int) -> Waiting | None:
        """Return the question after the last round of an item, or None."""
        return self._past(item).question

    def tried(self, item: int) -> int:
        """Return the number of attempts that failed since a request last opened the item."""
        return self._past(item).tried

    def is_limited(self, item: int) -> bool:
        """Return whether the last round met a rate limit, so that it does not count as a try."""
        return self._past(item).is_limited

    def failures(self, item: int) -> tuple[int, bool]:
        """Return the number of failed tries, and whether an answer set the result of the item."""
        past = self._past(item)
        if past.question is None or past.answer is None:
            return past.tried, False
        return past.tried, not _opens(past.question, past.answer)

    def is_cancelled(self, item: int) -> bool:
        """Return whether a Cancel in effect keeps the item from starting."""
        return self._requests.is_cancelled and self._requests.is_cancelled_for(item, self._past(item).lifted)

    def is_paused(self, item: int) -> bool:
        """Return whether a Pause in effect keeps the item from starting."""
        return self._requests.is_paused and self._requests.is_paused_for(item, self._past(item).lifted)

    def _past(self, item: int) -> _Past:
        tried = lifted = waits = 0
        is_limited = False
        question: Waiting | None = None
        answer: LoggedAnswer | None = None
        ended = self._histories.ended(item)
        if len(ended) == 1 and next(iter(ended.values())).type == "result":  # Fast path for the usual case.
            return _DONE_AT_ONCE
        for round_, one in sorted(ended.items()):
            if one.reason != "unbegun":
                waits = waits + 1 if one.reason == "limited" else 0
            is_limited = one.reason == "limited" and waits <= WAITS_MAX
            tried += one.type == "failed" and not is_limited
            question = None if is_limited else self._question(item, one, tried)
            answer = None if question is None else self._answer(item, round_, question)
            if question is not None and answer is not None and _opens(question, answer):
                tried, lifted = 0, max(lifted, answer.n)
            if self._requests.opens(item, round_):
                tried = waits = 0
        return _Past(tried, question, answer, lifted, is_limited)

    def _question(self, item: int, one: Conclusion, tried: int) -> Waiting | None:
        """Return the question after a round, or None. `tried` is the number of failed attempts up to the round."""
        policy = self._agenda.policies[item]
        if one.type == "blocked":
            return Waiting(one.question, None) if one.question else self._ours("interrupted", item, one)
        if one.type != "failed":
            return None
        if one.reason == "stall" and policy.on_stall == "ask":
            return self._ours("stall", item, one)
        if policy.on_exhausted == "ask" and not self._has_try_left(item, one, tried):
            return self._ours("exhausted", item, one)
        return None

    def _ours(self, kind: OurQuestion, item: int, one: Conclusion) -> Waiting:
        return Waiting(our_question(kind, self._agenda.ids[item], one.round), kind)

    def _answer(self, item: int, round_: int, question: Waiting) -> LoggedAnswer | None:
        """Return the first valid answer to a question, or None."""
        for each in self._requests.answers(item, question.digest):
            if each.round == round_ and (question.ours is None or each.text in OUR_CHOICES):
                return each
        return None

    def _has_try_left(self, item: int, one: Conclusion, tried: int) -> bool:
        policy = self._agenda.policies[item]
        return tried <= policy.retries and one.reason in policy.retry_reasons and not one.is_final


def _opens(question: Waiting, answer: LoggedAnswer) -> bool:
    """Return whether an answer opens the command again. Other answers to a question of codebatch set the result."""
    return question.ours is None or answer.text == "again"
