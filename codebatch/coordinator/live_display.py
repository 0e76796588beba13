"""Progress on a terminal that can move its cursor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

from codebatch.coordinator.score import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


class LiveDisplay:
    """A bar for each task, with rate and time left."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live: RichProgress | None = None
        self._bars: dict[str, TaskID] = {}

    def phase(self, text: str) -> None:
        if self._live is None:
            print(text, file=self._stream, flush=True)
        else:
            self._live.console.print(text, highlight=False)

    def update(self, progress: Progress) -> None:
        if self._live is None:
            self._live = self._start(progress.planned)
        seconds = max(1e-9, sum(task.elapsed or 0.0 for task in self._live.tasks[:1]))
        for name, done in progress.done.items():
            planned = progress.planned[name]
            shown = min(planned, done + progress.inflight) if planned > 1 else done
            self._live.update(
                self._bars[name],
                completed=shown,
                rate=f"{shown / seconds:,.0f} files/s" if planned > 1 else "",
                records=f"{progress.records:,} records"
                + (f", {progress.failures} failed" if progress.failures else ""),
            )

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _start(self, planned: Mapping[str, int]) -> RichProgress:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        live = RichProgress(
            TextColumn("{task.description:>12}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[records]}"),
            console=Console(file=self._stream, stderr=True),
            transient=True,
        )
        for name, items in planned.items():
            self._bars[name] = live.add_task(name, total=items, rate="", records="")
        live.start()
        return live
