"""The tasks that the workers of an analysis are running, and the file of each, from the progress cells of the workers.

A progress cell has the number of an item in its shard, but not the shard. The worker's journal has the shard.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from codebatch.errors import StoreError
from codebatch.model.entry import Entry
from codebatch.model.outcome import HolderId
from codebatch.model.plan import Plan, plan_items
from codebatch.model.work.event import RunningTask
from codebatch.store.batches.batch_directory import BatchDir, load_batch_snapshot
from codebatch.store.batches.holders import HolderFile
from codebatch.store.batches.journal import Began, JournalLine
from codebatch.store.batches.progress_cells import read_worker_step
from codebatch.store.batches.store_directory import StoreDir
from codebatch.system.clock import running_ns
from codebatch.system.host import is_this_machine
from codebatch.system.processes.progress_cell import PHASE_ITEM, WorkerStep

if TYPE_CHECKING:
    from codebatch.store.snapshots.snapshots import Snapshot


class RunningTaskReader:
    """A reader of the tasks that the workers of an analysis on this machine are running.

    First call `read_steps`, then `add_line` for each new line of the journals, then `running_tasks`.
    """

    def __init__(self, store: StoreDir, batch: BatchDir, plan: Plan) -> None:
        self._store = store
        self._batch = batch
        self._plan = plan
        self._shard_starts = {shard.id: shard.start for shard in plan.shards}
        self._units: dict[HolderId, tuple[int, Began]] = {}
        self._steps: dict[HolderId, WorkerStep] = {}

    def read_steps(self, holders: Iterable[HolderFile]) -> None:
        """Read the current steps of all workers among the live holders."""
        workers = [holder for holder in holders if holder.role == "worker" and is_this_machine(holder.host)]
        steps = ((worker.holder, read_worker_step(self._batch, worker.holder)) for worker in workers)
        self._steps = {worker: step for worker, step in steps if step is not None}

    def add_line(self, line: JournalLine) -> None:
        """Take account of a line of a journal."""
        if isinstance(line.event, Began) and line.seq >= self._units.get(line.holder, (0, None))[0]:
            self._units[line.holder] = (line.seq, line.event)

    def running_tasks(self) -> Iterator[RunningTask]:
        """Yield the running task of each worker. A worker that runs none is omitted."""
        for worker, earlier_step in self._steps.items():
            step = read_worker_step(self._batch, worker)
            if step is None or step.items is None:
                continue
            yield RunningTask(
                task=self._plan.task_names[step.task] if step.task < len(self._plan.tasks) else "-",
                seconds=round(max(0, running_ns() - step.since_ns) / 1e9, 1),
                path=self._path_of_step(worker, earlier_step, step),
                worker=worker,
            )

    def _path_of_step(self, worker: HolderId, earlier: WorkerStep, step: WorkerStep) -> str | None:
        """Return the path of the file that a worker is processing, or None if it is unknown or the step is of no file.

        The journals were read between the two steps. If both are of the same unit, so is the worker's last journal
        line about a unit.
        """
        is_same_unit = earlier.phase == PHASE_ITEM and earlier.unit == step.unit
        if step.phase != PHASE_ITEM or not is_same_unit or worker not in self._units:
            return None
        _, began = self._units[worker]
        first = self._shard_starts.get(began.shard)
        if first is None or not began.start <= step.item < began.end:
            return None
        with contextlib.suppress(StoreError, IndexError):
            return self._item(first + step.item).text
        return None

    def _item(self, number: int) -> Entry:
        if self._batch.about.paths:
            return self._restricted_items[number]
        return self._snapshot.items_between(number, number + 1)[0]

    @cached_property
    def _snapshot(self) -> Snapshot:
        return load_batch_snapshot(self._store, self._batch)

    @cached_property
    def _restricted_items(self) -> list[Entry]:
        return plan_items(self._snapshot.entries, self._batch.about.paths)
