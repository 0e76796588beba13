"""Who starts next, and what is taken of pools meanwhile.

Those that may start wait in a heap for each demand of pools. The best head that fits starts; one that does not holds
its pools, so that nobody behind it takes them, while others go on. Who demands more than there is takes all.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping

from codebatch.scheduling.work.command_plan import ALL, SLOTS, CommandPlan, Demand
from codebatch.scheduling.work.events import ANY, Wake

_Key = tuple[int, int, int]


class CommandQueue:
    """The items that wait to be started, and the tokens of those that run."""

    def __init__(
        self, agenda: CommandPlan, is_startable: Callable[[int], bool], closed_pools: Callable[[], Collection[str]]
    ) -> None:
        """`is_startable` is asked again before an item is given out: much may have happened since it came here. Of the
        `closed_pools` nothing is taken.
        """
        self._agenda = agenda
        self._is_startable = is_startable
        self._closed_pools = closed_pools
        self.capacity = dict(agenda.capacity)
        self.used = dict.fromkeys(agenda.capacity, 0)
        self._holds: dict[int, dict[str, int]] = {}
        self._heaps: dict[Demand, list[tuple[_Key, int]]] = {}
        self._waiting: set[int] = set()
        self._is_spacing = False

    def __len__(self) -> int:
        """How many wait that take of no closed pool."""
        closed = self._closed_pools()
        if not closed:
            return len(self._waiting)
        return sum(not _takes_of(self._agenda.demands[item], closed) for item in self._waiting)

    @property
    def free_slots(self) -> int:
        """How many more may run; below 0 where more run than may."""
        return self.capacity[SLOTS] - self.used[SLOTS]

    def set_capacity(self, capacity: Mapping[str, int]) -> None:
        """Make pools larger or smaller. What is taken stays taken; who runs alone does so among more slots too."""
        self.capacity.update({pool: size for pool, size in capacity.items() if pool in self.capacity})
        for item, holds in self._holds.items():
            if SLOTS in holds and self._slots(item) == ALL:
                self.used[SLOTS] += self.capacity[SLOTS] - holds[SLOTS]
                holds[SLOTS] = self.capacity[SLOTS]

    def add(self, item: int) -> None:
        """Have an item wait, if it may start; ANY: the time between two starts is over."""
        if item == ANY:
            self._is_spacing = False
            return
        if item not in self._waiting and self._is_startable(item):
            self._waiting.add(item)
            heap = self._heaps.setdefault(self._agenda.demands[item], [])
            heapq.heappush(heap, (self._agenda.keys[item], item))

    def has_any(self) -> bool:
        """Whether any item waits that may start."""
        return bool(self._heads())

    def best(self) -> int | None:
        """The item that is to start now; None where none may."""
        if self._is_spacing:
            return None
        held: set[str] = set()
        closed = self._closed_pools()
        for _, demand in self._heads():
            if _takes_of(demand, closed):  # It holds nothing of the others meanwhile.
                continue
            pools = [pool for pool, _ in demand[1:]]
            if not self._fits(*demand[0]):
                return None
            if all(self._fits(*each) for each in demand) and not held.intersection(pools):
                return self._heaps[demand][0][1]
            held.update(pools)
        return None

    def follower(self, item: int, may_follow: Callable[[int], bool]) -> int | None:
        """Take out the item that would be next, where it demands what one that runs does: it may have that after it.

        None where the next is another, or `may_follow` does not hold for it.
        """
        heads = self._heads()
        demand = self._agenda.demands[item]
        if not heads or heads[0][1] != demand or not may_follow(self._heaps[demand][0][1]):
            return None
        found = heapq.heappop(self._heaps[demand])[1]
        self._waiting.discard(found)
        return found

    def space(self) -> list[Wake]:
        """Something starts, or did before us: nothing else does until the time between two starts is over."""
        seconds = self._agenda.start_every_seconds
        self._is_spacing = seconds > 0
        return [Wake(ANY, 0, seconds)] if self._is_spacing else []

    def take(self, item: int) -> None:
        """An item runs, whether there was room or not."""
        demand = self._agenda.demands[item]
        if item in self._waiting and self._heaps[demand][0][1] == item:
            heapq.heappop(self._heaps[demand])
            self._waiting.discard(item)
        self._holds[item] = {}
        for pool, amount in demand:
            self._take(item, pool, amount)

    def give_back(self, item: int) -> None:
        """An item does not run any more."""
        for pool, amount in self._holds.pop(item).items():
            self.used[pool] -= amount

    def rest(self, item: int) -> None:
        """An item that runs gives back its slots, and keeps what it has of other pools."""
        self.used[SLOTS] -= self._holds[item].pop(SLOTS)

    def may_go_on(self, item: int) -> bool:
        """Whether there is room for one that rests."""
        return self._fits(SLOTS, self._slots(item))

    def go_on(self, item: int) -> None:
        """One that rested has its slots again."""
        self._take(item, SLOTS, self._slots(item))

    def _slots(self, item: int) -> int:
        return self._agenda.demands[item][0][1]

    def _take(self, item: int, pool: str, amount: int) -> None:
        taken = min(amount, self.capacity[pool])
        self._holds[item][pool] = taken
        self.used[pool] += taken

    def _fits(self, pool: str, amount: int) -> bool:
        return self.used[pool] + min(amount, self.capacity[pool]) <= self.capacity[pool]

    def _heads(self) -> list[tuple[_Key, Demand]]:
        """Of each demand the first item that waits, the first of all first."""
        heads: list[tuple[_Key, Demand]] = []
        for demand, heap in self._heaps.items():
            while heap and not self._is_startable(heap[0][1]):
                self._waiting.discard(heapq.heappop(heap)[1])
            if heap:
                heads.append((heap[0][0], demand))
        return sorted(heads)


def _takes_of(demand: Demand, pools: Collection[str]) -> bool:
    return bool(pools) and any(pool in pools for pool, _ in demand)
