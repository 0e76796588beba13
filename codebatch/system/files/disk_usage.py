"""How much directories hold. What vanishes meanwhile or refuses to be read counts nothing; no link is followed."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path


def reclaimable_bytes(roots: Iterable[Path], paths: Iterable[Path]) -> tuple[int, int]:
    """Bytes of the files that have no name but those below some directories: what removing these makes free. And what
    removing some `paths` outside of them makes free besides.
    """
    names: Counter[int] = Counter()
    below = (found for root in roots for _, found in iter_files(root))
    freed = [0, 0]
    for place, some in enumerate((below, _iter_alone(paths))):
        for found in some:
            names[found.st_ino] += 1
            if names[found.st_ino] == found.st_nlink:
                freed[place] += found.st_size
    return freed[0], freed[1]


def _iter_alone(paths: Iterable[Path]) -> Iterator[os.stat_result]:
    for path in paths:
        with contextlib.suppress(OSError):
            yield path.lstat()


def iter_files(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Every name below a directory that is no directory's, with what is there; those of one directory in order."""
    pending = [os.fspath(root)]
    while pending:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as found:
            for item in sorted(found, key=lambda item: item.name):
                with contextlib.suppress(OSError):
                    if item.is_dir(follow_symlinks=False):
                        pending.append(item.path)
                    else:
                        yield item.path, item.stat(follow_symlinks=False)
