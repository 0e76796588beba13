"""A progress cell that nobody but its process sees."""

from __future__ import annotations

from codebatch.system.processes.progress_cell import Child, ProgressCell, Step


class MemoryCell(ProgressCell):
    """A progress cell that nobody reads: here a command is known by its mark."""

    def __init__(self) -> None:
        pass

    def write(self, step: Step) -> None:
        pass

    def write_child(self, child: Child) -> None:
        pass

    def close(self) -> None:
        pass
