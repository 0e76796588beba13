"""File descriptors: the number that a run needs at the same time, and the limit of the system (RLIMIT_NOFILE)."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterator

from codebatch.errors import StoreUnwritable
from codebatch.model.text.quantities import count_text
from codebatch.protocol.launch import WORKER_DESCRIPTORS_MIN
from codebatch.system.files.os_errors import OPEN_FILES_ASSUMED

DESCRIPTORS_PER_WORKER = 3
"""Descriptors that the coordinator needs for each worker: channel, standard error, progress cell."""

SPARE_DESCRIPTORS = 16
"""Descriptors that the coordinator opens for a short time, to start a process, to read or to commit."""


_DESCRIPTORS_ASSUMED_OPEN = 16


@contextlib.contextmanager
def enough_descriptors(workers: int) -> Iterator[None]:
    """Raise the descriptor limit to what this process and its workers need. On exit, restore the limit.

    Enter this context after the coordinator has opened its own files, because they are counted. Raises StoreUnwritable
    if the hard limit is too low.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    required = _count_open_descriptors() + SPARE_DESCRIPTORS
    needed = max(WORKER_DESCRIPTORS_MIN, required + DESCRIPTORS_PER_WORKER * workers)
    if _is_enough(soft, needed):
        yield
        return
    if not _is_enough(hard, needed):
        fewer = (hard - required) // DESCRIPTORS_PER_WORKER
        remedy = f"raise the limit of open files: ulimit -n {max(OPEN_FILES_ASSUMED, needed)}"
        if hard >= WORKER_DESCRIPTORS_MIN and fewer > 0:
            remedy += f", or start fewer workers: -j {fewer}"
        raise StoreUnwritable(
            f"cannot start {count_text(workers, 'worker')}: {needed} open files are needed, and the limit is {hard}",
            hint=f"{remedy}; then run the same command again",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _is_enough(limit: int, needed: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= needed


def _count_open_descriptors() -> int:
    try:
        return len(os.listdir("/dev/fd"))
    except OSError:  # Without /proc, there is no /dev/fd. To list it also fails if no descriptor is free.
        return _DESCRIPTORS_ASSUMED_OPEN
