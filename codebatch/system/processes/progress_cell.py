"""The progress cell: a memory-mapped page in which a worker records each step before it begins the step.

The coordinator reads the page while the worker lives, for progress and time limits. After the worker's death, the page
shows the step that killed it. A read during a write may return a mixture of two steps. After the death of the worker
there is no writer, so its last step is read correctly.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path
from typing import NamedTuple

from codebatch.system.files.files import StoreFiles
from codebatch.system.files.os_errors import wrap_write_errors

CELL_BYTES = 4096
_step_struct = struct.Struct("<QQQIIIBB")
_TASK_OFFSET = _step_struct.size - 1
NO_TASK = 255
_child_struct = struct.Struct("<IxxxxQQQ")
_CHILD_OFFSET = 64


class WorkerStep(NamedTuple):
    """A step of a worker: it executes items [item, end) of its unit's shard, since `since_ns` (running clock).

    Between units, `item` equals `end`. `items_done` and `records` are totals since the worker started. `unit` is the
    number of the unit, in the order in which the worker got its units. `task` is the position of the running task in
    the plan, or NO_TASK.
    """

    since_ns: int
    items_done: int
    records: int
    unit: int
    item: int
    end: int
    phase: int
    task: int = NO_TASK

    @property
    def items(self) -> tuple[int, int] | None:
        """The current items, or None between units."""
        return (self.item, self.end) if self.item < self.end else None


class CommandProcess(NamedTuple):
    """The command that a worker runs: the pid and start time (clock ticks after boot) of its process, a session leader.

    `output_bytes` is the size of its output so far. `output_ns` is the time of its last output (running clock).
    """

    pid: int
    start_ticks: int
    output_bytes: int
    output_ns: int


PHASE_IDLE = 0
PHASE_ITEM = 1
PHASE_BATCHED = 2
PHASE_COMMIT = 3
PHASE_LEASE = 4
PHASE_PROJECT = 5
PHASE_COMMAND = 6
PHASE_NAMES = ("idle", "item", "batched", "commit", "lease", "project", "command")


class ProgressCell:
    """A progress cell, mapped into memory: a file of one page."""

    def __init__(self, files: StoreFiles, path: Path, *, create: bool) -> None:
        """Create a cell for writing, or map an existing cell for reading.

        Raises FileNotFoundError if the existing cell is missing or has another size. A new page is written in full
        before it is mapped. On a full disk this write raises an error, while an access to the mapped page would kill
        the process.
        """
        fd = files.open_page(path, create=create)
        try:
            with wrap_write_errors(path):
                if create:
                    unwritten = memoryview(bytes(CELL_BYTES))
                    while unwritten:
                        unwritten = unwritten[os.write(fd, unwritten) :]
                if os.fstat(fd).st_size != CELL_BYTES:
                    raise FileNotFoundError(path)
                self._map = mmap.mmap(fd, CELL_BYTES, prot=mmap.PROT_READ | (mmap.PROT_WRITE if create else 0))
        finally:
            os.close(fd)

    def write_step(self, step: WorkerStep) -> None:
        """Record the step that begins now."""
        _step_struct.pack_into(self._map, 0, *step)

    def restart_step(self, now_ns: int) -> None:
        """Record that the current step begins now, so that its time limit is counted from now."""
        self.write_step(self.read()._replace(since_ns=now_ns))

    def write_task(self, task: int) -> None:
        """Record the task of the step that begins now."""
        self._map[_TASK_OFFSET] = min(task, NO_TASK)

    def write_child(self, child: CommandProcess) -> None:
        """Record the command that runs now. A pid of 0 means none."""
        _child_struct.pack_into(self._map, _CHILD_OFFSET, *child)

    def read_child(self) -> CommandProcess | None:
        """Return the command that runs now, or None if no command runs."""
        child = CommandProcess(*_child_struct.unpack_from(self._map, _CHILD_OFFSET))
        return child if child.pid else None

    def read(self) -> WorkerStep:
        """Return the last recorded step."""
        return WorkerStep(*_step_struct.unpack_from(self._map))

    def close(self) -> None:
        """Unmap the page."""
        self._map.close()
