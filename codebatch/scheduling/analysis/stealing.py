"""Work stealing: the choice of a running unit to split, and of the item at which to split it.

Also determines the items that are units of their own.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Mapping, Sequence
from itertools import pairwise

from codebatch.model.outcome import WorkUnit
from codebatch.model.shard import ShardId
from codebatch.scheduling.events import WorkerId

CRITICAL_COST_SHARE = 0.5


class StealCandidates:
    """The running units from which work can be stolen, as a heap by an upper bound of their remaining cost."""

    def __init__(self, running: Mapping[WorkerId, WorkUnit]) -> None:
        """Start without units. `running` is the live mapping of workers to their units."""
        self._running = running
        self._heap: list[tuple[float, int, WorkerId, WorkUnit]] = []
        self._candidate_units = 0
        self._surveyed_worker: WorkerId | None = None

    def add_candidate(self, worker: WorkerId, unit: WorkUnit, remaining_seconds: float) -> None:
        """Add a running unit as a candidate. `remaining_seconds` is an upper bound of its remaining cost."""
        if unit.end - unit.start > 1:
            self._candidate_units += 1
            heapq.heappush(self._heap, (-remaining_seconds, self._candidate_units, worker, unit))

    def choose(self) -> WorkerId | None:
        """Return the worker that may have the most work left.

        The session then asks this worker for its position (survey).

        Return None if there is no candidate, or while another survey is running.
        """
        if self._surveyed_worker is not None and self._surveyed_worker in self._running:
            return None
        self._surveyed_worker = None
        while self._heap:
            _, _, worker, unit = self._heap[0]
            if self._running.get(worker) is unit:
                self._surveyed_worker = worker
                return worker
            heapq.heappop(self._heap)
        return None

    def take_unit(self, worker: WorkerId) -> WorkUnit | None:
        """Remove and return the unit of the surveyed worker. Return None if the worker has another unit by now."""
        self._surveyed_worker = None
        unit = self._running.get(worker)
        if not self._heap or unit is None or self._heap[0][3] is not unit:
            return None
        heapq.heappop(self._heap)
        return unit

    def may_others_have_more_work(self, remaining: float) -> bool:
        """Return whether a running unit other than the surveyed one may have more than `remaining` left."""
        return bool(self._heap) and remaining < -self._heap[0][0]


def split_item(costs: Sequence[float], first: int, end: int) -> int:
    """Return the item at which to split a unit whose items [first, end) are left.

    Each part gets about half of the cost, and the second part at least one item. `costs` are the cumulative estimates
    of the shard.
    """
    middle = bisect.bisect_left(costs, costs[first] + (costs[end] - costs[first]) / 2, first, end)
    return min(max(middle, first), end - 1)


def critical_items(
    costs: Mapping[ShardId, Sequence[float]], jobs: int, cost_per_worker: float
) -> dict[ShardId, list[int]]:
    """Return, by shard, the items that become units of their own.

    The cost of each of them is a large part of a worker's share of the total cost.
    """
    if jobs == 1:
        return {}
    least = max(cost_per_worker, CRITICAL_COST_SHARE * sum(column[-1] for column in costs.values()) / jobs)
    critical: dict[ShardId, list[int]] = {}
    for shard, column in costs.items():
        if column[-1] < least or len(column) == 2 or least == 0:
            continue
        if items := [item for item, (before, after) in enumerate(pairwise(column)) if after - before >= least]:
            critical[shard] = items
    return critical
