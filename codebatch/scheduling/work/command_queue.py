"""The queue of commands that may start, and the number of tokens taken from each pool.

Waiting items that take the same tokens are in one heap. The first items of the heaps are tried in order of their keys.
An item starts if its tokens are free. If its tokens are not free, its pools are reserved: items tried later may start
only if they take nothing from these pools. An item that wants more tokens than a pool has takes the whole pool.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping

from codebatch.scheduling.work.command_plan import ALL, SLOTS, CommandPlan, Demand
from codebatch.scheduling.work.events import ANY, Wake

_Key = tuple[int, int, int]


class CommandQueue:
    """The items that wait for their start, and the tokens that running items have taken."""

    def __init__(
        self, agenda: CommandPlan, is_startable: Callable[[int], bool], closed_pools: Callable[[], Collection[str]]
    ) -> None:
        """Start empty.

        `is_startable` returns whether an item may start now. It is called again before an item is returned, because the
        state may have changed since the item was queued. Items that take tokens from a pool in `closed_pools()` do not
        start.
        """
        self._agenda = agenda
        self._is_startable = is_startable
        self._closed_pools = closed_pools
        self.capacity = dict(agenda.capacity)
        self.used = dict.fromkeys(agenda.capacity, 0)
        self._holds: dict[int, dict[str, int]] = {}
        self._heaps: dict[Demand, list[tuple[_Key, int]]] = {}
        self._waiting: set[int] = set()
        self._is_start_delayed = False

    def __len__(self) -> int:
        """Return the number of waiting items, without those that take tokens from a closed pool."""
        closed = self._closed_pools()
        if not closed:
            return len(self._waiting)
        return sum(not _demands_any(self._agenda.demands[item], closed) for item in self._waiting)

    @property
    def free_slots(self) -> int:
        """The number of free slots. Negative if more items run than the capacity allows."""
        return self.capacity[SLOTS] - self.used[SLOTS]

    def set_capacity(self, capacity: Mapping[str, int]) -> None:
        """Change the capacity of pools.

        Running items keep their tokens. If an exclusive item is running, it takes all slots of the new capacity.
        """
        self.capacity.update({pool: size for pool, size in capacity.items() if pool in self.capacity})
        for item, holds in self._holds.items():
            if SLOTS in holds and self._slots(item) == ALL:
                self.used[SLOTS] += self.capacity[SLOTS] - holds[SLOTS]
                holds[SLOTS] = self.capacity[SLOTS]

    def add(self, item: int) -> None:
        """Queue an item if it may start.

        If the item is ANY, the minimum time between two starts has passed: allow the next start.
        """
        if item == ANY:
            self._is_start_delayed = False
            return
        if item not in self._waiting and self._is_startable(item):
            self._waiting.add(item)
            heap = self._heaps.setdefault(self._agenda.demands[item], [])
            heapq.heappush(heap, (self._agenda.keys[item], item))

    def has_any(self) -> bool:
        """Return whether any waiting item may start."""
        return bool(self._heads())

    def best(self) -> int | None:
        """Return the item to start next, or None if no item may start now."""
        if self._is_start_delayed:
            return None
        blocked_pools: set[str] = set()
        closed = self._closed_pools()
        for _, demand in self._heads():
            if _demands_any(demand, closed):  # An item that waits for a closed pool reserves none of its other pools.
                continue
            pools = [pool for pool, _ in demand[1:]]
            if not self._fits(*demand[0]):
                return None
            if all(self._fits(*requirement) for requirement in demand) and not blocked_pools.intersection(pools):
                return self._heaps[demand][0][1]
            blocked_pools.update(pools)
        return None

    def follower(self, item: int, may_follow: Callable[[int], bool]) -> int | None:
        """Remove and return the item that may start as soon as a running item ends, with the running item's tokens.

        It is the first waiting item. Return None if that takes other tokens than the running item, or if `may_follow`
        is false for it.
        """
        heads = self._heads()
        demand = self._agenda.demands[item]
        if not heads or heads[0][1] != demand or not may_follow(self._heaps[demand][0][1]):
            return None
        follower = heapq.heappop(self._heaps[demand])[1]
        self._waiting.discard(follower)
        return follower

    def record_start(self) -> list[Wake]:
        """Record the start of an item. The start may also be that of an earlier coordinator.

        Until the minimum time between two starts has passed, no other item starts. Return the Wake for the end of this
        time, or an empty list if there is no minimum.
        """
        seconds = self._agenda.start_every_seconds
        self._is_start_delayed = seconds > 0
        return [Wake(ANY, 0, seconds)] if self._is_start_delayed else []

    def acquire(self, item: int) -> None:
        """Take the tokens of an item that starts or already runs, even if this exceeds the capacity."""
        demand = self._agenda.demands[item]
        if item in self._waiting and self._heaps[demand][0][1] == item:
            heapq.heappop(self._heaps[demand])
            self._waiting.discard(item)
        self._holds[item] = {}
        for pool, amount in demand:
            self._acquire_tokens(item, pool, amount)

    def release(self, item: int) -> None:
        """Free the tokens of an item that no longer runs."""
        for pool, amount in self._holds.pop(item).items():
            self.used[pool] -= amount

    def release_slots(self, item: int) -> None:
        """Free the slots of a running item that waits for an answer. It keeps its tokens of other pools."""
        self.used[SLOTS] -= self._holds[item].pop(SLOTS)

    def has_free_slots(self, item: int) -> bool:
        """Return whether an item can take its slots back, which `release_slots` has freed."""
        return self._fits(SLOTS, self._slots(item))

    def acquire_slots(self, item: int) -> None:
        """Take the slots of an item again after `release_slots`."""
        self._acquire_tokens(item, SLOTS, self._slots(item))

    def _slots(self, item: int) -> int:
        return self._agenda.demands[item][0][1]

    def _acquire_tokens(self, item: int, pool: str, amount: int) -> None:
        tokens = min(amount, self.capacity[pool])
        self._holds[item][pool] = tokens
        self.used[pool] += tokens

    def _fits(self, pool: str, amount: int) -> bool:
        return self.used[pool] + min(amount, self.capacity[pool]) <= self.capacity[pool]

    def _heads(self) -> list[tuple[_Key, Demand]]:
        """Return the first item of each heap as (key, demand), sorted by key."""
        heads: list[tuple[_Key, Demand]] = []
        for demand, heap in self._heaps.items():
            while heap and not self._is_startable(heap[0][1]):
                self._waiting.discard(heapq.heappop(heap)[1])
            if heap:
                heads.append((heap[0][0], demand))
        return sorted(heads)


def _demands_any(demand: Demand, pools: Collection[str]) -> bool:
    return bool(pools) and any(pool in pools for pool, _ in demand)
