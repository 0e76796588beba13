"""The workers of a session by their state: spawning, idle, running or retired."""

from __future__ import annotations

import msgspec

from codebatch.model.outcome import WorkUnit
from codebatch.model.shard import ShardId
from codebatch.scheduling.actions import RetireWorker, SessionAction
from codebatch.scheduling.events import WorkerId


class WorkerPool(msgspec.Struct):
    """The workers of a session by their state.

    `spawning` counts those that are starting. `fresh` is the subset of `idle` that never had a unit. `running` maps
    workers to their units. `retired` are workers that were asked to stop and are not dead yet.
    """

    spawning: int = 0
    idle: set[WorkerId] = msgspec.field(default_factory=set)
    fresh: set[WorkerId] = msgspec.field(default_factory=set)
    running: dict[WorkerId, WorkUnit] = msgspec.field(default_factory=dict)
    retired: set[WorkerId] = msgspec.field(default_factory=set)
    _by_shard: dict[ShardId, set[WorkerId]] = msgspec.field(default_factory=dict)

    @property
    def live_count(self) -> int:
        """The number of live workers, including those that are starting."""
        return self.spawning + len(self.idle) + len(self.running)

    def add_ready(self, worker: WorkerId) -> None:
        """Record that a spawned worker is ready for a unit."""
        self.spawning -= 1
        self.idle.add(worker)
        self.fresh.add(worker)

    def assign_unit(self, worker: WorkerId, unit: WorkUnit) -> None:
        """Record that an idle worker gets a unit."""
        self.idle.discard(worker)
        self.fresh.discard(worker)
        self.running[worker] = unit
        self._by_shard.setdefault(unit.shard, set()).add(worker)

    def finish(self, worker: WorkerId) -> WorkUnit | None:
        """Record that a worker is idle again. Return the unit that it had, or None."""
        unit = self._take_unit(worker)
        self.idle.add(worker)
        return unit

    def remove(self, worker: WorkerId) -> WorkUnit | None:
        """Record the death of a worker in any state. Return the unit that it had, or None."""
        unit = self._take_unit(worker)
        if unit is None:
            if worker in self.idle:
                self.idle.discard(worker)
                self.fresh.discard(worker)
            else:
                self.spawning -= 1
        return unit

    def retire_workers(self, workers: set[WorkerId]) -> list[SessionAction]:
        """Move idle workers to `retired`. Return the actions that stop them, in order of their IDs."""
        self.idle -= workers
        self.fresh -= workers
        self.retired |= workers
        return [RetireWorker(worker) for worker in sorted(workers)]

    def running_units_in(self, shard: ShardId) -> list[WorkUnit]:
        """Return the running units of a shard."""
        return [self.running[worker] for worker in self._by_shard.get(shard, ())]

    def _take_unit(self, worker: WorkerId) -> WorkUnit | None:
        unit = self.running.pop(worker, None)
        if unit is not None:
            self._by_shard[unit.shard].discard(worker)
        return unit
