"""How much a directory holds."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def tree_bytes(root: Path) -> int:
    """Bytes of all files below a directory, each inode once, no link followed.

    What vanishes meanwhile or refuses to be read counts nothing.
    """
    total = 0
    seen: set[int] = set()
    pending = [os.fspath(root)]
    while pending:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as found:
            for item in found:
                with contextlib.suppress(OSError):
                    if item.is_dir(follow_symlinks=False):
                        pending.append(item.path)
                    elif item.inode() not in seen:
                        seen.add(item.inode())
                        total += item.stat(follow_symlinks=False).st_size
    return total
