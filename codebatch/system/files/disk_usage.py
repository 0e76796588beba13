"""Disk usage of directories. Files that vanish or cannot be read are ignored. Symbolic links are not followed."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path


def reclaimable_bytes(roots: Iterable[Path], paths: Iterable[Path]) -> tuple[int, int]:
    """Return the bytes that removing `roots` would free, and the further bytes that removing `paths` would free.

    A file counts only if all its hard links are removed. `paths` must not be below `roots`.
    """
    names: Counter[int] = Counter()
    stats_below = (status for root in roots for _, status in iter_files(root))
    freed_bytes = [0, 0]
    for place, stats in enumerate((stats_below, _iter_stats(paths))):
        for status in stats:
            names[status.st_ino] += 1
            if names[status.st_ino] == status.st_nlink:
                freed_bytes[place] += status.st_size
    return freed_bytes[0], freed_bytes[1]


def _iter_stats(paths: Iterable[Path]) -> Iterator[os.stat_result]:
    for path in paths:
        with contextlib.suppress(OSError):
            yield path.lstat()


def iter_files(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the path and status of each file below a directory, but not of directories.

    The names in a directory are sorted.
    """
    pending = [os.fspath(root)]
    while pending:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as items:
            for item in sorted(items, key=lambda item: item.name):
                with contextlib.suppress(OSError):
                    if item.is_dir(follow_symlinks=False):
                        pending.append(item.path)
                    else:
                        yield item.path, item.stat(follow_symlinks=False)
