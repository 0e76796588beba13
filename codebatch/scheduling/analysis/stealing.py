"""Whose unit is cut when nothing is queued, and where; and which items are so costly that they are units themselves."""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Mapping, Sequence
from itertools import pairwise

from codebatch.model.outcome import Unit
from codebatch.model.shard import ShardId
from codebatch.scheduling.events import WorkerId

CRITICAL_SHARE = 0.5


class Victims:
    """Running units in a heap by how much may be left of each: what it cost when it was last looked at."""

    def __init__(self, running: Mapping[WorkerId, Unit]) -> None:
        """`running`: the units of our workers, as they are at any time."""
        self._running = running
        self._heap: list[tuple[float, int, WorkerId, Unit]] = []
        self._watched = 0
        self._surveyed: WorkerId | None = None

    def watch(self, worker: WorkerId, unit: Unit, left: float) -> None:
        """Remember a running unit as one that may be stolen from; `left` is at least what is left of it."""
        if unit.end - unit.start > 1:
            self._watched += 1
            heapq.heappush(self._heap, (-left, self._watched, worker, unit))

    def choose(self) -> WorkerId | None:
        """The worker with the most work that may be left. None while one is being surveyed, or where there is none."""
        if self._surveyed is not None and self._surveyed in self._running:
            return None
        self._surveyed = None
        while self._heap:
            _, _, worker, unit = self._heap[0]
            if self._running.get(worker) is unit:
                self._surveyed = worker
                return worker
            heapq.heappop(self._heap)
        return None

    def take(self, worker: WorkerId) -> Unit | None:
        """The unit of the worker that was surveyed, no longer watched; None where it has another by now."""
        self._surveyed = None
        unit = self._running.get(worker)
        if not self._heap or unit is None or self._heap[0][3] is not unit:
            return None
        heapq.heappop(self._heap)
        return unit

    def may_more_be_left_elsewhere(self, left: float) -> bool:
        """Whether another running unit may have more left."""
        return bool(self._heap) and left < -self._heap[0][0]


def cut(costs: Sequence[float], first: int, end: int) -> int:
    """Where a unit is cut of which the items [first, end) are left: at half their cost, one item at least to the thief.

    `costs` are the cumulative estimates of its shard.
    """
    middle = bisect.bisect_left(costs, costs[first] + (costs[end] - costs[first]) / 2, first, end)
    return min(max(middle, first), end - 1)


def critical_items(
    costs: Mapping[ShardId, Sequence[float]], jobs: int, cost_per_worker: float
) -> dict[ShardId, list[int]]:
    """The items that alone are a good part of a worker's share, and worth a worker: they do not wait for neighbours."""
    if jobs == 1:
        return {}
    least = max(cost_per_worker, CRITICAL_SHARE * sum(column[-1] for column in costs.values()) / jobs)
    critical: dict[ShardId, list[int]] = {}
    for shard, column in costs.items():
        if column[-1] < least or len(column) == 2 or least == 0:
            continue
        if items := [item for item, (before, after) in enumerate(pairwise(column)) if after - before >= least]:
            critical[shard] = items
    return critical
