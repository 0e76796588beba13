"""Open units that can be assigned to a worker.

Their work is not running, not leased by another process, and not failing.

1. Units wait in a queue, the costliest first (unit_queue.py).
2. Open work is always computed from the ledger, one shard at a time. Before a queued unit is used, it is compared with
   the open work again, because outcomes may have arrived since it was queued.
3. An item that killed a worker is a unit of its own. So is an item whose cost is a large part of a worker's share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from codebatch.model.outcome import Commit, OutcomeRegister, WorkUnit
from codebatch.model.record import FailureReason
from codebatch.model.shard import Shard, ShardId
from codebatch.scheduling.actions import CommitFailure, SessionAction
from codebatch.scheduling.analysis.ledger import OutcomeLedger
from codebatch.scheduling.analysis.unit_queue import QueuePosition, UnitQueue
from codebatch.scheduling.analysis.worker_pool import WorkerPool
from codebatch.scheduling.events import UnitKey


class OpenUnits:
    """The open units of one session."""

    def __init__(
        self,
        ledger: OutcomeLedger,
        pool: WorkerPool,
        *,
        costs: Mapping[ShardId, Sequence[float]],
        critical: Mapping[ShardId, Sequence[int]],
        tasks: frozenset[str] | None,
        shards: frozenset[ShardId] | None,
    ) -> None:
        """Set up an empty queue.

        The other arguments are as in Session. `critical` lists, by shard, items that each become a unit of their own.
        """
        self._ledger = ledger
        self._pool = pool
        self._critical = critical
        self._tasks = tasks
        self._shards = shards
        self.queue = UnitQueue(tuple(ledger.work), costs)
        """The units that wait for a worker."""
        self._open: set[ShardId] = set()
        self._open_of_files = 0
        self._isolated: dict[ShardId, set[int]] = {}
        self._failing_tasks: dict[ShardId, set[tuple[int, str]]] = {}
        self._units_leased_elsewhere: dict[ShardId, set[int]] = {}

    def __bool__(self) -> bool:
        """Return whether any work is open, including running work and work leased by other processes."""
        return bool(self._open)

    @property
    def units_leased_elsewhere(self) -> frozenset[UnitKey]:
        """Open units that other processes have leased."""
        return frozenset((shard, start) for shard, starts in self._units_leased_elsewhere.items() for start in starts)

    def add_commits(self, commits: Sequence[Commit], unreadable: Sequence[OutcomeRegister]) -> list[SessionAction]:
        """Add commits and unreadable registers to the ledger, and queue the open work of their shards again.

        Return the actions that fail items for which a needed task failed.
        """
        touched: dict[ShardId, None] = {}
        for commit in commits:
            touched.update(dict.fromkeys(self._ledger.add(commit)))
            for outcome in commit.outcomes:
                self._failing_tasks.get(outcome.shard, set()).discard((outcome.start, outcome.task))
        for register in unreadable:
            self._ledger.mark_unreadable(register)
            if register.shard in self._ledger.work:
                touched[register.shard] = None
                self._failing_tasks.get(register.shard, set()).discard((register.start, register.task))
        actions: list[SessionAction] = []
        for shard in touched:
            self._release_settled(shard)
            actions += self.reopen_shard(shard)
        return actions

    def hold_unit(self, key: UnitKey) -> None:
        """Record that another process has leased a unit, so that the unit is not queued until `release`."""
        self._units_leased_elsewhere.setdefault(key[0], set()).add(key[1])

    def release(self, key: UnitKey) -> None:
        """Record that no other process has a lease of a unit any more, so that the unit can be queued."""
        starts = self._units_leased_elsewhere.get(key[0], set())
        starts.discard(key[1])
        if not starts:
            self._units_leased_elsewhere.pop(key[0], None)

    def isolate_items(self, shard: ShardId, first: int, end: int) -> None:
        """Make each of the items [first, end) a unit of its own from now on."""
        self._isolated.setdefault(shard, set()).update(range(first, end))

    def fail_item(self, shard: ShardId, item: int, tasks: Sequence[str], reason: FailureReason) -> list[SessionAction]:
        """Return the actions that commit a failure of `tasks` for an item.

        A task for which this was requested before is omitted.

        The failure is committed in the round in which the task is open.
        """
        units = [unit for unit in self._open_units_in_scope(shard) if unit.start <= item < unit.end]
        return [action for unit in units for action in self._fail_tasks(unit, item, tasks, reason)]

    def reopen_projects(self) -> list[SessionAction]:
        """Queue project tasks that have become open. If any work on files is open, do nothing."""
        if self._open_of_files:
            return []
        return [action for work in self._ledger.changed_projects() for action in self.reopen_shard(work.id)]

    def reopen_shard(self, shard: ShardId) -> list[SessionAction]:
        """Compute the open work of a shard again.

        Queue the work that is neither running nor leased by other processes. Return the actions that fail items for
        which a needed task failed.
        """
        units = self._open_units_in_scope(shard)
        if isinstance(self._ledger.work[shard], Shard):
            self._open_of_files += bool(units) - (shard in self._open)
            self._release_settled(shard)  # A project task that is not open is settled or waits for its needs.
        self._open.discard(shard)
        if units:
            self._open.add(shard)
        actions: list[SessionAction] = []
        for unit in units:
            for item, tasks in self._ledger.doomed_items(unit):
                actions += self._fail_tasks(unit, item, tasks, "needs")
        self.queue.replace_shard(shard, self._free_parts(shard, units))
        return actions

    def pop(self) -> tuple[QueuePosition, WorkUnit] | None:
        """Remove the costliest unit that is still open and free.

        Return it with its queue position, or None if no unit is free.
        """
        while (popped := self.queue.pop()) is not None:
            unit = popped[1]
            # Outcomes of the shard may have arrived since the unit was queued.
            if unit in self._free_parts(unit.shard, self._open_units_in_scope(unit.shard)):
                return popped
        return None

    def is_open(self, unit: WorkUnit, first: int) -> bool:
        """Return whether all items of a unit from item `first` on are still open.

        Other processes may have committed outcomes for some of them.
        """
        return any(
            open_unit.start <= first
            and unit.end <= open_unit.end
            and open_unit.round == unit.round
            and set(unit.tasks) <= set(open_unit.tasks)
            for open_unit in self._open_units_in_scope(unit.shard)
        )

    def _fail_tasks(
        self, unit: WorkUnit, item: int, tasks: Sequence[str], reason: FailureReason
    ) -> list[SessionAction]:
        failing = self._failing_tasks.setdefault(unit.shard, set())
        new = tuple(task for task in unit.tasks if task in tasks and (item, task) not in failing)
        failing.update((item, task) for task in new)
        return [CommitFailure(unit.shard, item, new, unit.round, reason)] if new else []

    def _open_units_in_scope(self, shard: ShardId) -> list[WorkUnit]:
        """Return the open work of a shard, limited to the tasks and shards of the session.

        Running and leased work is included.
        """
        if self._shards is not None and shard not in self._shards:
            return []
        units = self._ledger.open_units(shard)
        if self._tasks is None:
            return units
        narrowed = ((unit, tuple(task for task in unit.tasks if task in self._tasks)) for unit in units)
        return [unit.sub_unit(unit.start, unit.end, tasks) for unit, tasks in narrowed if tasks]

    def _free_parts(self, shard: ShardId, units: Sequence[WorkUnit]) -> Iterator[WorkUnit]:
        """Yield the parts of open units that can be assigned.

        Running and leased items are omitted. If a failure of a task is being committed for an item, this task, and the
        tasks that need it, are omitted for the item.
        """
        busy = self._pool.running_units_in(shard)
        isolated_items = self._isolated.get(shard, set())
        failing = self._failing_tasks.get(shard, set())
        foreign = self._units_leased_elsewhere.get(shard, set())
        critical = self._critical.get(shard, ())
        if not (busy or isolated_items or failing or foreign or critical):
            yield from units
            return
        cuts = {bound for b in busy for bound in (b.start, b.end)} | foreign
        single = isolated_items.union((item for item, _ in failing), critical)
        cuts |= {bound for item in single for bound in (item, item + 1)}
        for unit in units:
            bounds = sorted({unit.start, unit.end, *(cut for cut in cuts if unit.start < cut < unit.end)})
            for start, end in pairwise(bounds):
                if start in foreign or any(b.start <= start < b.end for b in busy):
                    continue
                failing_tasks = {task for item, task in failing if item == start}
                tasks = tuple(
                    task for task in unit.tasks if failing_tasks.isdisjoint((task, *self._ledger.needs[task]))
                )
                if tasks:
                    yield unit.sub_unit(start, end, tasks)

    def _release_settled(self, shard: ShardId) -> None:
        """Release each leased unit whose first item is settled."""
        if starts := self._units_leased_elsewhere.get(shard):
            units = self._open_units_in_scope(shard)
            for start in [s for s in starts if not any(u.start <= s < u.end for u in units)]:
                self.release((shard, start))
