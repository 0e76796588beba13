"""Reading below a store: the part of the port that those are given who write nothing (system/files/files.py)."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Protocol


class FileReader(Protocol):
    """What is needed of a file system to read a store.

    Every method raises StoreError where the disk refuses to be read, and StrangeEntry where something else than a plain
    file or directory is in its place.
    """

    def read(self, path: Path) -> bytes:
        """All bytes of a file. Raises FileNotFoundError."""

    def read_range(self, path: Path | str, offset: int, length: int) -> bytes:
        """Up to `length` bytes from `offset`; shorter at the end of the file. Raises FileNotFoundError."""

    def stat(self, path: Path) -> os.stat_result | None:
        """What is at a path, a link itself below the store's root; None where nothing is."""

    def size(self, path: Path) -> int | None:
        """Bytes of a file, None where there is none."""

    def listing(self, path: Path) -> dict[str, int]:
        """The names in a directory, sorted, without those that begin with `.`; empty where there is no directory.

        By each the inode behind it: two names of one inode are one file.
        """

    def has_only(self, path: Path, names: Collection[str]) -> bool:
        """Whether a directory has these names and no other, hidden ones included. Raises FileNotFoundError."""

    def lengths(self, path: Path) -> dict[str, int]:
        """How long each plain file in a directory is, by name; empty where there is no directory.

        It takes a seventh of what `size` of each does.
        """
