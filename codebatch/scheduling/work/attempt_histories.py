"""What is known of the attempts of each command: how they ended, and under which epochs they were begun."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from codebatch.scheduling.work.events import Concluded, Conclusion


class AttemptHistories:
    """Attempts by item. An attempt that was leased and has no outcome is *unended*: it runs, or was interrupted."""

    def __init__(self, epochs: Mapping[int, int]) -> None:
        """`epochs`: the highest that each item was leased under."""
        self._epochs = dict(epochs)
        self._ended: dict[int, dict[int, Conclusion]] = {}
        """Of those that had several."""
        self._last: dict[int, Conclusion] = {}
        self._taken: dict[int, int] = {}

    def add(self, concluded: Concluded) -> list[int]:
        """Take note of outcomes; returns the items of which one is higher than what was known."""
        for item, round_ in concluded.unreadable:
            self._taken[item] = max(round_, self._taken.get(item, 0))
        news: list[int] = []
        for one in concluded.conclusions:
            item, round_ = one.item, one.round
            # A register may name an epoch whose lease never came to be.
            self._epochs[item] = max(one.epoch, self._epochs.get(item, 0))
            self._taken[item] = max(round_, self._taken.get(item, 0))
            last = self._last.get(item)
            if last is not None:
                self._ended.setdefault(item, {last.round: last}).setdefault(round_, one)
            if last is None or last.round < round_:
                self._last[item] = one
                news.append(item)
        return news

    @property
    def leased(self) -> Collection[int]:
        """Items that were ever leased."""
        return self._epochs.keys()

    def ended(self, item: int) -> Mapping[int, Conclusion]:
        """How attempts of an item ended, by round."""
        if (ended := self._ended.get(item)) is not None:
            return ended
        last = self._last.get(item)
        return {} if last is None else {last.round: last}

    def last(self, item: int) -> Conclusion | None:
        """The highest outcome of an item."""
        return self._last.get(item)

    def last_begun(self, item: int) -> Conclusion | None:
        """The highest outcome of an item that is of an attempt which was begun."""
        last = self._last.get(item)
        if last is None or last.reason != "unbegun":
            return last
        begun = [one for one in self.ended(item).values() if one.reason != "unbegun"]
        return max(begun, key=lambda one: one.round, default=None)

    def epoch(self, item: int) -> int:
        """The highest epoch that an item was leased under, or is to be."""
        return self._epochs.get(item, 0)

    def set_epoch(self, item: int, epoch: int) -> None:
        """Say what that is."""
        self._epochs[item] = epoch

    def next_round(self, item: int) -> int:
        """The round of the next attempt, or of the unended one."""
        return self._taken.get(item, 0) + 1

    def unended(self, item: int) -> int:
        """How often an item was begun since its highest outcome."""
        last = self._last.get(item)
        return self._epochs.get(item, 0) - (last.epoch if last else 0)

    def attempt(self, item: int) -> tuple[int, int]:
        """The round and epoch of the last attempt of an item, be it under way; (0, 0) where it never began."""
        if self.unended(item) > 0:
            return self.next_round(item), self.epoch(item)
        last = self._last.get(item)
        return (last.round, last.epoch) if last else (0, 0)
