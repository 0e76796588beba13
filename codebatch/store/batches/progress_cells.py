"""Lookup of what a worker does now.

The worker writes it to its progress cell, a small memory-mapped file, and other processes read it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from codebatch.model.outcome import HolderId
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.system.processes.progress_cell import CommandProcess, ProgressCell, WorkerStep

T = TypeVar("T")


def read_worker_step(batch: BatchDir, holder: HolderId) -> WorkerStep | None:
    """Return the step of an analysis that a worker executes. None if it has no progress cell."""
    return _read_cell(batch, holder, ProgressCell.read)


def read_running_child(batch: BatchDir, holder: HolderId) -> CommandProcess | None:
    """Return the child process in which a worker runs a command.

    None if the worker runs no command or has no progress cell.
    """
    return _read_cell(batch, holder, ProgressCell.read_child)


def _read_cell(batch: BatchDir, holder: HolderId, read: Callable[[ProgressCell], T]) -> T | None:
    try:
        cell = ProgressCell(batch.files, batch.root / layout.HOLDERS / layout.cell_name(holder), create=False)
    except FileNotFoundError:
        return None
    try:
        return read(cell)
    finally:
        cell.close()
