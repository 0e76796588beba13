"""How far going through files is, for a question that takes long: on standard error, and only once it does."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from codebatch.coordinator.progress import PLAIN_SECONDS, time_left
from codebatch.model.quantities import count_of
from codebatch.system.clock import running_ns

_LIVE_SECONDS = 0.5
_ERASED = "\r\x1b[K"


class FilesProgress:
    """On a terminal a line that is written over and erased at last; elsewhere a line every ten seconds."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool) -> None:
        self._stream = stream or sys.stderr
        self._is_live = self._stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._seconds = _LIVE_SECONDS if self._is_live else PLAIN_SECONDS
        self._is_quiet = quiet
        self._is_shown = False
        self._began = self._told = running_ns()

    def __enter__(self) -> FilesProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            print(_ERASED, end="", file=self._stream, flush=True)

    def update(self, done: int, files: int) -> None:
        """So many of the files are done."""
        now = running_ns()
        if self._is_quiet or (now - self._told) / 1e9 < self._seconds:
            return
        self._told = now
        text = f"{done:,} of {count_of(files, 'file')}{time_left((now - self._began) / 1e9, done, files)}"
        self._is_shown = self._is_live
        print(
            f"{_ERASED}{text}" if self._is_live else text,
            end="" if self._is_live else "\n",
            file=self._stream,
            flush=True,
        )
