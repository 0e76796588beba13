"""Progress on standard error: a live display where it is a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, TextIO

from codebatch.coordinator.score import Progress
from codebatch.system.clock import running_ns

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

PLAIN_SECONDS = 10.0


class Display(Protocol):
    """What a run tells of itself while it lasts."""

    def phase(self, text: str) -> None:
        """A new phase begins."""

    def update(self, progress: Progress) -> None:
        """How far the execute phase is."""

    def close(self) -> None:
        """Leave the terminal as it was."""


class SilentDisplay:
    """Says nothing (`--quiet`)."""

    def phase(self, text: str) -> None:
        pass

    def update(self, progress: Progress) -> None:
        pass

    def close(self) -> None:
        pass


class PlainDisplay:
    """A line at each phase, and one every ten seconds of a long run."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._began = self._said = running_ns()

    def phase(self, text: str) -> None:
        self._say(text)

    def update(self, progress: Progress) -> None:
        now = running_ns()
        if (now - self._said) / 1e9 >= PLAIN_SECONDS:
            self._said = now
            items = max(progress.planned.values(), default=0)
            done = min((progress.done[task] for task in progress.planned if progress.planned[task] == items), default=0)
            seconds = (now - self._began) / 1e9
            left = f", about {seconds * (items - done) / done:.0f} s left" if done else ""
            self._say(f"{done:,} of {items:,} files, {progress.records:,} records{left}")

    def close(self) -> None:
        pass

    def _say(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


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


def choose_display(*, quiet: bool) -> Display:
    """The display that fits standard error: a live one where that is a terminal that can move its cursor."""
    if quiet:
        return SilentDisplay()
    if sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        return LiveDisplay(sys.stderr)
    return PlainDisplay(sys.stderr)
