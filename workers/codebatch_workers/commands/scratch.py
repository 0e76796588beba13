"""Directories for the attempts of a worker, inside the worker's own directory. One attempt runs at a time.

If a command left its directory unchanged and no process uses it, the next attempt reuses the directory. Reuse is
faster: on ext4, each freed inode slows down searches for a free inode for a minute (`recently_deleted`).

The status change time (st_ctime) shows whether a directory is unchanged, because programs cannot set it. File systems
take this time from a clock with a resolution of up to 10 ms. So two changes within this time can have the same
st_ctime.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from codebatch.errors import StoreError
from codebatch.system.files.files import StoreFiles

FILE_CLOCK_TICK_NS = 20_000_000
EMPTY_FILE = "empty"
NO_ROWS_FILE = "no-rows"
_INITIAL_FILES = {EMPTY_FILE: b"", NO_ROWS_FILE: b"[]\n"}
"""The files that each attempt finds in its directory, by name. A command may change or remove them."""


class AttemptDirectories:
    """The directories of a worker's attempts. Only one exists at a time."""

    def __init__(self, files: StoreFiles, root: Path, wall_ns: Callable[[], int]) -> None:
        """`root` is the worker's own directory."""
        self._files = files
        self._wall_ns = wall_ns
        self.root = root
        self._reusable_directory: Path | None = None
        self._mode = self._changed_ns = self._made_ns = 0

    def attempt_path(self, attempt: int) -> Path:
        """Return the path of the directory for an attempt. Only `make` creates the directory."""
        return self._reusable_directory or self.root / str(attempt)

    def make(self, directory: Path) -> None:
        """Create the directory of an attempt with only the files EMPTY and NO_ROWS. Raises StoreUnwritable."""
        is_spare, self._reusable_directory = directory == self._reusable_directory, None
        stat = self._files.stat(directory) if is_spare else None
        # Either the directory is new, or a program changed or removed it after the last attempt.
        if stat is None or stat.st_ctime_ns != self._changed_ns:
            self._files.remove_tree(directory)
            self._files.make_directory(directory)
            for name, data in _INITIAL_FILES.items():
                self._files.write_volatile(directory / name, data)
            stat = self._files.stat(directory)
        self._mode, self._changed_ns = (0, 0) if stat is None else (stat.st_mode, stat.st_ctime_ns)
        self._made_ns = self._wall_ns()

    def is_untouched(self, directory: Path) -> bool:
        """Return whether it is certain that no file was created in the directory since `make`."""
        with contextlib.suppress(StoreError, OSError):
            stat = self._files.stat(directory)
            return stat is not None and self._is_unchanged(stat)
        return False

    def end_attempt(self, directory: Path, *, has_no_processes: bool) -> None:
        """End an attempt: keep its directory for the next one, or remove it.

        `has_no_processes` is true if it is certain that all processes of the attempt have ended.
        """
        with contextlib.suppress(StoreError, OSError):  # The command may have changed the directory in any way.
            stat = self._files.stat(directory)
            if stat is None:
                return
            is_clean = has_no_processes and stat.st_mode == self._mode and self._has_initial_contents(directory)
            if is_clean and (self._is_unchanged(stat) or self._files.has_only(directory, _INITIAL_FILES.keys())):
                self._reusable_directory, self._changed_ns = directory, stat.st_ctime_ns
            else:
                self._files.remove_tree(directory)

    def remove(self) -> None:
        """Remove the worker's own directory."""
        with contextlib.suppress(StoreError):
            self._files.remove_tree(self.root)

    def _has_initial_contents(self, directory: Path) -> bool:
        with contextlib.suppress(StoreError, OSError):
            return all(self._files.read(directory / name) == data for name, data in _INITIAL_FILES.items())
        return False

    def _is_unchanged(self, stat: os.stat_result) -> bool:
        is_known = 0 < self._changed_ns < self._made_ns - FILE_CLOCK_TICK_NS
        return is_known and stat.st_ctime_ns == self._changed_ns
