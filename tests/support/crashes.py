"""Actions that are killed or refused at each of their writes in turn, and the disk that each of them leaves behind."""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

from codebatch.errors import StoreUnwritable
from codebatch.system.files.files import RealFiles
from tests.support.calls import Fate, Operation, Watch, WatchedCalls
from tests.support.disk import Disk
from tests.support.schedule import Killed

PLACE = Path("/a/b/store")
"""The directory of a store on a disk in memory."""

WRITES_MAX = 1000

Meant = Callable[[Operation], bool]


def is_write(operation: Operation) -> bool:
    """Return whether a call is a write."""
    return operation.is_write


def from_call(at: int, is_meant: Meant = is_write) -> Meant:
    """Return a predicate that is true for the meant calls from number `at` on, counted from 0.

    The predicate counts, so it must be called once for each call, in order.
    """
    before = iter(range(at))
    return lambda operation: is_meant(operation) and next(before, None) is None


def refused(number: int, operation: Operation) -> Fate:
    """Return a failure with an error number. A refused write(2) writes half of its bytes."""
    return Fate(OSError(number, os.strerror(number)), share=0.5 if operation.call == "write" else 0)


def killed_from(at: int) -> Watch:
    """Return a watch that kills the process at the write with number `at`, and at every later write."""
    is_late = from_call(at)
    return lambda operation: Fate(Killed()) if is_late(operation) else None


def refused_from(at: int, number: int, is_meant: Meant = is_write) -> Watch:
    """Return a watch that refuses the meant calls from number `at` on with an error number."""
    is_late = from_call(at, is_meant)
    return lambda operation: refused(number, operation) if is_late(operation) else None


def killed_at_each_write(
    old: Disk, act: Callable[[RealFiles], object], *, least: int, seed: int | None = None
) -> Iterator[tuple[Disk, bool]]:
    """Yield the disk after a kill before each write of an action, and at the end, with True, after the whole action.

    A kill at any other call leaves the same disk as a kill at the next write. With a seed, power is lost after the
    kill: with 0 everything is lost that was not made durable, with other seeds a part of it. The action must make at
    least `least` writes.
    """
    for at in range(WRITES_MAX):
        disk = copy.deepcopy(old)
        mortal = disk.calls()
        is_over = True
        try:
            act(RealFiles(WatchedCalls(mortal, killed_from(at))))
        except Killed:
            is_over = False
        mortal.exit()
        if seed is not None:
            disk.lose_power(random.Random(seed + at) if seed else None)
        yield disk, is_over
        if is_over:
            assert at >= least
            return
    raise AssertionError("it does not end")


def refused_at_each_write(
    old: Disk, act: Callable[[RealFiles], object], number: int, *, least: int, step: int = 1
) -> Iterator[Disk]:
    """Yield the disk after all writes from each one on failed with an error number, and at the end, without a failure.

    Each failure must raise StoreUnwritable. With `step`, only every `step`-th write is the first to fail. The action
    must make at least `least` writes.
    """
    for at in range(0, WRITES_MAX, step):
        disk = copy.deepcopy(old)
        is_over = True
        try:
            act(RealFiles(WatchedCalls(disk.calls(), refused_from(at, number))))
        except StoreUnwritable:
            is_over = False
        yield disk
        if is_over:
            assert at >= least
            return
    raise AssertionError("it does not end")
