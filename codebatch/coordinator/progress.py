"""Progress on standard error: a live display where it is a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import os
import sys
from typing import Protocol, TextIO

from codebatch.coordinator.live_display import LiveDisplay
from codebatch.coordinator.score import Progress
from codebatch.system.clock import running_ns

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
            left = time_left((now - self._began) / 1e9, done, items)
            self._say(f"{done:,} of {items:,} files, {progress.records:,} records{left}")

    def close(self) -> None:
        pass

    def _say(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


def time_left(seconds: float, done: int, items: int) -> str:
    """The end of a line that says how far work is, which took so many seconds: what is left; nothing at the start."""
    return f", about {seconds * (items - done) / done:.0f} s left" if done else ""


def choose_display(*, quiet: bool) -> Display:
    """The display that fits standard error: a live one where that is a terminal that can move its cursor."""
    if quiet:
        return SilentDisplay()
    if sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        return LiveDisplay(sys.stderr)
    return PlainDisplay(sys.stderr)
