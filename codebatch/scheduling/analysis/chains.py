"""Chains of outcomes: for each shard and task, a contiguous sequence of outcomes from item 0.

Rules (SPEC.md "Chains"):

1. The name of a register contains the first item of its outcome, its content the end. If several rounds have a register
   with the same first item, the highest round is valid.
2. A chain is read from item 0. The end of each outcome is the start of the next. Names are write-once, so the chain
   covers each item exactly once.
3. A register that is not read in this way is garbage: its writer lost a race.
4. If no register has the next start, there is a hole up to the next register. Holes are pending work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from codebatch.model.outcome import Commit, HolderId, Outcome, OutcomeType, Register
from codebatch.model.shard import ShardId


class Link(msgspec.Struct, frozen=True):
    """One outcome on a chain: items [start, end), and the round of their execution."""

    start: int
    end: int
    type: OutcomeType
    round: int
    segment: HolderId
    outcome: Outcome


class Chains:
    """All known outcomes by shard and task. Outcomes are only added, never removed."""

    def __init__(self, items: Mapping[ShardId, int]) -> None:
        """Start without outcomes. `items` maps each shard to its number of items."""
        self._items = items
        self._links: dict[ShardId, dict[str, dict[int, Link]]] = {}
        self._unreadable: dict[tuple[ShardId, str, int], int] = {}
        self._retried: dict[tuple[ShardId, str, int], int] = {}

    def add(self, outcome: Outcome, commit: Commit) -> bool:
        """Add an outcome of a commit. Return whether it is new."""
        links = self._links.setdefault(outcome.shard, {}).setdefault(outcome.task, {})
        known = links.get(outcome.start)
        if known is not None and known.round >= commit.round:
            return False
        links[outcome.start] = Link(outcome.start, outcome.end, outcome.type, commit.round, commit.segment, outcome)
        return True

    def link_at(self, shard: ShardId, task: str, start: int) -> Link | None:
        """Return the outcome of a task that starts at an item, or None. The outcome may be garbage (rule 3)."""
        return self._links.get(shard, {}).get(task, {}).get(start)

    def mark_unreadable(self, register: Register) -> None:
        """Record that a register exists but has invalid content."""
        key = (register.shard, register.task, register.start)
        self._unreadable[key] = max(register.round, self._unreadable.get(key, 0))

    def steps(self, shard: ShardId, task: str) -> Iterator[Link | tuple[int, int]]:
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

    def walk(self, shard: ShardId, task: str) -> Iterator[Link]:
        """Return the outcomes of a chain in order, without holes."""
        return (step for step in self.steps(shard, task) if isinstance(step, Link))

    def holes(self, shard: ShardId, task: str) -> list[tuple[int, int]]:
        """Return the item ranges without an outcome, in order."""
        return [step for step in self.steps(shard, task) if not isinstance(step, Link)]

    def unsuccessful(self, shard: ShardId, task: str) -> list[Link]:
        """Return the links that are not results, in order."""
        return [link for link in self.walk(shard, task) if link.type != "result"]

    def retry_unsuccessful(self, shard: ShardId, task: str) -> None:
        """Make the present outcomes that are not results pending in the next round."""
        for link in self.unsuccessful(shard, task):
            self._retried[shard, task, link.start] = link.round

    def pending(self, shard: ShardId, task: str) -> list[tuple[int, int, int]]:
        """Return the pending work as (start, end, round): holes, and outcomes to retry.

        A hole is split at each item that has a register with invalid content. There, work must use a higher round.
        """
        unreadable = sorted(start for other, name, start in self._unreadable if (other, name) == (shard, task))
        ranges: list[tuple[int, int]] = []
        for start, end in self.holes(shard, task):
            ranges += pairwise([start, *(at for at in unreadable if start < at < end), end])
        ranges += [
            (link.start, link.end)
            for link in self.unsuccessful(shard, task)
            if self._retried.get((shard, task, link.start)) == link.round
        ]
        return [(start, end, self.last_round(shard, task, start) + 1) for start, end in ranges]

    def last_round(self, shard: ShardId, task: str, start: int) -> int:
        """Return the highest round with a register that starts at an item, or 0. Unreadable registers count."""
        link = self.link_at(shard, task, start)
        return max(link.round if link else 0, self._unreadable.get((shard, task, start), 0))

    def is_untouched(self, shard: ShardId) -> bool:
        """Return whether a shard has no outcomes, and no register of any shard is unreadable."""
        return shard not in self._links and not self._unreadable

    def is_covered(self, shard: ShardId, tasks: Sequence[str]) -> bool:
        """Return whether each of the tasks has one result for the whole shard, which is the usual case."""
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
