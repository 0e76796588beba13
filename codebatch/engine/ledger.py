"""What is done and what is open: the chains of outcomes of every shard and task.

Rules (SPEC.md "Chains"):
1. A register's name holds its start, its body its end. Of several rounds at one start the highest holds.
2. Reading a task's shard walks 0 -> end -> end ... A name is write-once, so the walk covers every item exactly once.
3. A register that the walk does not reach is garbage: its maker lost a race.
4. Where the walk finds no register there is a hole, up to the next register's start; holes are the pending work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from codebatch.model.outcome import Commit, HolderId, Outcome, OutcomeType, Register, Unit
from codebatch.model.shard import ShardId


class Link(NamedTuple):
    """One outcome on a chain: items [start, end), and the round that settled them."""

    start: int
    end: int
    type: OutcomeType
    round: int
    segment: HolderId
    outcome: Outcome


class Ledger:
    """The outcomes known so far. Monotone: outcomes are only ever added."""

    def __init__(self, items: Mapping[ShardId, int], needs: Mapping[str, Sequence[str]]) -> None:
        """`items`: the shards and their sizes in path order; `needs`: the tasks in plan order with what each needs."""
        self._items = dict(items)
        self._needs = {task: tuple(needed) for task, needed in needs.items()}
        self._links: dict[tuple[ShardId, str], dict[int, Link]] = {}
        self._unreadable: dict[tuple[ShardId, str, int], int] = {}
        self._retried: dict[tuple[ShardId, str, int], int] = {}

    @property
    def shards(self) -> Sequence[ShardId]:
        """Every shard, in path order."""
        return list(self._items)

    @property
    def items(self) -> int:
        """How many items all shards have together."""
        return sum(self._items.values())

    @property
    def tasks(self) -> Sequence[str]:
        """Every task, in plan order."""
        return list(self._needs)

    def add(self, commit: Commit) -> list[ShardId]:
        """Take note of a commit; returns the shards of which it says something new.

        Raises ValueError where an outcome cannot belong here.
        """
        touched: dict[ShardId, None] = {}
        for outcome in commit.outcomes:
            if (
                not 0 <= outcome.start < outcome.end <= self._items.get(outcome.shard, 0)
                or outcome.task not in self._needs
            ):
                raise ValueError(f"an outcome of {outcome.shard}/{outcome.task} that the plan does not know")
            links = self._links.setdefault((outcome.shard, outcome.task), {})
            known = links.get(outcome.start)
            if known is None or known.round < commit.round:
                links[outcome.start] = Link(
                    outcome.start, outcome.end, outcome.type, commit.round, commit.segment, outcome
                )
                touched[outcome.shard] = None
        return list(touched)

    def knows(self, register: Register) -> bool:
        """Whether this outcome, or one of a later round at the same start, has been taken note of."""
        link = self._links.get((register.shard, register.task), {}).get(register.start)
        return link is not None and link.round >= register.round

    def mark_unreadable(self, register: Register) -> None:
        """Take note that a register's name is taken by bytes that say nothing: its work is done again one round up."""
        key = (register.shard, register.task, register.start)
        self._unreadable[key] = max(register.round, self._unreadable.get(key, 0))

    def walk(self, shard: ShardId, task: str) -> Iterator[Link]:
        """The links of a chain from item 0 on, holes left out."""
        for step in self._steps(shard, task):
            if isinstance(step, Link):
                yield step

    def holes(self, shard: ShardId, task: str) -> list[tuple[int, int]]:
        """The item ranges of a shard that have no outcome of a task."""
        return [step for step in self._steps(shard, task) if not isinstance(step, Link)]

    def is_complete(self, shard: ShardId) -> bool:
        """Whether every item of a shard has an outcome of every task."""
        return not any(self.holes(shard, task) for task in self._needs)

    def unsuccessful(self, shard: ShardId, task: str) -> list[Link]:
        """The links that are no results."""
        return [link for link in self.walk(shard, task) if link.type != "result"]

    def retry_unsuccessful(self) -> None:
        """Have what is no result by now done again: each counts as pending, one round up, until that round is there."""
        for shard in self._items:
            for task in self._needs:
                for link in self.unsuccessful(shard, task):
                    self._retried[shard, task, link.start] = link.round

    def open_units(self, shard: ShardId) -> list[Unit]:
        """The pending work of a shard as units: maximal ranges that lack the same tasks, in item order.

        A unit never spans two rounds of one task, for its commit is linked under one.
        """
        if self._is_settled(shard):
            return []
        if not self._unreadable and not any((shard, task) in self._links for task in self._needs):
            return [Unit(shard=shard, start=0, end=self._items[shard], tasks=tuple(self._needs))]
        missing: dict[str, list[tuple[int, int, int]]] = {}
        bounds = {0, self._items[shard]}
        for task in self._needs:
            ranges = [
                (start, end, self._unreadable.get((shard, task, start), 0) + 1)
                for start, end in self.holes(shard, task)
            ]
            ranges += [
                (link.start, link.end, link.round + 1)
                for link in self.unsuccessful(shard, task)
                if self._retried.get((shard, task, link.start)) == link.round
            ]
            missing[task] = ranges
            bounds.update(bound for start, end, _ in ranges for bound in (start, end))
        units: list[Unit] = []
        ordered = sorted(bounds)
        for start, end in pairwise(ordered):
            by_round: dict[int, list[str]] = {}
            for task, ranges in missing.items():
                for first, last, round_ in ranges:
                    if first <= start and end <= last:
                        by_round.setdefault(round_, []).append(task)
            units += [
                Unit(shard=shard, start=start, end=end, tasks=tuple(tasks), round=round_)
                for round_, tasks in sorted(by_round.items())
            ]
        return units

    def _is_settled(self, shard: ShardId) -> bool:
        """Whether one result covers the whole shard for every task: what nearly every shard comes to."""
        items = self._items[shard]
        for task in self._needs:
            links = self._links.get((shard, task))
            link = links.get(0) if links else None
            if link is None or link.end != items or link.type != "result":
                return False
        return True

    def first_of(self, tasks: Sequence[str]) -> tuple[str, ...]:
        """Those of some tasks that need none of the others: where these fail, the others fail for want of them."""
        return tuple(task for task in tasks if not set(self._needs[task]) & set(tasks))

    def doomed(self, unit: Unit) -> list[tuple[int, tuple[str, ...]]]:
        """The items of a unit at which some of its tasks must fail, because a task that they need has failed there."""
        doomed: dict[int, list[str]] = {}
        for task in unit.tasks:
            for need in self._needs[task]:
                if need in unit.tasks:
                    continue
                for link in self.unsuccessful(unit.shard, need):
                    if unit.start <= link.start < unit.end and task not in doomed.setdefault(link.start, []):
                        doomed[link.start].append(task)
        return [(item, tuple(tasks)) for item, tasks in sorted(doomed.items()) if tasks]

    def _steps(self, shard: ShardId, task: str) -> Iterator[Link | tuple[int, int]]:
        links = self._links.get((shard, task), {})
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
