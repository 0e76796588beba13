"""Limits of time and memory: what a file may cost before its worker is killed, and who has waited too long."""

from __future__ import annotations

import signal
from collections.abc import Collection

import msgspec

from codebatch.coordinator.processes.worker_backend import NONSENSE
from codebatch.coordinator.processes.workers import Death, WorkerProcess
from codebatch.model.outcome import HolderId
from codebatch.model.record import FailureReason
from codebatch.scheduling.events import WorkerId
from codebatch.store import layout
from codebatch.store.batches.batches import BatchDir
from codebatch.store.batches.holders import HolderFile
from codebatch.system.host import is_here
from codebatch.system.processes.memory import available_memory, oom_kills, resident_bytes
from codebatch.system.processes.progress_cell import PHASE_PROJECT, ProgressCell, Step
from codebatch.system.stopwatch import Stopwatch

MEMORY_TICK_SECONDS = 0.2
CHILDREN_TICK_SECONDS = 1.0
MEMORY_BYTES_MAX = 2 << 30
MEMORY_BYTES_MIN = 256 << 20
BATCHED_SHARE = 0.1
PATIENCE_SECONDS = 5.0
HOST_SECONDS_MAX = 60.0


def default_memory_bytes(jobs: int) -> int:
    """What one of `jobs` workers may have: its share of the available memory, at most 2 GiB, at least 256 MiB."""
    return max(MEMORY_BYTES_MIN, min(MEMORY_BYTES_MAX, available_memory() // jobs))


class ResourceLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one file, or a task of project scope, may cost: seconds, and bytes of its worker's process tree.

    `host_seconds`: how long a holder on another host that gives no sign is waited for at least. No part of a plan's
    digest.
    """

    file_seconds: float
    project_seconds: float
    memory_bytes: int
    host_seconds: float = HOST_SECONDS_MAX

    def seconds_for(self, step: Step) -> float:
        """The time a step may take: for a tool that is asked about many files at once a tenth more for each further."""
        if step.phase == PHASE_PROJECT:
            return self.project_seconds
        items = max(1, step.end - step.item)
        return self.file_seconds * (1 + BATCHED_SHARE * (items - 1))


class Guard:
    """Holds workers to their limits, and says what a dead one died of and whether another's is stuck."""

    def __init__(self, limits: ResourceLimits) -> None:
        self._limits = limits
        self._now = 0.0
        self._working: Stopwatch[WorkerId] = Stopwatch()
        self._waiting: Stopwatch[HolderId] = Stopwatch()
        self._torn: Stopwatch[WorkerId] = Stopwatch()
        self._memory_looked_at = self._children_looked_at = 0.0
        self._oom_kills = oom_kills()

    def look(self, now: float) -> None:
        """Begin a turn, at `now` seconds of a clock that stops in suspend."""
        self._now = now
        self._working.look(now)
        self._waiting.look(now)
        self._torn.look(now)

    def enforce(self, workers: Collection[WorkerProcess]) -> None:
        """Kill the workers that are over a limit."""
        for worker in workers:
            torn = worker.buffer.torn_bytes
            torn_seconds = self._torn.seconds(worker.id, torn)  # Asked of none too, so that a later one begins anew.
            if torn and not worker.killed_for and torn_seconds > PATIENCE_SECONDS:
                worker.kill(NONSENSE)
            step = worker.step()
            if step is None or step.items is None or worker.killed_for:
                continue
            if self._working.seconds(worker.id, step.since_ns) > self._limits.seconds_for(step):
                worker.kill_overdue()
        if self._now >= self._memory_looked_at + MEMORY_TICK_SECONDS:
            self._memory_looked_at = self._now
            self._enforce_memory({worker.process.pid: worker for worker in workers})

    def reason_of(self, worker: WorkerProcess, death: Death) -> tuple[FailureReason, bool]:
        """What killed a worker, and whether that came from outside: neither its own doing, nor ours or the kernel's."""
        if worker.killed_for == "timeout":
            return "timeout", False
        if death.returncode == 0:
            return "crash", False
        before, self._oom_kills = self._oom_kills, oom_kills()
        is_killed = death.returncode == -signal.SIGKILL
        if worker.killed_for == "memory" or (is_killed and self._oom_kills > before):
            return "memory", False
        return "crash", is_killed and not worker.killed_for

    def is_stuck(self, batch: BatchDir, holder: HolderFile) -> bool:
        """Whether a live holder of this machine has not moved for longer than its own coordinator would let it."""
        step = _step_of(batch, holder)
        if step is None or not is_here(holder.host):
            return False
        patience = self._limits.seconds_for(step) + PATIENCE_SECONDS
        return self._waiting.seconds(holder.holder, step.since_ns) > patience

    def is_silent(self, batch: BatchDir, holder: HolderFile, commits: int) -> bool:
        """Whether a holder on another host gave no sign for as long as is waited: `commits` of others, or its cell.

        Within a step there is none to give, so what the step may take is waited for.
        """
        step = _step_of(batch, holder)
        of_step = 0.0 if step is None else self._limits.seconds_for(step) + PATIENCE_SECONDS
        patience = max(self._limits.host_seconds, of_step)
        return not is_here(holder.host) and self._waiting.seconds(holder.holder, (commits, step)) > patience

    def _enforce_memory(self, workers: dict[int, WorkerProcess]) -> None:
        with_children = self._now >= self._children_looked_at + CHILDREN_TICK_SECONDS
        if with_children:
            self._children_looked_at = self._now
        for pid, resident in resident_bytes(workers, with_children=with_children).items():
            if resident > self._limits.memory_bytes:
                workers[pid].kill("memory")


def _step_of(batch: BatchDir, holder: HolderFile) -> Step | None:
    try:
        cell = ProgressCell(batch.files, batch.root / layout.HOLDERS / layout.cell_name(holder.holder), create=False)
    except FileNotFoundError:
        return None
    step = cell.read()
    cell.close()
    return step
