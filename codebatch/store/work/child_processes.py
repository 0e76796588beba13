"""Lookup of the command that a worker runs.

The worker writes it to its progress cell, a small memory-mapped file, and other processes read it.
"""

from __future__ import annotations

from codebatch.model.outcome import HolderId
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.system.processes.progress_cell import CommandProcess, ProgressCell


def read_running_child(batch: BatchDir, holder: HolderId) -> CommandProcess | None:
    """Return the child process in which a worker runs a command.

    None if the worker runs no command or has no progress cell.
    """
    try:
        cell = ProgressCell(batch.files, batch.root / layout.HOLDERS / layout.cell_name(holder), create=False)
    except FileNotFoundError:
        return None
    try:
        return cell.read_child()
    finally:
        cell.close()
