"""The workers of a session by their state: spawning, idle, running or retired."""

from __future__ import annotations

import msgspec

from codebatch.model.outcome import Unit
from codebatch.model.shard import ShardId
from codebatch.scheduling.actions import Action, Retire
from codebatch.scheduling.events import WorkerId


class WorkerPool(msgspec.Struct):
    """The workers of a session by their state.

    `spawning` counts those that are starting. `fresh` is the subset of `idle` that never had a unit. `running` maps
    workers to their units. `retired` are workers that were asked to stop and are not dead yet.
    """

    spawning: int = 0
    idle: set[WorkerId] = msgspec.field(default_factory=set)
    fresh: set[WorkerId] = msgspec.field(default_factory=set)
    running: dict[WorkerId, Unit] = msgspec.field(default_factory=dict)
    retired: set[WorkerId] = msgspec.field(default_factory=set)
    _by_shard: dict[ShardId, set[WorkerId]] = msgspec.field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of live workers, including those that are starting."""
        return self.spawning + len(self.idle) + len(self.running)

    def add_ready(self, worker: WorkerId) -> None:
        """Record that a spawned worker is ready for a unit."""
        self.spawning -= 1
        self.idle.add(worker)
        self.fresh.add(worker)

    def assign(self, worker: WorkerId, unit: Unit) -> None:
        """Record that an idle worker gets a unit."""
        self.idle.discard(worker)
        self.fresh.discard(worker)
        self.running[worker] = unit
        self._by_shard.setdefault(unit.shard, set()).add(worker)

    def finish(self, worker: WorkerId) -> Unit | None:
        """Record that a worker is idle again. Return the unit that it had, or None."""
        unit = self._take_unit(worker)
        self.idle.add(worker)
        return unit

    def remove(self, worker: WorkerId) -> Unit | None:
        """Record the death of a worker in any state. Return the unit that it had, or None."""
        unit = self._take_unit(worker)
        if unit is None:
            if worker in self.idle:
                self.idle.discard(worker)
                self.fresh.discard(worker)
            else:
                self.spawning -= 1
        return unit

    def retire(self, workers: set[WorkerId]) -> list[Action]:
        """Move idle workers to `retired`. Return the actions that stop them, in order of their IDs."""
        self.idle -= workers
        self.fresh -= workers
        self.retired |= workers
        return [Retire(worker) for worker in sorted(workers)]

    def busy_in(self, shard: ShardId) -> list[Unit]:
        """Return the running units of a shard."""
        return [self.running[worker] for worker in self._by_shard.get(shard, ())]

    def _take_unit(self, worker: WorkerId) -> Unit | None:
        unit = self.running.pop(worker, None)
        if unit is not None:
            self._by_shard[unit.shard].discard(worker)
        return unit
