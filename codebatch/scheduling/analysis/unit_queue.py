"""Queue of units that wait for a worker: longest processing time first (Graham 1969), ties in path order."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

from codebatch.model.outcome import Unit
from codebatch.model.shard import ShardId

QueuePosition = tuple[float, int, int]
"""Sort key of a unit in the queue: its negative cost, the index of its shard in the plan, its first item."""


class UnitQueue:
    """A queue of units: a heap of queue positions, and a table of the units at these positions.

    `replace` removes units only from the table. `pop` skips positions without a unit.
    """

    def __init__(self, shards: Sequence[ShardId], costs: Mapping[ShardId, Sequence[float]]) -> None:
        """Start empty. `shards` are in plan order; `costs` are as in Session."""
        self._shards = shards
        self._order = {shard: index for index, shard in enumerate(shards)}
        self._costs = costs
        self._heap: list[QueuePosition] = []
        self._units: dict[ShardId, dict[int, Unit]] = {}
        self.units = 0
        """Number of waiting units."""
        self.items = 0
        """Number of items of the waiting units."""
        self.cost = 0.0
        """Estimated cost of the waiting units."""

    def __bool__(self) -> bool:
        """Return whether the heap has any position. True does not guarantee that `pop` returns a unit."""
        return bool(self._heap)

    def replace(self, shard: ShardId, units: Iterable[Unit]) -> None:
        """Remove the queued units of a shard and queue `units` instead."""
        known = frozenset(self._units.get(shard, ()))
        for start in known:
            self._remove(shard, start)
        for unit in units:
            if unit.start not in known:
                heapq.heappush(self._heap, (-self.unit_cost(unit), self._order[shard], unit.start))
            self._add(unit)

    def pop(self) -> tuple[QueuePosition, Unit] | None:
        """Remove the costliest unit. Return it with its queue position, or None if the queue is empty."""
        while self._heap:
            place = heapq.heappop(self._heap)
            unit = self._remove(self._shards[place[1]], place[2])
            if unit is not None:
                return place, unit
        return None

    def put_back(self, place: QueuePosition, unit: Unit) -> None:
        """Queue a unit from `pop` again, at the same place."""
        heapq.heappush(self._heap, place)
        self._add(unit)

    def unit_cost(self, unit: Unit) -> float:
        """Return the estimated cost of a unit."""
        costs = self._costs[unit.shard]
        return costs[unit.end] - costs[unit.start]

    def _add(self, unit: Unit) -> None:
        self._remove(unit.shard, unit.start)
        self._units.setdefault(unit.shard, {})[unit.start] = unit
        self.units += 1
        self.items += unit.end - unit.start
        self.cost += self.unit_cost(unit)

    def _remove(self, shard: ShardId, start: int) -> Unit | None:
        unit = self._units.get(shard, {}).pop(start, None)
        if unit is not None:
            self.units -= 1
            self.items -= unit.end - unit.start
            self.cost -= self.unit_cost(unit)
        return unit
