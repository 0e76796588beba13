"""A progress cell without readers."""

from __future__ import annotations

from codebatch.system.processes.progress_cell import CommandProcess, ProgressCell, WorkerStep


class MemoryCell(ProgressCell):
    """A progress cell that discards its values. The simulation identifies commands by their marks instead."""

    def __init__(self) -> None:
        pass

    def write_step(self, step: WorkerStep) -> None:
        pass

    def write_child(self, child: CommandProcess) -> None:
        pass

    def close(self) -> None:
        pass
