"""A process whose every write in turn is its last, or is refused, and what it leaves: to be looked at by the next."""

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
"""Of a store on a disk in memory."""

WRITES_MAX = 1000

Meant = Callable[[Operation], bool]


def is_write(operation: Operation) -> bool:
    """Any write."""
    return operation.is_write


def from_call(at: int, is_meant: Meant = is_write) -> Meant:
    """Shown each call once and in turn, tells the meant one with this number, counted from 0, and those after it."""
    before = iter(range(at))
    return lambda operation: is_meant(operation) and next(before, None) is None


def refused(number: int, operation: Operation) -> Fate:
    """An error's number; half of what was to be written is."""
    return Fate(OSError(number, os.strerror(number)), share=0.5 if operation.call == "write" else 0)


def killed_from(at: int) -> Watch:
    """Kills at the write with this number, and at each that is tried after it."""
    is_late = from_call(at)
    return lambda operation: Fate(Killed()) if is_late(operation) else None


def refused_from(at: int, number: int, is_meant: Meant = is_write) -> Watch:
    """Refuses the meant calls from one on."""
    is_late = from_call(at, is_meant)
    return lambda operation: refused(number, operation) if is_late(operation) else None


def killed_at_each_write(
    old: Disk, act: Callable[[RealFiles], object], *, least: int, seed: int | None = None
) -> Iterator[tuple[Disk, bool]]:
    """What is left by one that was killed before each write; at the end, with True, what all of it leaves.

    Who is killed at a call that writes nothing leaves what he leaves that is killed at the next write. With a seed,
    power is lost then: with 0 all goes that was not made durable, with others a part of it. There must be at least so
    many writes.
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
    """What is left where all writes from one on fail with an error's number; at the end, what all of it leaves.

    Each must be told as StoreUnwritable. With `step` only some are the first. There must be at least so many writes.
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
