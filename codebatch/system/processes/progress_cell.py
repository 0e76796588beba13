"""The progress cell: a page that a worker maps and writes before each step, so that its death names what it was at.

The coordinator reads it while the worker lives (progress, limits of time) and after its death (the culprit). A read
that races a write may mix two steps; after death there is no writer, so the last step is what is read.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path
from typing import NamedTuple

from codebatch.system.files.files import Files
from codebatch.system.files.os_errors import wrap_write_errors

CELL_BYTES = 4096
_layout = struct.Struct("<QQQIIIBB")
_TASK_OFFSET = _layout.size - 1
NO_TASK = 255
_child_layout = struct.Struct("<IxxxxQQQ")
_CHILD_OFFSET = 64


class Step(NamedTuple):
    """What a worker is at: items [item, end) of its unit's shard since `since_ns` (running clock); none if item == end.

    `items_done` and `records` are totals of its life; its unit is the `unit`-th that it was given; `task` is the place
    in the plan of the task that runs, NO_TASK where none does.
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
        """The items at hand, None between units."""
        return (self.item, self.end) if self.item < self.end else None


class Child(NamedTuple):
    """The command that a worker runs: its process, by id and start (clock ticks after boot), which leads a session.

    `output_bytes` is what it wrote, the last of it at `output_ns` (running clock).
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
    """A mapped progress cell."""

    def __init__(self, files: Files, path: Path, *, create: bool) -> None:
        """Make a cell to write, or map one to read: then raises FileNotFoundError where it is missing or cut.

        The page is written in full before it is mapped: on a full disk a write says so, a mapping would kill us.
        """
        fd = files.open_page(path, create=create)
        try:
            with wrap_write_errors(path):
                if create:
                    left = memoryview(bytes(CELL_BYTES))
                    while left:
                        left = left[os.write(fd, left) :]
                if os.fstat(fd).st_size != CELL_BYTES:
                    raise FileNotFoundError(path)
                self._map = mmap.mmap(fd, CELL_BYTES, prot=mmap.PROT_READ | (mmap.PROT_WRITE if create else 0))
        finally:
            os.close(fd)

    def write(self, step: Step) -> None:
        """Say what begins now."""
        _layout.pack_into(self._map, 0, *step)

    def write_task(self, task: int) -> None:
        """Say which task of the step begins now."""
        self._map[_TASK_OFFSET] = min(task, NO_TASK)

    def write_child(self, child: Child) -> None:
        """Say what runs; a pid of 0 where nothing does."""
        _child_layout.pack_into(self._map, _CHILD_OFFSET, *child)

    def read_child(self) -> Child | None:
        """The command that runs; None where none does."""
        child = Child(*_child_layout.unpack_from(self._map, _CHILD_OFFSET))
        return child if child.pid else None

    def read(self) -> Step:
        """What was said last."""
        return Step(*_layout.unpack_from(self._map))

    def close(self) -> None:
        """Unmap it."""
        self._map.close()
