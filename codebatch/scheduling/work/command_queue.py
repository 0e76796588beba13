"""The queue of commands that may start, and the number of tokens taken from each pool.

Waiting items that take the same tokens are in one heap. The first items of the heaps are tried in order of their keys.
An item starts if its tokens are free. If its tokens are not free, its pools are reserved: items tried later may start
only if they take nothing from these pools. An item that wants more tokens than a pool has takes the whole pool.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping

from codebatch.scheduling.work.command_plan import SLOTS_POOL, WHOLE_POOL, CommandPlan, TokenDemand
from codebatch.scheduling.work.events import ANY_ITEM, SetTimer

_SortKey = tuple[int, int, int]


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
        self._priorities: dict[int, int] = {}
        self.capacity = dict(agenda.capacity)
        self.used = dict.fromkeys(agenda.capacity, 0)
        self._held_tokens: dict[int, dict[str, int]] = {}
        self._heaps: dict[TokenDemand, list[tuple[_SortKey, int]]] = {}
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
        return self.capacity[SLOTS_POOL] - self.used[SLOTS_POOL]

    def set_capacity(self, capacity: Mapping[str, int]) -> None:
        """Change the capacity of pools.

        Running items keep their tokens. If an exclusive item is running, it takes all slots of the new capacity.
        """
        self.capacity.update({pool: size for pool, size in capacity.items() if pool in self.capacity})
        for item, holds in self._held_tokens.items():
            if SLOTS_POOL in holds and self._slots_of_item(item) == WHOLE_POOL:
                self.used[SLOTS_POOL] += self.capacity[SLOTS_POOL] - holds[SLOTS_POOL]
                holds[SLOTS_POOL] = self.capacity[SLOTS_POOL]

    def set_priorities(self, priorities: Mapping[int, int]) -> None:
        """Change the priorities of items, and sort the waiting items again. The plan may have changed too."""
        self._priorities.update(priorities)
        for heap in self._heaps.values():
            heap[:] = [(self._sort_key(waiting), waiting) for _, waiting in heap]
            heapq.heapify(heap)

    def _sort_key(self, item: int) -> _SortKey:
        listed, *others = self._agenda.sort_keys[item]
        return (-self._priorities[item] if item in self._priorities else listed, others[0], others[1])

    def add(self, item: int) -> None:
        """Queue an item if it may start.

        If the item is ANY, the minimum time between two starts has passed: allow the next start.
        """
        if item == ANY_ITEM:
            self._is_start_delayed = False
            return
        if item not in self._waiting and self._is_startable(item):
            self._waiting.add(item)
            heap = self._heaps.setdefault(self._agenda.demands[item], [])
            heapq.heappush(heap, (self._sort_key(item), item))

    def has_any(self) -> bool:
        """Return whether any waiting item may start."""
        return bool(self._first_waiting())

    def best_item(self) -> int | None:
        """Return the item to start next, or None if no item may start now."""
        if self._is_start_delayed:
            return None
        blocked_pools: set[str] = set()
        closed = self._closed_pools()
        for _, demand in self._first_waiting():
            if _demands_any(demand, closed):  # An item that waits for a closed pool reserves none of its other pools.
                continue
            pools = [pool for pool, _ in demand[1:]]
            if not self._has_free_tokens(*demand[0]):
                return None
            if all(self._has_free_tokens(*requirement) for requirement in demand) and not blocked_pools.intersection(
                pools
            ):
                return self._heaps[demand][0][1]
            blocked_pools.update(pools)
        return None

    def pop_follower(self, item: int, may_follow: Callable[[int], bool]) -> int | None:
        """Remove and return the item that may start as soon as a running item ends, with the running item's tokens.

        It is the first waiting item. Return None if that takes other tokens than the running item, or if `may_follow`
        is false for it.
        """
        heads = self._first_waiting()
        demand = self._agenda.demands[item]
        if not heads or heads[0][1] != demand or not may_follow(self._heaps[demand][0][1]):
            return None
        follower = heapq.heappop(self._heaps[demand])[1]
        self._waiting.discard(follower)
        return follower

    def record_start(self) -> list[SetTimer]:
        """Record the start of an item. The start may also be that of an earlier coordinator.

        Until the minimum time between two starts has passed, no other item starts. Return the Wake for the end of this
        time, or an empty list if there is no minimum.
        """
        seconds = self._agenda.start_every_seconds
        self._is_start_delayed = seconds > 0
        return [SetTimer(ANY_ITEM, 0, seconds)] if self._is_start_delayed else []

    def acquire(self, item: int) -> None:
        """Take the tokens of an item that starts or already runs, even if this exceeds the capacity."""
        demand = self._agenda.demands[item]
        if item in self._waiting and self._heaps[demand][0][1] == item:
            heapq.heappop(self._heaps[demand])
            self._waiting.discard(item)
        self._held_tokens[item] = {}
        for pool, amount in demand:
            self._acquire_tokens(item, pool, amount)

    def release(self, item: int) -> None:
        """Free the tokens of an item that no longer runs."""
        for pool, amount in self._held_tokens.pop(item).items():
            self.used[pool] -= amount

    def release_slots(self, item: int) -> None:
        """Free the slots of a running item that waits for an answer. It keeps its tokens of other pools."""
        self.used[SLOTS_POOL] -= self._held_tokens[item].pop(SLOTS_POOL)

    def has_free_slots(self, item: int) -> bool:
        """Return whether an item can take its slots back, which `release_slots` has freed."""
        return self._has_free_tokens(SLOTS_POOL, self._slots_of_item(item))

    def acquire_slots(self, item: int) -> None:
        """Take the slots of an item again after `release_slots`."""
        self._acquire_tokens(item, SLOTS_POOL, self._slots_of_item(item))

    def _slots_of_item(self, item: int) -> int:
        return self._agenda.demands[item][0][1]

    def _acquire_tokens(self, item: int, pool: str, amount: int) -> None:
        tokens = min(amount, self.capacity[pool])
        self._held_tokens[item][pool] = tokens
        self.used[pool] += tokens

    def _has_free_tokens(self, pool: str, amount: int) -> bool:
        return self.used[pool] + min(amount, self.capacity[pool]) <= self.capacity[pool]

    def _first_waiting(self) -> list[tuple[_SortKey, TokenDemand]]:
        """Return the first item of each heap as (key, demand), sorted by key."""
        heads: list[tuple[_SortKey, TokenDemand]] = []
        for demand, heap in self._heaps.items():
            while heap and not self._is_startable(heap[0][1]):
                self._waiting.discard(heapq.heappop(heap)[1])
            if heap:
                heads.append((heap[0][0], demand))
        return sorted(heads)


def _demands_any(demand: TokenDemand, pools: Collection[str]) -> bool:
    return bool(pools) and any(pool in pools for pool, _ in demand)
