"""Files of which it is counted how much was read."""

from __future__ import annotations

import threading
from pathlib import Path

from codebatch.system.files.files import RealFiles


class CountedFiles(RealFiles):
    """Files that count what is read of them. `root` is the store they were last confined to, None before.

    `paths` are the files that were read, `read_bytes` how much of them, again where it was again. What is mapped does
    not count.
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
        return self._counted(path, super().read(path))

    def read_range(self, path: Path | str, offset: int, length: int) -> bytes:
        return self._counted(Path(path), super().read_range(path, offset, length))

    def _counted(self, path: Path, data: bytes) -> bytes:
        with self._lock:
            self.paths.add(path)
            self.read_bytes += len(data)
        return data
