"""The directories of a worker's attempts: one at a time, in its own.

One that its command left as it was, with nothing behind that runs, becomes the next one's under another name: to make
and remove one each time costs more than it seems, for every inode that is given back slows down whoever looks for a
free one within the next minute (ext4, `recently_deleted`).
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from codebatch.errors import StoreError
from codebatch.system.files import Files


class Scratch:
    """What a worker's attempts have for their time."""

    def __init__(self, files: Files, root: Path) -> None:
        """`root` is the worker's own directory."""
        self._files = files
        self.root = root
        self._spare: Path | None = None
        self._mode = 0
        self.nothing = root / "nothing"

    def directory(self, attempt: int) -> Path:
        """That of an attempt, which `make` makes."""
        return self.root / str(attempt)

    def make(self, directory: Path) -> None:
        """Make the directory of an attempt, empty. Raises StoreUnwritable."""
        spare, self._spare = self._spare, None
        if spare is not None:
            with contextlib.suppress(StoreError, OSError):  # Somebody removed the one, or made the other.
                self._files.replace(spare, directory)
                return
        self._files.make_directory(directory)
        found = self._files.stat(directory)
        self._mode = 0 if found is None else found.st_mode

    def end(self, directory: Path, *, is_left_alone: bool) -> None:
        """An attempt is over; where it `is_left_alone`, nothing of it runs any more."""
        with contextlib.suppress(StoreError, OSError):  # Whatever the command has made of it.
            found = self._files.stat(directory)
            if found is not None and is_left_alone and found.st_mode == self._mode and self._files.is_empty(directory):
                self._spare = directory
            elif found is not None:
                self._files.remove_tree(directory)

    def remove(self) -> None:
        """Remove all of it, where nobody else does."""
        with contextlib.suppress(StoreError):
            self._files.remove_tree(self.root)
