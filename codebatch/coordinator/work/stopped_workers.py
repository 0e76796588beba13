"""Workers of commands that somebody stopped (SIGSTOP) or traces (ptrace(2)): the limits of their commands stand still.

A worker holds the limits of its command, and counts no time in which it was stopped, for Ctrl-Z stops it with its
command. So its coordinator looks each second whether one is stopped while the coordinator itself is not. It continues
the worker. One that does not go on, or is stopped again and again, it kills; what follows is as after any death.
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

LOOK_NS = 1_000_000_000
LOOKS_MAX = 3
"""Looks in a row that find a worker stopped before it is killed: a tracer stops it for a moment at each system call."""
STOPS_MAX = 5
"""How often a worker is continued before it is killed."""


class WatchedWorker(NamedTuple):
    """A worker: the process, and the file that no other process of that id has open."""

    holder: HolderId
    pid: int
    file: Path


class WorkerWatch:
    """The look at the workers of one coordinator, and at those that it adopted."""

    def __init__(self) -> None:
        self._looked_ns = 0
        self._looks: dict[HolderId, int] = {}
        self._stops: dict[HolderId, int] = {}

    def look(self, now_ns: int, workers: Iterable[WatchedWorker]) -> list[StoppedWorker]:
        """Look at all workers, at most once a second. Return those that were continued or killed.

        The crew hears of each death.
        """
        if now_ns - self._looked_ns < LOOK_NS:
            return []
        self._looked_ns = now_ns
        return [found for worker in workers if (found := self._look_at(worker)) is not None]

    def _look_at(self, worker: WatchedWorker) -> StoppedWorker | None:
        found = proc.stat(worker.pid)
        if found is None or not found.is_stopped:
            self._looks[worker.holder] = 0
            return None
        looks = self._looks[worker.holder] = self._looks.get(worker.holder, 0) + 1
        stops = self._stops[worker.holder] = self._stops.get(worker.holder, 0) + (looks == 1 and not found.is_traced)
        if looks >= LOOKS_MAX or stops > STOPS_MAX:
            is_killed = kill_holder(worker.pid, worker.file)
            return StoppedWorker(worker.holder, worker.pid, found.is_traced, is_killed) if is_killed else None
        if found.is_traced or not proc.has_open(worker.pid, worker.file):
            return None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(worker.pid, signal.SIGCONT)
        return StoppedWorker(worker.holder, worker.pid, is_traced=False, is_killed=False) if looks == 1 else None


def stopped_worker_text(found: StoppedWorker, task: str) -> str:
    """Describe what happened to a worker, and what is done about it. `task` is what it runs."""
    what = f"the worker of {task}" if task else "a worker"
    how = "traced by another process" if found.is_traced else "stopped"
    then = "it cannot be continued and is killed" if found.is_killed else "it is continued"
    return f"{what} (process {found.pid}) was {how}: {then}"
