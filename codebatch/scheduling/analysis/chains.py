"""The chains of outcomes: for each shard and task a walk from item 0, end to end.

Rules (SPEC.md "Chains"):
1. A register's name holds its start, its body its end. Of several rounds at one start the highest holds.
2. Reading a task's shard walks 0 -> end -> end ... A name is write-once, so the walk covers every item exactly once.
3. A register that the walk does not reach is garbage: its maker lost a race.
4. Where the walk finds no register there is a hole, up to the next register's start; holes are the pending work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from codebatch.model.outcome import Commit, HolderId, Outcome, OutcomeType, Register
from codebatch.model.shard import ShardId


class Link(msgspec.Struct, frozen=True):
    """One outcome on a chain: items [start, end), and the round that settled them."""

    start: int
    end: int
    type: OutcomeType
    round: int
    segment: HolderId
    outcome: Outcome


class Chains:
    """The outcomes known so far, whatever they are of. Monotone: outcomes are only ever added."""

    def __init__(self, items: Mapping[ShardId, int]) -> None:
        """`items`: how many each shard has."""
        self._items = items
        self._links: dict[ShardId, dict[str, dict[int, Link]]] = {}
        self._unreadable: dict[tuple[ShardId, str, int], int] = {}
        self._retried: dict[tuple[ShardId, str, int], int] = {}

    def add(self, outcome: Outcome, commit: Commit) -> bool:
        """Take note of an outcome of a commit; whether it says something new."""
        links = self._links.setdefault(outcome.shard, {}).setdefault(outcome.task, {})
        known = links.get(outcome.start)
        if known is not None and known.round >= commit.round:
            return False
        links[outcome.start] = Link(outcome.start, outcome.end, outcome.type, commit.round, commit.segment, outcome)
        return True

    def link_at(self, shard: ShardId, task: str, start: int) -> Link | None:
        """The outcome whose name says this start, on the chain or not."""
        return self._links.get(shard, {}).get(task, {}).get(start)

    def mark_unreadable(self, register: Register) -> None:
        """Take note that a register's name is taken by bytes that say nothing."""
        key = (register.shard, register.task, register.start)
        self._unreadable[key] = max(register.round, self._unreadable.get(key, 0))

    def steps(self, shard: ShardId, task: str) -> Iterator[Link | tuple[int, int]]:
        """The walk: links, and the item ranges where there is none."""
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
        """The links of a chain, holes left out."""
        return (step for step in self.steps(shard, task) if isinstance(step, Link))

    def holes(self, shard: ShardId, task: str) -> list[tuple[int, int]]:
        """The item ranges that have no outcome."""
        return [step for step in self.steps(shard, task) if not isinstance(step, Link)]

    def unsuccessful(self, shard: ShardId, task: str) -> list[Link]:
        """The links that are no results."""
        return [link for link in self.walk(shard, task) if link.type != "result"]

    def retry_unsuccessful(self, shard: ShardId, task: str) -> None:
        """Have what is no result by now count as pending, one round up, until that round is there."""
        for link in self.unsuccessful(shard, task):
            self._retried[shard, task, link.start] = link.round

    def pending(self, shard: ShardId, task: str) -> list[tuple[int, int, int]]:
        """The item ranges that are to be done, and in which round: holes, and what is retried.

        A hole is cut where the name of a round is taken by bytes that say nothing, for that item is a round further.
        """
        taken = sorted(start for of, name, start in self._unreadable if (of, name) == (shard, task))
        ranges: list[tuple[int, int]] = []
        for start, end in self.holes(shard, task):
            ranges += pairwise([start, *(at for at in taken if start < at < end), end])
        ranges += [
            (link.start, link.end)
            for link in self.unsuccessful(shard, task)
            if self._retried.get((shard, task, link.start)) == link.round
        ]
        return [(start, end, self.last_round(shard, task, start) + 1) for start, end in ranges]

    def last_round(self, shard: ShardId, task: str, start: int) -> int:
        """The highest round whose name is taken at an item, be it by bytes that say nothing; 0 where none is."""
        link = self.link_at(shard, task, start)
        return max(link.round if link else 0, self._unreadable.get((shard, task, start), 0))

    def is_untouched(self, shard: ShardId) -> bool:
        """Whether nothing at all is known of a shard."""
        return shard not in self._links and not self._unreadable

    def is_covered(self, shard: ShardId, tasks: Sequence[str]) -> bool:
        """Whether one result covers the whole shard for every task: what nearly every shard comes to."""
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
