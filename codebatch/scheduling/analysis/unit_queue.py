"""The units that wait for a worker: longest processing time first (Graham 1969), ties in path order."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

from codebatch.model.outcome import Unit
from codebatch.model.shard import ShardId

Place = tuple[float, int, int]
"""The place of a unit in the queue: its negative cost, its shard's place in the plan, its first item."""


class UnitQueue:
    """A heap of places, and the units at them. A place whose unit has left the queue is skipped when it comes up."""

    def __init__(self, shards: Sequence[ShardId], costs: Mapping[ShardId, Sequence[float]]) -> None:
        """`shards` are in plan order; `costs` are as in Session."""
        self._shards = shards
        self._order = {shard: index for index, shard in enumerate(shards)}
        self._costs = costs
        self._heap: list[Place] = []
        self._units: dict[ShardId, dict[int, Unit]] = {}
        self.units = 0
        """Number of units that wait."""
        self.items = 0
        """Number of their items."""
        self.cost = 0.0
        """Their estimated cost."""

    def __bool__(self) -> bool:
        """Return whether there may be a unit: the places that are left may be empty."""
        return bool(self._heap)

    def replace(self, shard: ShardId, units: Iterable[Unit]) -> None:
        """Queue these units of a shard, and none of those that were queued before."""
        known = frozenset(self._units.get(shard, ()))
        for start in known:
            self._remove(shard, start)
        for unit in units:
            if unit.start not in known:
                heapq.heappush(self._heap, (-self.cost_of(unit), self._order[shard], unit.start))
            self._add(unit)

    def pop(self) -> tuple[Place, Unit] | None:
        """Take the first unit; None if there is none."""
        while self._heap:
            place = heapq.heappop(self._heap)
            unit = self._remove(self._shards[place[1]], place[2])
            if unit is not None:
                return place, unit
        return None

    def put_back(self, place: Place, unit: Unit) -> None:
        """Queue a unit that was taken, at its place."""
        heapq.heappush(self._heap, place)
        self._add(unit)

    def cost_of(self, unit: Unit) -> float:
        """Return the estimated cost of a unit."""
        costs = self._costs[unit.shard]
        return costs[unit.end] - costs[unit.start]

    def _add(self, unit: Unit) -> None:
        self._remove(unit.shard, unit.start)
        self._units.setdefault(unit.shard, {})[unit.start] = unit
        self.units += 1
        self.items += unit.end - unit.start
        self.cost += self.cost_of(unit)

    def _remove(self, shard: ShardId, start: int) -> Unit | None:
        unit = self._units.get(shard, {}).pop(start, None)
        if unit is not None:
            self.units -= 1
            self.items -= unit.end - unit.start
            self.cost -= self.cost_of(unit)
        return unit
