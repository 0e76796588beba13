"""What requests come to: a fold over them in their order, of which the outcome is the same whenever they are read."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch.model.command import CommandId
from codebatch.model.request import INTERRUPTED_CHOICES, Answer, Cancel, Open, Request, interrupted_question


class RequestsMade:
    """The requests so far. A request names rounds: it cannot hit an attempt that its author did not see."""

    def __init__(self, items: Mapping[CommandId, int]) -> None:
        self._items = items
        self._opened: set[tuple[int, int]] = set()
        self._decided: dict[tuple[int, int], str] = {}
        self._lifted: dict[int, int] = {}
        self._cancelled_at = 0
        self.count = 0

    def add(self, request: Request) -> list[int]:
        """Take note of the next request; returns the items that it may concern."""
        assert request.n == self.count + 1, "requests come in order"
        self.count = request.n
        match request.body:
            case Cancel():
                self._cancelled_at = request.n
                return []
            case Open(over=over):
                was_cancelled, self._cancelled_at = self._cancelled_at, 0
                named = [(self._items[id_], round_) for id_, round_ in over.items() if id_ in self._items]
                for item, round_ in named:
                    self._open(item, round_)
                return list(self._items.values()) if was_cancelled else [item for item, _ in named]
            case Answer() as answer:
                return self._answer(answer, request.n)

    def _answer(self, answer: Answer, n: int) -> list[int]:
        item = self._items.get(answer.task)
        if item is None or answer.question != interrupted_question(answer.task, answer.round):
            return []
        if answer.text not in INTERRUPTED_CHOICES or (item, answer.round) in self._opened:
            return []
        self._lifted[item] = n
        if answer.text == "again":
            self._open(item, answer.round)
        else:
            self._decided[item, answer.round] = answer.text
        return [item]

    def _open(self, item: int, round_: int) -> None:
        self._opened.add((item, round_))
        self._decided.pop((item, round_), None)

    @property
    def is_cancelled(self) -> bool:
        """Whether a Cancel stands."""
        return self._cancelled_at > 0

    def forbids(self, item: int) -> bool:
        """Whether a Cancel stands that keeps an item from starting."""
        return self._lifted.get(item, 0) < self._cancelled_at

    def opens(self, item: int, round_: int) -> bool:
        """Whether the item is to be begun again over just this round, its highest."""
        return (item, round_) in self._opened

    def decision(self, item: int, round_: int) -> str | None:
        """What a person said of a blocked round without opening it: `done` or `failed`."""
        return self._decided.get((item, round_))
