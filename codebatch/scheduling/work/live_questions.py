"""Questions of running commands. Each command that asks frees its slots until the question is answered."""

from __future__ import annotations

from collections.abc import Iterator

from codebatch.model.digest import Digest
from codebatch.scheduling.work.attempt_histories import AttemptHistories
from codebatch.scheduling.work.command_queue import CommandQueue
from codebatch.scheduling.work.events import QuestionAsked
from codebatch.scheduling.work.request_log import RequestLog

RESTING_COMMANDS_MAX = 32
"""Maximum number of commands that free their slots. The processes and workers of these commands still exist."""


class LiveCommandQuestions:
    """The last question of each running command. Questions of attempts that have ended are ignored."""

    def __init__(self, histories: AttemptHistories, requests: RequestLog, queue: CommandQueue) -> None:
        self._histories = histories
        self._requests = requests
        self._queue = queue
        self._events_by_item: dict[int, QuestionAsked] = {}
        self._handled_questions: dict[int, QuestionAsked] = {}
        self._resting_items: set[int] = set()
        self._answered: list[int] = []

    def add(self, event: QuestionAsked) -> None:
        """Add a question. An attempt asks one question at a time, so a later question replaces an earlier one."""
        known = self._events_by_item.get(event.item)
        if known is None or _question_order(known) <= _question_order(event):
            self._events_by_item[event.item] = event

    def open_question(self, item: int) -> Digest | None:
        """Return the digest of the question that a running item waits for, or None."""
        event = self._current_question(item)
        return None if event is None or self._requests.answers_to(item, event.question) else event.question

    def update(self, item: int, *, is_foreign: bool) -> None:
        """Update a running item: free its slots if it asks a question, or record that its question is answered.

        The answer may arrive here before the question. If `is_foreign` is set, the item runs in a worker of an earlier
        coordinator. Its worker finds the answer without a message.
        """
        event = self._current_question(item)
        if event is None or self._handled_questions.get(item) == event:
            return
        if self.open_question(item) is not None:
            if item not in self._resting_items and len(self._resting_items) < RESTING_COMMANDS_MAX:
                self._queue.release_slots(item)
                self._resting_items.add(item)
            return
        self._handled_questions[item] = event
        if not is_foreign:
            self._answered.append(item)
        elif item in self._resting_items:
            self._resume_item(item)

    def _current_question(self, item: int) -> QuestionAsked | None:
        event = self._events_by_item.get(item)
        is_current = event is not None and (event.round, event.epoch) == self._histories.last_attempt(item)
        return event if is_current else None

    def forget_item(self, item: int) -> None:
        """Forget an item that no longer runs."""
        self._resting_items.discard(item)
        if item in self._answered:
            self._answered.remove(item)

    def iter_proceeding(self) -> Iterator[int]:
        """Yield the items whose question is answered and that may continue, in the order of the answers.

        An item that kept its slots continues at once, because other items may wait for these slots.
        """
        holding = [item for item in self._answered if item not in self._resting_items]
        self._answered = [item for item in self._answered if item in self._resting_items]
        yield from holding
        while self._answered and self._queue.has_free_slots(self._answered[0]):
            item = self._answered.pop(0)
            self._resume_item(item)
            yield item

    @property
    def is_waited_for(self) -> bool:
        """True if an answered item waits for free slots. Then no other item may take slots."""
        return bool(self._answered)

    def _resume_item(self, item: int) -> None:
        self._queue.acquire_slots(item)
        self._resting_items.discard(item)


def _question_order(event: QuestionAsked) -> tuple[int, int, int]:
    return event.round, event.epoch, event.number
