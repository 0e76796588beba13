"""The combined effect of all requests. They are applied in the order of their numbers, whenever they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from codebatch.model.digest import Digest
from codebatch.model.work.command import CommandId
from codebatch.model.work.request import (
    Add,
    Answer,
    Cancel,
    Open,
    Pause,
    Reload,
    Request,
    Set,
    Skip,
    Stop,
    StopCause,
    TaskSettings,
    Unpause,
)


class LoggedAnswer(NamedTuple):
    """An answer: the number of its request, the round to which it belongs, and its text."""

    n: int
    round: int
    text: str


class AttemptStop(NamedTuple):
    """The reason why an attempt was stopped, as in Stop. If `ends` is false, the attempt was allowed to finish."""

    cause: StopCause | Literal["cancel"]
    detail: str = ""
    ends: bool = True


class RequestLog:
    """The requests read so far.

    A request names rounds, so it cannot affect a later attempt that its author could not know.
    """

    def __init__(self, items: Mapping[CommandId, int]) -> None:
        """Start empty. `items` maps the commands of the batch to items. The caller may add commands to it."""
        self._items = items
        self._reopened_rounds: dict[int, set[int]] = {}
        self._skips: dict[int, Skip] = {}
        self._answers: dict[int, dict[Digest, list[LoggedAnswer]]] = {}
        self._lifted_failures: dict[int, int] = {}
        self._acknowledged_rounds: dict[int, int] = {}
        self._stops_by_item: dict[int, dict[int, AttemptStop]] = {}
        self._settings: dict[int, list[TaskSettings]] = {}
        self._cancelled_at = self._paused_at = 0
        self.is_expired = False
        """True if the batch has reached its time limit, and no later Open request has opened it."""
        self.deadline_ns = 0
        """The last deadline that a request has set, or 0."""
        self.count = 0

    def add(self, request: Request) -> list[int]:
        """Add the next request. Return the items that it may affect."""
        assert request.n == self.count + 1, "requests come in order"
        self.count = request.n
        match request.body:
            case Cancel(attempts=attempts):
                self._cancelled_at = request.n
                return self._add_stops(attempts, AttemptStop("cancel"))
            case Pause():
                self._paused_at = request.n
                return []
            case Unpause():
                self._paused_at = 0
                return list(self._items.values())
            case Open() as body:
                return self._add_open(body, request.n)
            case Answer(task=task, round=round_, question=question, text=text):
                if (item := self._items.get(task)) is None:
                    return []
                answers = self._answers.setdefault(item, {}).setdefault(question, [])
                answers.append(LoggedAnswer(request.n, round_, text))
                return [item]
            case Skip(task=task) as skip:
                if (item := self._items.get(task)) is None:
                    return []
                self._skips[item] = skip
                return [item]
            case Stop(cause=cause, detail=detail, attempts=attempts, terminates=ends):
                self.is_expired = self.is_expired or cause == "timeout"
                return self._add_stops(attempts, AttemptStop(cause, detail, ends))
            case Set(deadline_ns=deadline_ns, tasks=tasks):
                self.deadline_ns = deadline_ns or self.deadline_ns
                return self._add_settings(tasks)
            case Reload() | Add():
                return []

    def _add_settings(self, tasks: Mapping[CommandId, TaskSettings]) -> list[int]:
        changed = {self._items[id_]: settings for id_, settings in tasks.items() if id_ in self._items}
        for item, settings in changed.items():
            self._settings.setdefault(item, []).append(settings)
        return list(changed)

    def _add_stops(self, attempts: Mapping[CommandId, int], stopped: AttemptStop) -> list[int]:
        epochs = {self._items[id_]: epoch for id_, epoch in attempts.items() if id_ in self._items}
        for item, epoch in epochs.items():
            known = self._stops_by_item.setdefault(item, {})
            if epoch not in known or not known[epoch].ends:
                known[epoch] = stopped
        return list(epochs)

    def _add_open(self, body: Open, n: int) -> list[int]:
        self.is_expired = False
        named = [self._items[id_] for id_ in body.rounds if id_ in self._items]
        for id_, round_ in body.rounds.items():
            if (item := self._items.get(id_)) is None:
                continue
            self._reopened_rounds.setdefault(item, set()).add(round_)
            self._lifted_failures[item] = n
            if item in self._skips and self._skips[item].round <= round_:
                del self._skips[item]
        for id_, round_ in body.acknowledged.items():
            if (item := self._items.get(id_)) is not None:
                self._acknowledged_rounds[item] = max(round_, self._acknowledged_rounds.get(item, 0))
                named.append(item)
        if body.lifts == "named":
            return named
        forbade = self._cancelled_at or self._paused_at
        self._cancelled_at = self._paused_at = 0
        return list(self._items.values()) if forbade else named

    @property
    def is_cancelled(self) -> bool:
        """True if the last Cancel request has not been undone."""
        return self._cancelled_at > 0

    @property
    def is_paused(self) -> bool:
        """True if the last Pause request has not been undone."""
        return self._paused_at > 0

    def is_cancelled_for(self, item: int, lifted: int) -> bool:
        """Return whether a Cancel request keeps an item from starting.

        `lifted` is the number of the last Answer request that opened the item, or 0.
        """
        return max(lifted, self._lifted_failures.get(item, 0)) < self._cancelled_at

    def is_paused_for(self, item: int, lifted: int) -> bool:
        """Return whether a Pause request keeps an item from starting.

        `lifted` is the number of the last Answer request that opened the item, or 0.
        """
        return max(lifted, self._lifted_failures.get(item, 0)) < self._paused_at

    def retries(self, item: int, round_: int, listed: int) -> int:
        """Return the maximum number of retries that applies to a round of an item. `listed` is that of the list."""
        for settings in reversed(self._settings.get(item, ())):
            if settings.retries is not None and settings.after_round < round_:
                return settings.retries
        return listed

    def priority(self, item: int, listed: int) -> int:
        """Return the priority of an item. `listed` is that of the list."""
        values = [settings.priority for settings in self._settings.get(item, ()) if settings.priority is not None]
        return values[-1] if values else listed

    def stops_by_epoch(self, item: int) -> Mapping[int, AttemptStop]:
        """Map the lease epochs of an item's stopped attempts to the reasons."""
        return self._stops_by_item.get(item, {})

    def reopens_round(self, item: int, round_: int) -> bool:
        """Return whether an Open request names this round of an item."""
        return round_ in self._reopened_rounds.get(item, ())

    def last_skip(self, item: int) -> Skip | None:
        """Return the last Skip request for an item, or None. An Open request for the same round undoes the Skip."""
        return self._skips.get(item)

    def answers_to(self, item: int, question: Digest) -> Sequence[LoggedAnswer]:
        """Return the answers to a question, in order."""
        return self._answers.get(item, {}).get(question, ())

    def is_acknowledged(self, item: int, round_: int) -> bool:
        """Return whether a request acknowledged an item's failure in a round.

        Such a failure no longer counts towards the limit at which the batch stops.
        """
        return round_ <= self._acknowledged_rounds.get(item, 0)
