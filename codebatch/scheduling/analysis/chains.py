"""Chains of outcomes: for each shard and task, a contiguous sequence of outcomes from item 0.

Rules (SPEC.md "Chains"):

1. The name of a register contains the first item of its outcome. Its content has the end of the outcome's items. If
   several rounds have a register with the same first item, the register of the highest round is valid.
2. A chain is read from item 0. The end of each outcome is the start of the next. Registers are never changed, so the
   chain covers each item at most once.
3. A register that is not reached by rule 2 is garbage: another process covered its first item sooner, with a longer
   outcome.
4. If no register starts at the end of the last outcome, there is a hole up to the next register. Holes are pending
   work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from codebatch.model.outcome import Commit, HolderId, OutcomeRegister, OutcomeType, TaskOutcome
from codebatch.model.shard import ShardId


class ChainLink(msgspec.Struct, frozen=True):
    """One outcome on a chain: it covers the items [start, end), which were executed in a round."""

    start: int
    end: int
    type: OutcomeType
    round: int
    segment: HolderId
    outcome: TaskOutcome


class OutcomeChains:
    """All known outcomes by shard and task. Outcomes are only added, never removed."""

    def __init__(self, items: Mapping[ShardId, int]) -> None:
        """Start without outcomes. `items` maps each shard to its number of items."""
        self._items = items
        self._links: dict[ShardId, dict[str, dict[int, ChainLink]]] = {}
        self._unreadable: dict[tuple[ShardId, str, int], int] = {}
        self._retried: dict[tuple[ShardId, str, int], int] = {}

    def add(self, outcome: TaskOutcome, commit: Commit) -> bool:
        """Add an outcome of a commit. Return whether the outcome was not known before."""
        links = self._links.setdefault(outcome.shard, {}).setdefault(outcome.task, {})
        known = links.get(outcome.start)
        if known is not None and known.round >= commit.round:
            return False
        links[outcome.start] = ChainLink(
            outcome.start, outcome.end, outcome.type, commit.round, commit.segment, outcome
        )
        return True

    def link_at(self, shard: ShardId, task: str, start: int) -> ChainLink | None:
        """Return the outcome of a task whose first item is `start`, or None. The outcome may be garbage (rule 3)."""
        return self._links.get(shard, {}).get(task, {}).get(start)

    def mark_unreadable(self, register: OutcomeRegister) -> None:
        """Record that a register exists but has invalid content."""
        key = (register.shard, register.task, register.start)
        self._unreadable[key] = max(register.round, self._unreadable.get(key, 0))

    def iter_steps(self, shard: ShardId, task: str) -> Iterator[ChainLink | tuple[int, int]]:
        """Yield the chain of a task in item order: a Link for each outcome, and (start, end) for each hole."""
        links = self._links.get(shard, {}).get(task, {})
        items = self._items[shard]
        at = 0
        while at < items:
            link = links.get(at)
            if link is not None:
                yield link
                at = link.end
            else:
                end = min((start for start in links if start > at), default=items)
                yield (at, end)
                at = end

    def iter_links(self, shard: ShardId, task: str) -> Iterator[ChainLink]:
        """Return the outcomes of a chain in order, without holes."""
        return (step for step in self.iter_steps(shard, task) if isinstance(step, ChainLink))

    def list_holes(self, shard: ShardId, task: str) -> list[tuple[int, int]]:
        """Return the item ranges without an outcome, in order."""
        return [step for step in self.iter_steps(shard, task) if not isinstance(step, ChainLink)]

    def unsuccessful_links(self, shard: ShardId, task: str) -> list[ChainLink]:
        """Return the outcomes on a chain that are not results, in order."""
        return [link for link in self.iter_links(shard, task) if link.type != "result"]

    def retry_unsuccessful(self, shard: ShardId, task: str) -> None:
        """Mark the known outcomes that are not results for a retry: their items become pending in the next round."""
        for link in self.unsuccessful_links(shard, task):
            self._retried[shard, task, link.start] = link.round

    def pending_ranges(self, shard: ShardId, task: str) -> list[tuple[int, int, int]]:
        """Return the pending work as (start, end, round): holes, and outcomes to retry.

        A hole is split at each item that has a register with invalid content. From this item on, work must use a higher
        round, because the name for the old round is taken.
        """
        unreadable = sorted(start for other, name, start in self._unreadable if (other, name) == (shard, task))
        ranges: list[tuple[int, int]] = []
        for start, end in self.list_holes(shard, task):
            ranges += pairwise([start, *(at for at in unreadable if start < at < end), end])
        ranges += [
            (link.start, link.end)
            for link in self.unsuccessful_links(shard, task)
            if self._retried.get((shard, task, link.start)) == link.round
        ]
        return [(start, end, self.last_round(shard, task, start) + 1) for start, end in ranges]

    def last_round(self, shard: ShardId, task: str, start: int) -> int:
        """Return the highest round that has a register with the first item `start`, or 0.

        Unreadable registers count too.
        """
        link = self.link_at(shard, task, start)
        return max(link.round if link else 0, self._unreadable.get((shard, task, start), 0))

    def is_untouched(self, shard: ShardId) -> bool:
        """Return whether a shard has no outcomes at all. If any register of any shard is unreadable, return False."""
        return shard not in self._links and not self._unreadable

    def is_covered(self, shard: ShardId, tasks: Sequence[str]) -> bool:
        """Return whether each of the tasks has a single result that covers the whole shard, which is the usual case."""
        by_task = self._links.get(shard)
        if by_task is None:
            return not tasks
        items = self._items[shard]
        for task in tasks:
            links = by_task.get(task)
            link = links.get(0) if links else None
            if link is None or link.end != items or link.type != "result":
                return False
        return True
