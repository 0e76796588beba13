"""Observed throughput of the workers. It determines the number of workers that are worthwhile for the remaining work.

The coordinator reports the positions of its workers several times a second. The difference of two reports is the
estimated cost that the workers completed in this time. The completed cost divided by the seconds is the speed. This
speed converts the estimated cost of the remaining work into seconds. A further worker is started if each worker would
then still have at least as many seconds of work as a start takes.

1. The first seconds of a worker do not count: a new process loads modules and grammars, regardless of the files.
2. The cost of a worker's current item counts as completed as soon as the item begins.
3. The costliest units run first and are not representative, so older observations lose weight. Their weight is halved
   when 2 seconds have passed and each worker has finished 8 items, because few items are weak evidence.
4. Until there are observations, one worker is started for each `cost_per_worker` of remaining work.
5. If a unit would last too long, it is shortened, so that its worker commits its results sooner.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence

from codebatch.model.outcome import WorkUnit
from codebatch.model.shard import ShardId
from codebatch.scheduling.events import ProgressReport, WorkerId

START_SECONDS = 0.5
"""Minimum seconds from the start of a worker to its full speed. The set-up of its tasks is added."""

HALF_LIFE_SECONDS = 2.0
"""Minimum seconds between two halvings of the weight of observations. HALF_LIFE_ITEMS must be reached too."""

HALF_LIFE_ITEMS = 8
"""Minimum number of items that each worker must finish between two halvings. HALF_LIFE_SECONDS must have passed too."""

UNIT_SECONDS_MAX = 120.0
"""Maximum remaining time of a unit in seconds. A longer unit is shortened to half of this."""


class WorkerThroughput:
    """The observed positions of the workers of one session. It sums the cost that they completed, and the seconds."""

    def __init__(
        self,
        costs: Mapping[ShardId, Sequence[float]],
        running: Mapping[WorkerId, WorkUnit],
        cost_per_worker: float,
    ) -> None:
        """Start without observations. `costs` are as in Session. `running` is the live mapping of workers to units."""
        self._costs = costs
        self._running = running
        self._cost_per_worker = cost_per_worker
        self._positions: dict[WorkerId, int] = {}
        self._working_seconds: dict[WorkerId, float] = {}
        self._setting_up: dict[WorkerId, float] = {}
        self._done = self._seconds = self._at_hand = 0.0
        self._new_done = self._new_seconds = 0.0
        self._new_items = 0
        self._start_seconds = START_SECONDS

    def observe(self, report: ProgressReport) -> None:
        """Add the progress of the workers since the last report."""
        self._at_hand = 0.0
        positions = dict(report.positions)
        for worker, unit in self._running.items():
            if worker in positions:
                self._count_progress(worker, unit, positions[worker], report.seconds)
            else:
                self._setting_up[worker] = self._setting_up.get(worker, 0.0) + report.seconds
        items = self._new_items / max(1, len(self._running))
        fading = 0.5 ** min(report.seconds / HALF_LIFE_SECONDS, items / HALF_LIFE_ITEMS)
        self._done = fading * self._done + self._new_done
        self._seconds = fading * self._seconds + self._new_seconds
        self._new_done = self._new_seconds = 0.0
        self._new_items = 0

    def finish(self, worker: WorkerId, unit: WorkUnit) -> None:
        """Record that a worker has completed its whole unit."""
        self._count_progress(worker, unit, unit.end, 0.0)
        del self._positions[worker]

    def workers_worth(self, queued_cost: float, queued_items: int) -> int:
        """Return the number of workers that are worthwhile for the remaining work, from 1 to one for each item.

        `queued_cost` and `queued_items` describe the work that is not running.
        """
        cost, items = queued_cost, queued_items
        for worker, unit in self._running.items():
            position = self._last_position(worker, unit)
            cost += self._costs[unit.shard][unit.end] - self._costs[unit.shard][position]
            items += max(1, unit.end - position)
        share = self._cost_worth_a_worker()
        # Sums of costs are rounded, so the cost of no work can be slightly negative.
        return items if items * share <= max(0.0, cost) else min(items, max(1, math.ceil(cost / share)))

    def unit_end_in_time(self, worker: WorkerId) -> int | None:
        """Return the item at which a worker's unit should end, or None if the unit does not last too long.

        The returned end is after the worker's current item.
        """
        unit = self._running[worker]
        costs, position = self._costs[unit.shard], self._last_position(worker, unit)
        if not self._seconds or costs[unit.end] - costs[position] <= UNIT_SECONDS_MAX * self._cost_per_second:
            return None
        end = bisect.bisect(costs, costs[position] + UNIT_SECONDS_MAX / 2 * self._cost_per_second, position, unit.end)
        return end if end < unit.end else None

    @property
    def _cost_per_second(self) -> float:
        """The estimated cost that one worker completes in a second. Call this only if there are observations."""
        return (self._done + self._at_hand) / self._seconds

    def _cost_worth_a_worker(self) -> float:
        """Return the remaining cost per worker at which it is worthwhile to start one more worker."""
        return self._start_seconds * self._cost_per_second if self._seconds else self._cost_per_worker

    def _count_progress(self, worker: WorkerId, unit: WorkUnit, reported: int, seconds: float) -> None:
        before = self._last_position(worker, unit)
        position = self._positions[worker] = min(max(reported, before), unit.end)
        if worker not in self._working_seconds:
            set_up = self._setting_up.pop(worker, 0.0)
            self._start_seconds = max(self._start_seconds, START_SECONDS + set_up)
        worked = self._working_seconds.get(worker, 0.0)
        self._working_seconds[worker] = worked + seconds
        if worked >= self._start_seconds:
            costs = self._costs[unit.shard]
            self._new_seconds += seconds
            self._new_done += costs[position] - costs[before]
            self._new_items += position - before
            self._at_hand += costs[min(position + 1, unit.end)] - costs[position]

    def _last_position(self, worker: WorkerId, unit: WorkUnit) -> int:
        """Return the last known position of a worker in its unit, but at most the end of the unit.

        After its unit was shortened, the worker may already be past the new end.
        """
        return min(self._positions.get(worker, unit.start), unit.end)
