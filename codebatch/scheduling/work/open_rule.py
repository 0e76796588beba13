"""The open rule of SPEC.md: the state of a command without regard to the commands that it needs.

This state follows from the outcomes of the command, its policy, and requests. All of these are on disk, so every
process that reads the same files computes the same states.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from codebatch.model.digest import Digest
from codebatch.model.work.question import COORDINATOR_CHOICES, CoordinatorQuestion, coordinator_question_digest
from codebatch.scheduling.work.attempt_histories import AttemptHistories
from codebatch.scheduling.work.backoff import rate_limit_seconds
from codebatch.scheduling.work.command_graph import DependencyState
from codebatch.scheduling.work.command_plan import CommandPlan
from codebatch.scheduling.work.events import AttemptOutcome
from codebatch.scheduling.work.request_log import LoggedAnswer, RequestLog

OwnState = Literal["open", "retry", "done", "failed", "cancelled", "skipped", "blocked"]
"""The state of a command without regard to its needs. `retry` means open after a failure."""

DEPENDENCY_STATES: dict[OwnState, DependencyState] = {
    "open": "open",
    "retry": "open",
    "done": "good",
    "failed": "bad",
    "cancelled": "bad",
    "skipped": "bad",
    "blocked": "held",
}
"""The effect of each state on the commands that need the command."""


class AwaitedQuestion(NamedTuple):
    """The question that a command waits for after a round.

    `coordinator_question` is the kind of the question if codebatch asks. It is None if the command asked.
    """

    digest: Digest
    coordinator_question: CoordinatorQuestion | None


class _RoundsSummary(NamedTuple):
    """A summary of an item's rounds.

    - `failed_tries`: the number of failures since a request last opened the item.
    - `question`, `answer`: the question after the last round, and its answer.
    - `lifted`: the number of the last Answer request that opened the item, or 0.
    - `is_limited`: the item waits for a rate limit.
    - `waits`: the number of rate limits in a row.
    - `met_wait_limit`: if the last rate limit counts as a failed try, a text about the limit that was met.
    """

    failed_tries: int
    question: AwaitedQuestion | None
    answer: LoggedAnswer | None
    lifted: int
    is_limited: bool
    waits: int = 0
    met_wait_limit: str = ""


_FIRST_TRY_DONE = _RoundsSummary(0, None, None, 0, False)


class CommandStateRule:
    """The rule that computes the state of each item without regard to its needs."""

    def __init__(self, agenda: CommandPlan, histories: AttemptHistories, requests: RequestLog) -> None:
        self._agenda = agenda
        self._histories = histories
        self._requests = requests

    def own_state(self, item: int) -> OwnState:
        """Return the state of an item without regard to its needs."""
        last, last_begun = self._histories.last_outcome(item), self._histories.last_begun_outcome(item)
        skip = self._requests.last_skip(item)
        if skip is not None and skip.round >= (last_begun.round if last_begun else 0):
            is_done = skip.marked_done or (last_begun is not None and last_begun.type == "result")
            return "done" if is_done else "skipped"
        if last is None or last.reason == "unbegun" or self._requests.reopens_round(item, last.round):
            return "open"
        if last.type == "result":
            return "done"
        if last.type == "cancelled":
            return "cancelled"
        summary = self._summarize_rounds(item)
        if summary.is_limited:
            return "retry"
        if summary.question is not None:
            if summary.answer is None:
                return "blocked"
            if _reopens_command(summary.question, summary.answer):
                return "open"
            return "done" if summary.answer.text == "done" else "failed"
        return "retry" if self._may_retry(item, last, summary.failed_tries) else "failed"

    def awaited_question(self, item: int) -> AwaitedQuestion | None:
        """Return the question after the last round of an item, or None."""
        return self._summarize_rounds(item).question

    def has_answer(self, item: int, asked: AttemptOutcome) -> bool:
        """Return whether an attempt of an item ended with a question of its command that has an answer now."""
        if asked.type != "blocked" or not asked.question:
            return False
        return self._first_valid_answer(item, asked.round, AwaitedQuestion(asked.question, None)) is not None

    def failed_try_count(self, item: int) -> int:
        """Return the number of tries that failed since a request last opened the item."""
        return self._summarize_rounds(item).failed_tries

    def is_limited(self, item: int) -> bool:
        """Return whether the last round of an item reached a rate limit, so that the round does not count as a try."""
        return self._summarize_rounds(item).is_limited

    def wait_count(self, item: int) -> int:
        """Return the number of rate limits in a row that the last rounds of an item reached."""
        return self._summarize_rounds(item).waits

    def notes(self, ended: AttemptOutcome) -> tuple[str, ...]:
        """Return the notes of an item's last attempt. If a limit ended its waits for rate limits, a note names it."""
        last = self._histories.last_begun_outcome(ended.item)
        met = self._summarize_rounds(ended.item).met_wait_limit if last == ended else ""
        return (*ended.notes, met) if met else ended.notes

    def failure_count(self, item: int) -> tuple[int, bool]:
        """Return the number of an item's failed tries, and whether an answer made the item count as done or failed."""
        summary = self._summarize_rounds(item)
        if summary.question is None or summary.answer is None:
            return summary.failed_tries, False
        return summary.failed_tries, not _reopens_command(summary.question, summary.answer)

    def is_cancelled(self, item: int) -> bool:
        """Return whether a Cancel request keeps the item from starting. A Cancel that was undone does not."""
        return self._requests.is_cancelled and self._requests.is_cancelled_for(
            item, self._summarize_rounds(item).lifted
        )

    def is_paused(self, item: int) -> bool:
        """Return whether a Pause request keeps the item from starting. A Pause that was undone does not."""
        return self._requests.is_paused and self._requests.is_paused_for(item, self._summarize_rounds(item).lifted)

    def _summarize_rounds(self, item: int) -> _RoundsSummary:
        failed_tries = lifted = waits = 0
        waited_seconds = 0.0
        policy = self._agenda.policies[item]
        is_limited, met = False, ""
        question: AwaitedQuestion | None = None
        answer: LoggedAnswer | None = None
        ended = self._histories.outcomes_by_round(item)
        if len(ended) == 1 and next(iter(ended.values())).type == "result":  # Fast path for the usual case.
            return _FIRST_TRY_DONE
        for round_, conclusion in sorted(ended.items()):
            if conclusion.reason != "unbegun":
                waits = waits + 1 if conclusion.reason == "limited" else 0
                waited_seconds = waited_seconds + rate_limit_seconds(conclusion.wait_seconds, waits) if waits else 0.0
            is_limited, met = conclusion.reason == "limited", ""
            if is_limited and waits > policy.waits_max:
                met = f"`waits_max` of {policy.waits_max:,} is reached"
            elif is_limited and policy.wait_seconds_max is not None and waited_seconds > policy.wait_seconds_max:
                met = f"`wait_seconds_max` of {policy.wait_seconds_max:,g} is reached"
            is_limited = is_limited and not met
            failed_tries += conclusion.type == "failed" and not is_limited
            question = None if is_limited else self._question_after(item, conclusion, failed_tries)
            answer = None if question is None else self._first_valid_answer(item, round_, question)
            if question is not None and answer is not None and _reopens_command(question, answer):
                failed_tries, lifted = 0, max(lifted, answer.n)
            if self._requests.reopens_round(item, round_):
                failed_tries = waits = 0
                waited_seconds, met = 0.0, ""
        return _RoundsSummary(failed_tries, question, answer, lifted, is_limited, waits, met)

    def _question_after(self, item: int, conclusion: AttemptOutcome, failed_tries: int) -> AwaitedQuestion | None:
        """Return the question that follows a round of an item, or None.

        `failed_tries` counts the failed tries up to the end of this round.
        """
        policy = self._agenda.policies[item]
        if conclusion.type == "blocked":
            return (
                AwaitedQuestion(conclusion.question, None)
                if conclusion.question
                else self._built_in_question("interrupted", item, conclusion)
            )
        if conclusion.type != "failed":
            return None
        if conclusion.reason == "stall" and policy.on_stall == "ask":
            return self._built_in_question("stall", item, conclusion)
        if policy.on_exhausted == "ask" and not self._may_retry(item, conclusion, failed_tries):
            return self._built_in_question("exhausted", item, conclusion)
        return None

    def _built_in_question(self, kind: CoordinatorQuestion, item: int, conclusion: AttemptOutcome) -> AwaitedQuestion:
        return AwaitedQuestion(coordinator_question_digest(kind, self._agenda.ids[item], conclusion.round), kind)

    def _first_valid_answer(self, item: int, round_: int, question: AwaitedQuestion) -> LoggedAnswer | None:
        """Return the first valid answer to a question, or None."""
        for answer in self._requests.answers_to(item, question.digest):
            if answer.round == round_ and (question.coordinator_question is None or answer.text in COORDINATOR_CHOICES):
                return answer
        return None

    def _may_retry(self, item: int, conclusion: AttemptOutcome, failed_tries: int) -> bool:
        policy = self._agenda.policies[item]
        is_left = failed_tries <= self._requests.retries(item, conclusion.round, policy.retries)
        return is_left and conclusion.reason in policy.retry_reasons and not conclusion.is_final


def _reopens_command(question: AwaitedQuestion, answer: LoggedAnswer) -> bool:
    """Return whether an answer opens the command again.

    Other answers to a coordinator's question make it count as done or failed.
    """
    return question.coordinator_question is None or answer.text == "again"
