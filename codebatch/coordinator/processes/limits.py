"""Limits of time and memory for workers.

The module also detects stuck processes on this machine, and processes on other hosts that make no progress.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from codebatch.coordinator.processes.worker_backend import INVALID_MESSAGES
from codebatch.coordinator.processes.workers import WorkerDeath, WorkerProcess
from codebatch.model.outcome import HolderId
from codebatch.model.record import FailureReason
from codebatch.scheduling.events import WorkerId
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import HolderFile
from codebatch.store.batches.progress_cells import read_worker_step
from codebatch.system.host import is_this_machine
from codebatch.system.processes.memory import available_memory, oom_kills, resident_bytes
from codebatch.system.processes.process_timer import counted_seconds, processor_wait_ns
from codebatch.system.processes.progress_cell import PHASE_PROJECT, WorkerStep
from codebatch.system.stopwatch import StateStopwatch

MEMORY_TICK_SECONDS = 0.2
CHILDREN_TICK_SECONDS = 1.0
MEMORY_BYTES_MAX = 2 << 30
MEMORY_BYTES_MIN = 256 << 20
BATCHED_SECONDS_SHARE = 0.1
LIMIT_MARGIN_SECONDS = 5.0
HOST_SECONDS_MAX = 60.0


def default_memory_bytes(jobs: int) -> int:
    """Return the default memory limit of a worker: its share of the available memory, from 256 MiB to 2 GiB."""
    return max(MEMORY_BYTES_MIN, min(MEMORY_BYTES_MAX, available_memory() // jobs))


def number_call_seconds(tasks: Sequence[str], seconds: Mapping[str, float]) -> dict[int, float]:
    """Return the time limits of calls by the number of their task in the plan. `seconds` has them by task name."""
    return {number: seconds[name] for number, name in enumerate(tasks) if name in seconds}


class ResourceLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for one file or project task: seconds, and resident bytes of the worker with its child processes.

    `host_seconds` is the minimum time to wait for a process on another host that makes no progress. `call_seconds` maps
    the number of a task in the plan to the time limit of a call of its program. Plans do not contain limits.
    """

    file_seconds: float
    project_seconds: float
    memory_bytes: int
    host_seconds: float = HOST_SECONDS_MAX
    call_seconds: Mapping[int, float] = {}

    def seconds_for(self, step: WorkerStep) -> float:
        """Return the time limit of a step in seconds.

        If a step executes several files at once, each file after the first adds a tenth of the limit of one file. If it
        calls a program, the worker itself limits the call, so the time of the call is added.
        """
        call_seconds = self.call_seconds.get(step.task, 0.0)
        if step.phase == PHASE_PROJECT:
            return self.project_seconds + call_seconds
        items = max(1, step.end - step.item)
        return self.file_seconds * (1 + BATCHED_SECONDS_SHARE * (items - 1)) + call_seconds


class ResourceGuard:
    """Enforces the limits of workers, determines why they died, and detects stuck and silent holders of leases."""

    def __init__(self, limits: ResourceLimits, wait_ns: Callable[[int], int] = processor_wait_ns) -> None:
        """`wait_ns` returns for how long a process has waited for a processor."""
        self._limits = limits
        self._processor_wait_ns = wait_ns
        self._first_waits: dict[WorkerId, tuple[int, int]] = {}
        self._now = 0.0
        self._working: StateStopwatch[WorkerId] = StateStopwatch()
        self._waiting: StateStopwatch[HolderId] = StateStopwatch()
        self._partial_messages: StateStopwatch[WorkerId] = StateStopwatch()
        self._memory_looked_at = self._children_looked_at = 0.0
        self._oom_kills = oom_kills()

    def begin_turn(self, now: float) -> None:
        """Begin a turn at the time `now`, in seconds of a clock that stops while the system is suspended."""
        self._now = now
        self._working.observe(now)
        self._waiting.observe(now)
        self._partial_messages.observe(now)

    def enforce_limits(self, workers: Collection[WorkerProcess]) -> None:
        """Kill the workers that exceed a limit."""
        for worker in workers:
            torn = worker.buffer.torn_bytes
            # This is called in each turn, even if no message is incomplete. Otherwise, the stopwatch would not restart.
            torn_seconds = self._partial_messages.seconds_in_state(worker.id, torn)
            if torn and not worker.killed_for and torn_seconds > LIMIT_MARGIN_SECONDS:
                worker.kill(INVALID_MESSAGES)
            step = worker.step()
            if step is None or step.items is None or worker.killed_for:
                continue
            passed = self._working.seconds_in_state(worker.id, step.since_ns)
            if passed and self._counted_seconds(worker, step, passed) > self._limits.seconds_for(step):
                worker.kill_overdue()
        if self._now >= self._memory_looked_at + MEMORY_TICK_SECONDS:
            self._memory_looked_at = self._now
            self._enforce_memory({worker.process.pid: worker for worker in workers})

    def _counted_seconds(self, worker: WorkerProcess, step: WorkerStep, passed: float) -> float:
        """Return how many of the seconds that a worker has spent in a step count (system/processes/process_timer.py).

        The waits for a processor are those since the step was first observed.
        """
        waited_ns = self._processor_wait_ns(worker.process.pid)
        first = self._first_waits.get(worker.id)
        if first is None or first[0] != step.since_ns:
            first = self._first_waits[worker.id] = (step.since_ns, waited_ns)
        return counted_seconds(passed, (waited_ns - first[1]) / 1e9)

    def death_reason(self, worker: WorkerProcess, death: WorkerDeath) -> tuple[FailureReason, bool]:
        """Return the reason for a worker's death, and whether another process killed it.

        Another process is assumed for a SIGKILL that neither the coordinator nor the kernel's OOM killer sent.
        """
        if worker.killed_for == "timeout":
            return "timeout", False
        if death.returncode == 0:
            return "crash", False
        before, self._oom_kills = self._oom_kills, oom_kills()
        is_killed = death.returncode == -signal.SIGKILL
        if worker.killed_for == "memory" or (is_killed and self._oom_kills > before):
            return "memory", False
        return "crash", is_killed and not worker.killed_for

    def is_holder_stuck(self, batch: BatchDir, holder: HolderFile) -> bool:
        """Return whether a live holder on this machine has exceeded the time limit of its step."""
        step = read_worker_step(batch, holder.holder)
        if step is None or not is_this_machine(holder.host):
            return False
        patience = self._limits.seconds_for(step) + LIMIT_MARGIN_SECONDS
        return self._waiting.seconds_in_state(holder.holder, step.since_ns) > patience

    def is_holder_silent(self, batch: BatchDir, holder: HolderFile, commits: int) -> bool:
        """Return whether a holder on another host has made no progress for too long.

        Progress is a new commit, or a new step in the holder's progress cell. `commits` is the number of commits of
        other coordinators so far. Within a step nothing changes, so the wait is at least the time limit of the step.
        """
        step = read_worker_step(batch, holder.holder)
        of_step = 0.0 if step is None else self._limits.seconds_for(step) + LIMIT_MARGIN_SECONDS
        patience = max(self._limits.host_seconds, of_step)
        return (
            not is_this_machine(holder.host)
            and self._waiting.seconds_in_state(holder.holder, (commits, step)) > patience
        )

    def _enforce_memory(self, workers: dict[int, WorkerProcess]) -> None:
        with_children = self._now >= self._children_looked_at + CHILDREN_TICK_SECONDS
        if with_children:
            self._children_looked_at = self._now
        for pid, resident in resident_bytes(workers, with_children=with_children).items():
            if resident > self._limits.memory_bytes:
                workers[pid].kill("memory")
