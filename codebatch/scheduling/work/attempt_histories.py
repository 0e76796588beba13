"""The known attempts of each command: their outcomes and lease epochs."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from codebatch.scheduling.work.events import AttemptOutcome, OutcomesConcluded


class AttemptHistories:
    """The attempts of each item. An *unended* attempt has a lease and no outcome: it runs, or was interrupted."""

    def __init__(self, epochs: Mapping[int, int]) -> None:
        """Start without outcomes. `epochs` maps each item to its highest lease epoch."""
        self._epochs = dict(epochs)
        self._ended: dict[int, dict[int, AttemptOutcome]] = {}
        """Outcomes by item and round, only for items with several outcomes."""
        self._last: dict[int, AttemptOutcome] = {}
        self._leased_items: dict[int, int] = {}

    def add(self, concluded: OutcomesConcluded) -> list[int]:
        """Add outcomes. Return the items whose highest round with an outcome has increased."""
        for item, round_ in concluded.unreadable:
            self._leased_items[item] = max(round_, self._leased_items.get(item, 0))
        updated: list[int] = []
        for conclusion in concluded.conclusions:
            item, round_ = conclusion.item, conclusion.round
            # A register may name an epoch that was never leased.
            self._epochs[item] = max(conclusion.epoch, self._epochs.get(item, 0))
            self._leased_items[item] = max(round_, self._leased_items.get(item, 0))
            last = self._last.get(item)
            if last is not None:
                self._ended.setdefault(item, {last.round: last}).setdefault(round_, conclusion)
            if last is None or last.round < round_:
                self._last[item] = conclusion
                updated.append(item)
        return updated

    @property
    def leased_items(self) -> Collection[int]:
        """Items that were ever leased."""
        return self._epochs.keys()

    def outcomes_by_round(self, item: int) -> Mapping[int, AttemptOutcome]:
        """Return the outcomes of an item by round."""
        if (ended := self._ended.get(item)) is not None:
            return ended
        last = self._last.get(item)
        return {} if last is None else {last.round: last}

    def last_outcome(self, item: int) -> AttemptOutcome | None:
        """Return the outcome of an item in its highest round, or None."""
        return self._last.get(item)

    def last_begun_outcome(self, item: int) -> AttemptOutcome | None:
        """Return the outcome of the last attempt that a worker began, or None.

        Outcomes without execution are skipped.
        """
        last = self._last.get(item)
        if last is None or last.reason != "unbegun":
            return last
        begun = [one for one in self.outcomes_by_round(item).values() if one.reason != "unbegun"]
        return max(begun, key=lambda one: one.round, default=None)

    def last_epoch(self, item: int) -> int:
        """Return the highest lease epoch of an item. If its worker is about to lease it, that lease counts too."""
        return self._epochs.get(item, 0)

    def set_epoch(self, item: int, epoch: int) -> None:
        """Set the highest epoch of an item."""
        self._epochs[item] = epoch

    def next_round(self, item: int) -> int:
        """Return the round of an item's next attempt. If an attempt is unended, return the round of this attempt."""
        return self._leased_items.get(item, 0) + 1

    def unended_lease_count(self, item: int) -> int:
        """Return the number of leases of an item since its last outcome."""
        last = self._last.get(item)
        return self._epochs.get(item, 0) - (last.epoch if last else 0)

    def last_attempt(self, item: int) -> tuple[int, int]:
        """Return the round and epoch of the last attempt of an item, which may still run.

        Return (0, 0) if the item never began.
        """
        if self.unended_lease_count(item) > 0:
            return self.next_round(item), self.last_epoch(item)
        last = self._last.get(item)
        return (last.round, last.epoch) if last else (0, 0)
