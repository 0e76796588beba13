"""How much directories hold. What vanishes meanwhile or refuses to be read counts nothing; no link is followed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path


def bytes_of_alone(roots: Iterable[Path], paths: Iterable[Path] = ()) -> int:
    """Bytes of the files that have no name but those below some directories, and some `paths` outside of them: what
    removing these makes free.
    """
    names: dict[int, int] = {}
    files: dict[int, os.stat_result] = {}
    below = (found for root in roots for _, found in iter_files(root))
    for found in chain(below, _iter_alone(paths)):
        names[found.st_ino] = names.get(found.st_ino, 0) + 1
        files[found.st_ino] = found
    return sum(found.st_size for inode, found in files.items() if names[inode] == found.st_nlink)


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
