"""Settings for the execution of a batch, and the receiver of its progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from codebatch.coordinator.analysis.execution import RunOutcome, execute
from codebatch.coordinator.analysis.progress_counter import RunPhase, RunProgress, RunScope
from codebatch.coordinator.processes.limits import ResourceLimits, default_memory_bytes, number_call_seconds
from codebatch.errors import InvalidInput
from codebatch.operations.project.configuration import Configuration
from codebatch.operations.runs.collection import CollectionResult
from codebatch.protocol.launch import WorkerSettings
from codebatch.query.filters.arguments import refuse_numbers_below_one
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import new_holder_id
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.snapshots.snapshots import Snapshot
from codebatch.system.files.files import FileLock

if TYPE_CHECKING:
    from codebatch.coordinator.engines.ports import EngineProgress
    from codebatch.model.capsule import CapsuleLimits
    from codebatch.operations.project.project_snapshot import ProjectSnapshot

RunAction = Literal["new", "resumed", "joined", "up to date", "already ended"]
"""The action of a run.

- `joined`: another process is already running the batch.
- `up to date`: all results existed already.
- `already ended`: the batch ended earlier, with failures.
"""


class Listener:
    """A receiver of the progress of a run. Its methods are called in the thread of `run`. Override the methods that you
    need.
    """

    def note(self, text: str) -> None:
        """Receive a note."""

    def phase(self, phase: RunPhase, done: int = 0, planned: int = 0, unit: str = "files") -> None:
        """Receive the phase and its progress: `done` of `planned` steps. Both numbers are 0 if unknown."""

    def frozen(self, frozen: ProjectSnapshot) -> None:
        """Receive the snapshot that was taken."""

    def chosen(self, batch: BatchDir, action: RunAction) -> None:
        """Receive the batch that the run uses, and what the run does with it."""

    def update(self, progress: RunProgress) -> None:
        """Receive the progress. This method is called whenever a worker reports, and at least ten times a second."""

    def detail(self, text: str) -> None:
        """Receive a note that matters only to users who ask for details."""

    def parts(self, engine: str, progress: EngineProgress) -> None:
        """Receive the progress of an engine. `engine` is its name. This method is called several times a second."""

    def collected(self, collected: CollectionResult) -> None:
        """Receive what garbage collection removed from the store. This method is not called if nothing was removed."""


class ExecutionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for the execution of a batch. None means the configured value.

    - `memory_mb`: the limit of a worker with its child processes, in MiB.
    - `take_over`: execute work even if a process on another host has a lease on it.
    - `shuffle_seed`: the seed for a random order of the work.
    - `reuses`: reuse results of older batches.
    - `hash_seed`: the seed of Python's hashes in workers.

    Raises InvalidInput for an invalid number.
    """

    configuration: Configuration
    jobs: int | None = None
    file_seconds: float | None = None
    memory_mb: int | None = None
    take_over: bool = False
    shuffle_seed: int | None = None
    reuses: bool = True
    hash_seed: int = 0

    def __post_init__(self) -> None:
        refuse_numbers_below_one(jobs=self.jobs, memory_mb=self.memory_mb)
        if self.file_seconds is not None and not self.file_seconds > 0:
            raise InvalidInput(f"`file_seconds` must be more than 0, not {self.file_seconds}")

    @property
    def workers_max(self) -> int:
        """The maximum number of workers."""
        return self.jobs or self.configuration.jobs

    @property
    def builds_index(self) -> bool:
        """Whether the index of the batch is built at the end of a run."""
        return self.configuration.settings.index.build == "run"

    def part_limits(self, tasks: Sequence[str]) -> CapsuleLimits:
        """Return the limits of workers on other machines. `tasks` are the tasks of the plan."""
        from codebatch.model.capsule import CapsuleLimits  # Only runs on an engine need it.

        settings = self.configuration.settings
        memory_mb = self.memory_mb or settings.memory_mb_max
        return CapsuleLimits(
            file_seconds=self.file_seconds or settings.file_seconds_max,
            memory_bytes=None if memory_mb is None else memory_mb << 20,
            call_seconds=self._call_seconds(tasks),
        )

    def _call_seconds(self, tasks: Sequence[str]) -> dict[str, float]:
        """Return the time limit of a call of each task that calls a program."""
        commands = self.configuration.catalogue.commands
        return {name: commands[name].call_seconds for name in tasks if name in commands}

    def execute(
        self,
        store: StoreDir,
        lock: FileLock,
        batch: BatchDir,
        scope: RunScope,
        listener: Listener,
        snapshot: Snapshot | None = None,
    ) -> RunOutcome:
        """Execute the open work of a batch.

        `lock` is the lock that `Store.writing` returned. The caller must have acquired it before it read the batch.
        `snapshot` is the decoded snapshot of the batch, if the caller already has it.
        """
        settings = self.configuration.settings
        jobs = self.workers_max
        memory_mb = self.memory_mb or settings.memory_mb_max
        catalogue = self.configuration.catalogue
        plan = batch.plan()
        catalogue.look_up_commands(plan.task_names)
        workers = WorkerSettings(
            store=str(store.root),
            batch=batch.id,
            coordinator=new_holder_id(),
            store_lock=lock.descriptor,
            own_tasks=catalogue.locations,
            keeps_terms=self.builds_index,
            hash_seed=self.hash_seed,
        )
        return execute(
            store,
            batch,
            workers,
            catalogue=catalogue,
            jobs=jobs,
            limits=ResourceLimits(
                file_seconds=self.file_seconds or settings.file_seconds_max,
                project_seconds=settings.project_seconds_max,
                memory_bytes=memory_mb << 20 if memory_mb else default_memory_bytes(jobs),
                call_seconds=number_call_seconds(plan.task_names, self._call_seconds(plan.task_names)),
            ),
            scope=replace(scope, shuffle_seed=self.shuffle_seed, take_over=self.take_over),
            watcher=listener,
            reuses=self.reuses,
            snapshot=snapshot,
        )


ShardExecutor = Callable[[ExecutionSettings, StoreDir, BatchDir, Snapshot, Listener], bool]
"""A function that executes open shards of a batch elsewhere. It returns False if a Cancel request ended the execution.

The snapshot is that of the batch.
"""

OpenShardExecutor = Callable[[], AbstractContextManager[ShardExecutor]]
"""A function that opens a ShardExecutor, and closes it at the end of the `with`."""
