"""The read-only part of the interface to a store's files (system/files/files.py)."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Protocol


class FileReader(Protocol):
    """The file system operations that are needed to read a store.

    Every method raises StoreError if the system refuses to read. It raises UnsupportedEntry if something other than a
    regular file or directory is at the path.
    """

    def read(self, path: Path) -> bytes:
        """Return all bytes of a file. Raises FileNotFoundError."""

    def read_range(self, path: Path | str, offset: int, length: int) -> bytes:
        """Return up to `length` bytes from `offset`, fewer at the end of the file. Raises FileNotFoundError."""

    def stat(self, path: Path) -> os.stat_result | None:
        """Return the status of a path, or None if it does not exist. Below the store's root, links are not followed."""

    def size(self, path: Path) -> int | None:
        """Return the size of a file in bytes, or None if the file is missing."""

    def listing(self, path: Path) -> dict[str, int]:
        """Map the names in a directory to inode numbers, sorted by name. Names that begin with `.` are omitted.

        Two names with the same inode are links to one file. If the directory is missing, the result is empty.
        """

    def has_only(self, path: Path, names: Collection[str]) -> bool:
        """Return whether a directory contains exactly the names `names`.

        Hidden names count too. Raises FileNotFoundError.
        """

    def lengths(self, path: Path) -> dict[str, int]:
        """Map the name of each regular file in a directory to its size in bytes. Empty if the directory is missing.

        One call is much faster than calling `size` for each file.
        """
