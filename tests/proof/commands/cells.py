"""A progress cell that nobody but its process sees."""

from __future__ import annotations

from codebatch.system.processes.progress_cell import CommandProcess, ProgressCell, WorkerStep


class MemoryCell(ProgressCell):
    """A progress cell that nobody reads: here a command is known by its mark."""

    def __init__(self) -> None:
        pass

    def write_step(self, step: WorkerStep) -> None:
        pass

    def write_child(self, child: CommandProcess) -> None:
        pass

    def close(self) -> None:
        pass
