"""Queue of units that wait for a worker: longest processing time first (Graham 1969), ties in path order."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

from codebatch.model.outcome import WorkUnit
from codebatch.model.shard import ShardId

QueuePosition = tuple[float, int, int]
"""Sort key of a unit in the queue: its negative cost, the index of its shard in the plan, its first item."""


class UnitQueue:
    """A queue of units: a heap of queue positions, and a table of the units at these positions.

    `replace_shard` removes units only from the table. `pop` skips positions without a unit.
    """

    def __init__(self, shards: Sequence[ShardId], costs: Mapping[ShardId, Sequence[float]]) -> None:
        """Start empty. `shards` are in plan order; `costs` are as in Session."""
        self._shards = shards
        self._order = {shard: index for index, shard in enumerate(shards)}
        self._costs = costs
        self._heap: list[QueuePosition] = []
        self._units: dict[ShardId, dict[int, WorkUnit]] = {}
        self.units = 0
        """Number of waiting units."""
        self.items = 0
        """Number of items of the waiting units."""
        self.cost = 0.0
        """Estimated cost of the waiting units."""

    def __bool__(self) -> bool:
        """Return whether the heap has any position. True does not guarantee that `pop` returns a unit."""
        return bool(self._heap)

    def replace_shard(self, shard: ShardId, units: Iterable[WorkUnit]) -> None:
        """Remove the queued units of a shard and queue `units` instead."""
        known = frozenset(self._units.get(shard, ()))
        for start in known:
            self._remove_unit(shard, start)
        for unit in units:
            if unit.start not in known:
                heapq.heappush(self._heap, (-self.unit_cost(unit), self._order[shard], unit.start))
            self._add_unit(unit)

    def pop(self) -> tuple[QueuePosition, WorkUnit] | None:
        """Remove the costliest unit. Return it with its queue position, or None if the queue is empty."""
        while self._heap:
            place = heapq.heappop(self._heap)
            unit = self._remove_unit(self._shards[place[1]], place[2])
            if unit is not None:
                return place, unit
        return None

    def put_back(self, place: QueuePosition, unit: WorkUnit) -> None:
        """Queue a unit from `pop` again, at the same place."""
        heapq.heappush(self._heap, place)
        self._add_unit(unit)

    def unit_cost(self, unit: WorkUnit) -> float:
        """Return the estimated cost of a unit."""
        costs = self._costs[unit.shard]
        return costs[unit.end] - costs[unit.start]

    def _add_unit(self, unit: WorkUnit) -> None:
        self._remove_unit(unit.shard, unit.start)
        self._units.setdefault(unit.shard, {})[unit.start] = unit
        self.units += 1
        self.items += unit.end - unit.start
        self.cost += self.unit_cost(unit)

    def _remove_unit(self, shard: ShardId, start: int) -> WorkUnit | None:
        unit = self._units.get(shard, {}).pop(start, None)
        if unit is not None:
            self.units -= 1
            self.items -= unit.end - unit.start
            self.cost -= self.unit_cost(unit)
        return unit
