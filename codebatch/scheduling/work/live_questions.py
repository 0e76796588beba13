"""Commands that ask something while they run: each gives its slots back until it is answered."""

from __future__ import annotations

from collections.abc import Iterator

from codebatch.model.digest import Digest
from codebatch.scheduling.work.attempt_histories import AttemptHistories
from codebatch.scheduling.work.command_queue import CommandQueue
from codebatch.scheduling.work.events import QuestionAsked
from codebatch.scheduling.work.request_log import RequestLog

RESTING_MAX = 32
"""How many give their slots back at once: what asks is still there, as a process, and so is its worker."""


class LiveCommandQuestions:
    """The last question of each command. What an attempt asked that is over concerns nobody."""

    def __init__(self, histories: AttemptHistories, requests: RequestLog, queue: CommandQueue) -> None:
        self._histories = histories
        self._requests = requests
        self._queue = queue
        self._asked: dict[int, QuestionAsked] = {}
        self._heard: dict[int, QuestionAsked] = {}
        self._resting: set[int] = set()
        self._answered: list[int] = []

    def add(self, asked: QuestionAsked) -> None:
        """Take note of a question. An attempt asks one thing at a time."""
        known = self._asked.get(asked.item)
        if known is None or _place(known) <= _place(asked):
            self._asked[asked.item] = asked

    def question(self, item: int) -> Digest | None:
        """What an item that runs waits for an answer to."""
        asked = self._of_attempt(item)
        return None if asked is None or self._requests.answers(item, asked.question) else asked.question

    def look(self, item: int, *, is_foreign: bool) -> None:
        """See whether an item that runs asks, or is answered, be it before its question was heard of.

        A foreign one's worker goes on by itself.
        """
        asked = self._of_attempt(item)
        if asked is None or self._heard.get(item) == asked:
            return
        if self.question(item) is not None:
            if item not in self._resting and len(self._resting) < RESTING_MAX:
                self._queue.rest(item)
                self._resting.add(item)
            return
        self._heard[item] = asked
        if not is_foreign:
            self._answered.append(item)
        elif item in self._resting:
            self._go_on(item)

    def _of_attempt(self, item: int) -> QuestionAsked | None:
        asked = self._asked.get(item)
        is_of_it = asked is not None and (asked.round, asked.epoch) == self._histories.attempt(item)
        return asked if is_of_it else None

    def forget(self, item: int) -> None:
        """An item does not run any more."""
        self._resting.discard(item)
        if item in self._answered:
            self._answered.remove(item)

    def iter_proceeding(self) -> Iterator[int]:
        """Those that are answered and for which there is room, in the order of their answers. Who never gave its slots
        back waits for nobody: others may wait for those.
        """
        holding = [item for item in self._answered if item not in self._resting]
        self._answered = [item for item in self._answered if item in self._resting]
        yield from holding
        while self._answered and self._queue.may_go_on(self._answered[0]):
            item = self._answered.pop(0)
            self._go_on(item)
            yield item

    @property
    def is_waited_for(self) -> bool:
        """Whether one that is answered waits for room: nothing else is to take it."""
        return bool(self._answered)

    def _go_on(self, item: int) -> None:
        self._queue.go_on(item)
        self._resting.discard(item)


def _place(asked: QuestionAsked) -> tuple[int, int, int]:
    return asked.round, asked.epoch, asked.number
