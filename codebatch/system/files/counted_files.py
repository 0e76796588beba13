"""An implementation of Files that also counts the bytes that are read."""

from __future__ import annotations

import threading
from pathlib import Path

from codebatch.system.files.files import RealFiles


class CountedFiles(RealFiles):
    """Files that count what is read. `root` is the directory that was last passed to `confine`, or None.

    `paths` is the set of files that were read. `read_bytes` is the total size of all reads: a byte that is read twice
    counts twice. Reads through a memory map do not count.
    """

    def __init__(self) -> None:
        super().__init__()
        self.root: Path | None = None
        self.read_bytes = 0
        self.paths: set[Path] = set()
        self._lock = threading.Lock()

    def confine(self, root: Path) -> None:
        super().confine(root)
        self.root = root

    def read(self, path: Path) -> bytes:
        return self._count_read(path, super().read(path))

    def read_range(self, path: Path | str, offset: int, length: int) -> bytes:
        return self._count_read(Path(path), super().read_range(path, offset, length))

    def _count_read(self, path: Path, data: bytes) -> bytes:
        with self._lock:
            self.paths.add(path)
            self.read_bytes += len(data)
        return data
