"""Detection of stopped (SIGSTOP) or traced (ptrace(2)) workers. Such workers do not enforce limits.

A worker enforces the limits of its command. The time in which the worker was stopped does not count, because Ctrl-Z
stops both. So once a second, the coordinator looks for stopped workers and continues them. A worker that stays stopped,
or is stopped repeatedly, is killed. Its death is handled like the death of any worker.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from codebatch.coordinator.work.interfaces import StoppedWorker
from codebatch.model.outcome import HolderId
from codebatch.system.processes import proc
from codebatch.system.processes.processes import kill_holder

CHECK_INTERVAL_NS = 1_000_000_000
STOPPED_CHECKS_MAX = 3
"""Number of consecutive checks that must find a worker stopped before it is killed.

One check is not enough, because a tracer stops a worker briefly at each system call.
"""
CONTINUES_MAX = 5
"""How often a worker is continued before it is killed, if it is stopped repeatedly."""


class WatchedWorker(NamedTuple):
    """A worker process. Its holder file identifies it even if its process ID is reused."""

    holder: HolderId
    pid: int
    file: Path


class StoppedWorkerWatch:
    """A watch over the workers of one coordinator, including adopted workers."""

    def __init__(self, *, kills: bool = True) -> None:
        """Without `kills`, workers are only continued, because the coordinator has limits for their steps."""
        self._kills = kills
        self._checked_ns = 0
        self._stopped_checks: dict[HolderId, int] = {}
        self._continued_counts: dict[HolderId, int] = {}

    def check(self, now_ns: int, workers: Iterable[WatchedWorker]) -> list[StoppedWorker]:
        """Check all workers, at most once a second. Return the workers that were continued or killed.

        The backend reports the deaths of workers separately.
        """
        if now_ns - self._checked_ns < CHECK_INTERVAL_NS:
            return []
        self._checked_ns = now_ns
        return [stopped for worker in workers if (stopped := self._check_worker(worker)) is not None]

    def _check_worker(self, worker: WatchedWorker) -> StoppedWorker | None:
        process_stat = proc.process_stat(worker.pid)
        if process_stat is None or not process_stat.is_stopped:
            self._stopped_checks[worker.holder] = 0
            return None
        looks = self._stopped_checks[worker.holder] = self._stopped_checks.get(worker.holder, 0) + 1
        stops = self._continued_counts[worker.holder] = self._continued_counts.get(worker.holder, 0) + (
            looks == 1 and not process_stat.is_traced
        )
        if self._kills and (looks >= STOPPED_CHECKS_MAX or stops > CONTINUES_MAX):
            is_killed = kill_holder(worker.pid, worker.file)
            return StoppedWorker(worker.holder, worker.pid, process_stat.is_traced, is_killed) if is_killed else None
        if process_stat.is_traced or not proc.has_file_open(worker.pid, worker.file):
            return None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(worker.pid, signal.SIGCONT)
        return StoppedWorker(worker.holder, worker.pid, is_traced=False, is_killed=False) if looks == 1 else None


def stopped_worker_text(stopped: StoppedWorker, task: str) -> str:
    """Return a message about a stopped worker. `task` is the command that the worker runs, or empty."""
    subject = f"the worker of {task}" if task else "a worker"
    how = "traced by another process" if stopped.is_traced else "stopped"
    reaction = "it cannot be continued and is killed" if stopped.is_killed else "it is continued"
    return f"{subject} (process {stopped.pid}) was {how}: {reaction}"
