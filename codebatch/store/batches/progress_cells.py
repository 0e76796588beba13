"""Lookup of what a worker does now, and of when the runner of a work batch last reported.

Each writes it to its progress cell, a small memory-mapped file, and other processes read it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from codebatch.model.outcome import HolderId
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.holders import HolderFile
from codebatch.system.clock import running_ns, wall_ns
from codebatch.system.host import is_this_machine
from codebatch.system.processes.progress_cell import CommandProcess, ProgressCell, WorkerStep

T = TypeVar("T")

SILENT_SECONDS_MAX = 60.0
"""The runner of a work batch reports ten times a second. After this time without a report, it is not responding."""


def read_worker_step(batch: BatchDir, holder: HolderId) -> WorkerStep | None:
    """Return the step of an analysis that a worker executes. None if it has no progress cell."""
    return _read_cell(batch, holder, ProgressCell.read)


def read_running_child(batch: BatchDir, holder: HolderId) -> CommandProcess | None:
    """Return the child process in which a worker runs a command.

    None if the worker runs no command or has no progress cell.
    """
    return _read_cell(batch, holder, ProgressCell.read_child)


def silent_since_ns(batch: BatchDir, runner: HolderFile) -> int | None:
    """Return the wall-clock time of the last report of a runner that is not responding. None if it responds.

    Also None if that is unknown: the runner is on another host, or of a version without reports. The time without a
    report is measured by a clock that stops while the machine is suspended.
    """
    step = read_worker_step(batch, runner.holder) if is_this_machine(runner.host) else None
    silent_ns = 0 if step is None or not step.since_ns else running_ns() - step.since_ns
    return wall_ns() - silent_ns if silent_ns > SILENT_SECONDS_MAX * 1e9 else None


def _read_cell(batch: BatchDir, holder: HolderId, read: Callable[[ProgressCell], T]) -> T | None:
    try:
        cell = ProgressCell(batch.files, batch.root / layout.HOLDERS / layout.cell_name(holder), create=False)
    except FileNotFoundError:
        return None
    try:
        return read(cell)
    finally:
        cell.close()
