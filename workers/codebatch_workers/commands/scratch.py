"""The directories of a worker's attempts: one at a time, in its own.

One that its command left as it was, with nothing behind that runs, is the next one's too: to make and remove one each
time costs more than it seems, for every inode that is given back slows down whoever looks for a free one within the
next minute (ext4, `recently_deleted`).

That it is as it was is told by its time of change (st_ctime), which nobody can set. A file system takes that from a
clock that stands still for up to 10 ms: so it tells nothing of what happened so soon after the change before.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from codebatch.errors import StoreError
from codebatch.system.files.files import Files

TICK_NS = 20_000_000
EMPTY = "empty"
NO_ROWS = "no-rows"
_GIVEN = {EMPTY: b"", NO_ROWS: b"[]\n"}
"""Files of each attempt's own, by name: a command may truncate or remove them, or their directory, without harm."""


class Scratch:
    """What a worker's attempts have for their time."""

    def __init__(self, files: Files, root: Path, wall_ns: Callable[[], int]) -> None:
        """`root` is the worker's own directory."""
        self._files = files
        self._wall_ns = wall_ns
        self.root = root
        self._spare: Path | None = None
        self._mode = self._changed_ns = self._given_ns = 0

    def directory(self, attempt: int) -> Path:
        """That of an attempt, which `make` makes."""
        return self._spare or self.root / str(attempt)

    def make(self, directory: Path) -> None:
        """Make the directory of an attempt, which holds nothing but EMPTY and NO_ROWS. Raises StoreUnwritable."""
        is_spare, self._spare = directory == self._spare, None
        found = self._files.stat(directory) if is_spare else None
        if found is None or found.st_ctime_ns != self._changed_ns:  # Somebody removed the one, or made the other.
            self._files.remove_tree(directory)
            self._files.make_directory(directory)
            for name, data in _GIVEN.items():
                self._files.write_volatile(directory / name, data)
            found = self._files.stat(directory)
        self._mode, self._changed_ns = (0, 0) if found is None else (found.st_mode, found.st_ctime_ns)
        self._given_ns = self._wall_ns()

    def is_untouched(self, directory: Path) -> bool:
        """Whether it is sure that nothing was made in the directory of the attempt at hand."""
        with contextlib.suppress(StoreError, OSError):
            found = self._files.stat(directory)
            return found is not None and self._is_as_it_was(found)
        return False

    def end(self, directory: Path, *, is_left_alone: bool) -> None:
        """An attempt is over; where it `is_left_alone`, nothing of it runs any more."""
        with contextlib.suppress(StoreError, OSError):  # Whatever the command has made of it.
            found = self._files.stat(directory)
            if found is None:
                return
            is_clean = is_left_alone and found.st_mode == self._mode and self._holds_what_was_given(directory)
            if is_clean and (self._is_as_it_was(found) or self._files.has_only(directory, _GIVEN.keys())):
                self._spare, self._changed_ns = directory, found.st_ctime_ns
            else:
                self._files.remove_tree(directory)

    def remove(self) -> None:
        """Remove all of it, where nobody else does."""
        with contextlib.suppress(StoreError):
            self._files.remove_tree(self.root)

    def _holds_what_was_given(self, directory: Path) -> bool:
        with contextlib.suppress(StoreError, OSError):
            return all(self._files.read(directory / name) == data for name, data in _GIVEN.items())
        return False

    def _is_as_it_was(self, found: os.stat_result) -> bool:
        is_known = 0 < self._changed_ns < self._given_ns - TICK_NS
        return is_known and found.st_ctime_ns == self._changed_ns
