"""Progress display on standard error. On a terminal, it is a live line, otherwise a plain line at intervals.

A thread draws the line, so it is updated even while the command waits. The line appears after PATIENCE_SECONDS and is
erased at the end. Other output to the terminal must be written inside `aside`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TextIO

import msgspec

from codebatch.cli.output.eta import PaceEstimator, eta_text
from codebatch.cli.output.streams import write_with_colors
from codebatch.cli.output.terminal import printable_line
from codebatch.system.clock import running_ns

QUIET_START_SECONDS = 0.5
REDRAW_SECONDS = 0.2
PLAIN_LINE_SECONDS = 10.0

_ERASE_LINE = "\r\x1b[K"
_BAR_COLUMNS_MAX = 30
_BAR_COLUMNS_MIN = 8
_COLUMN_GAP = "  "


class ProgressStage(msgspec.Struct, frozen=True):
    """A phase and its progress: `done` of `planned` units of work, both 0 if unknown.

    - `detail`: a text that is shown only if there is room for it beside all other texts.
    - `share`: the share of the work that is done. It is set if the units have different weights.
    - `is_even`: False if the units differ so much that the remaining time cannot be estimated from their number.
    - `remaining_text`: the remaining time as text, if the caller knows it.
    """

    phase: str
    done: int = 0
    planned: int = 0
    unit: str = "files"
    more: str = ""
    detail: str = ""
    is_even: bool = True
    remaining_text: str = ""
    share: float | None = None

    @property
    def done_share(self) -> float:
        """The share of the work that is done, from 0 to 1."""
        if self.share is not None:
            return self.share
        return self.done / self.planned if self.planned else 0.0


def advance_stage(current: ProgressStage, reported: ProgressStage) -> ProgressStage:
    """Return the stage to show next. `current` is the stage that is shown, and `reported` the new one.

    Within a phase, the shown count and share never decrease. A retry or the death of a worker can make the reported
    values smaller. The display then does not change until the shown values are reached again.
    """
    if reported.phase != current.phase:
        return reported
    return msgspec.structs.replace(
        reported,
        done=max(current.done, reported.done),
        planned=max(current.planned, reported.planned),
        share=None if reported.share is None else max(current.share or 0.0, reported.share),
    )


class ProgressDisplay:
    """The progress display of a command. With `--quiet`, it is never started, and shows nothing."""

    def __init__(self, stream: TextIO, *, is_live: bool) -> None:
        """Create the display. `is_live` is set if the stream is a terminal that can move its cursor."""
        self._stream = stream
        self._is_live = is_live
        self._lock = threading.RLock()
        self._is_over = threading.Event()
        self._is_drawn = False
        self._last_line = ""
        self._began_seconds = running_ns()
        self._stage = ProgressStage("")
        self._pace = PaceEstimator()

    def start(self, command: str) -> None:
        """Start the display. It appears after a delay. If no thread can be started, nothing is shown."""
        self._stage = ProgressStage(command)
        with contextlib.suppress(RuntimeError):
            threading.Thread(target=self._draw_until_closed, name="progress", daemon=True).start()

    def show_stage(self, stage: ProgressStage) -> None:
        """Set the stage to show."""
        if stage.phase != self._stage.phase:
            self._pace = PaceEstimator()
        self._stage = advance_stage(self._stage, stage)
        self._pace.add_sample(running_ns() / 1e9, self._stage.done_share)

    @contextmanager
    def without_progress_line(self) -> Iterator[None]:
        """Erase the progress line, and do not draw it while the block writes other output to the terminal."""
        with self._lock:
            self._erase()
            yield

    def erase_for_output(self) -> None:
        """Close the display if standard output is a terminal, so that the answer is not mixed with progress."""
        if self._has_terminal_for_answers:
            self.close()

    @cached_property
    def _has_terminal_for_answers(self) -> bool:
        return sys.stdout.isatty()  # Cached, because each check is a system call and an answer may have many lines.

    def close(self) -> None:
        """Erase the progress line and stop the display. Further calls have no effect."""
        self._is_over.set()
        with self._lock:
            self._erase()

    def draw(self) -> None:
        """Draw the progress line."""
        now = running_ns()
        with self._lock:
            if self._is_over.is_set():
                return
            if self._is_live:
                seconds = (now - self._began_seconds) / 1e9
                line = live_progress_line(
                    self._stage,
                    seconds,
                    self._remaining_text(now / 1e9),
                    _stream_columns(self._stream),
                    self._color_marks,
                )
                self._write(_ERASE_LINE + printable_line(line))
                self._is_drawn = True
            elif self._stage.planned:
                line = printable_line(plain_progress_line(self._stage, self._remaining_text(now / 1e9)))
                if line != self._last_line:  # A wait of hours has the same line all the time.
                    self._write(f"{line}\n")
                self._last_line = line

    def _draw_until_closed(self) -> None:
        wait = QUIET_START_SECONDS if self._is_live else PLAIN_LINE_SECONDS
        while not self._is_over.wait(wait):
            self.draw()
            wait = REDRAW_SECONDS if self._is_live else PLAIN_LINE_SECONDS

    @property
    def _color_marks(self) -> str:
        """The two characters of a progress bar: for its done part and for its remaining part."""
        return "━─" if (self._stream.encoding or "").lower().replace("-", "") == "utf8" else "#-"

    def _remaining_text(self, now: float) -> str:
        """Return the remaining time of the phase as text, estimated by its pace.

        Return an empty text if it is unknown.
        """
        if self._stage.remaining_text or not self._stage.is_even:
            return self._stage.remaining_text
        seconds = self._pace.remaining_seconds(now)
        return "" if seconds is None else eta_text((seconds, seconds, seconds))

    def _erase(self) -> None:
        if self._is_drawn:
            self._is_drawn = False
            self._write(_ERASE_LINE)

    def _write(self, text: str) -> None:
        write_with_colors(self._stream, text)
        self._stream.flush()


def live_progress_line(stage: ProgressStage, seconds: float, remaining_text: str, columns: int, marks: str) -> str:
    """Return the progress line for a terminal, with at most `columns` - 1 characters.

    It has the parts that fit, and a bar in the remaining space. `seconds` is the elapsed time, `marks` the characters
    of the bar.
    """
    parts = [stage.phase]
    room = columns - 1 - len(stage.phase)  # Some terminals wrap the line after a character in the last column.
    counted = f"{stage.done:,} of {stage.planned:,} {stage.unit}" if stage.planned else ""
    percent = f"{100 * stage.done // stage.planned}%" if stage.planned else ""
    if len(counted) + len(_COLUMN_GAP) > room:
        counted = percent
    # There may be room for only one time. A remaining time that the caller knows comes first, then the elapsed time,
    # then an estimate of the remaining time.
    times = (remaining_text, f"{seconds:.0f} s") if stage.remaining_text else (f"{seconds:.0f} s", remaining_text)
    for part in (counted, *times, stage.more, stage.detail):
        if part and len(part) + len(_COLUMN_GAP) <= room:
            parts.append(part)
            room -= len(part) + len(_COLUMN_GAP)
    bar = min(room - len(_COLUMN_GAP), _BAR_COLUMNS_MAX)
    if stage.planned and bar >= _BAR_COLUMNS_MIN:
        done = bar * min(stage.done, stage.planned) // stage.planned
        parts.insert(1, marks[0] * done + marks[1] * (bar - done))
    return _COLUMN_GAP.join(parts)[: columns - 1]


def plain_progress_line(stage: ProgressStage, remaining_text: str) -> str:
    """Return the progress line for output that is not a terminal."""
    counted = f"{stage.phase}: {stage.done:,} of {stage.planned:,} {stage.unit}"
    return ", ".join(filter(None, (counted, stage.more, remaining_text, stage.detail)))


def make_display(command: str, *, quiet: bool) -> ProgressDisplay:
    """Return the progress display of a command on standard error. It is started, unless `quiet` is set."""
    is_live = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    display = ProgressDisplay(sys.stderr, is_live=is_live)
    if not quiet:
        display.start(command)
    return display


def _stream_columns(stream: TextIO) -> int:
    """Return the current width of the terminal, which may change at any time."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except OSError:
        return 80
