"""CPU time and file descriptors of the process that runs the tests."""

from __future__ import annotations

import gc
import os
import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

_INDEX = "/memfd:codebatch-index (deleted)"
"""The index of a batch. It is opened on first use, also if the batch is of a fixture with a wider scope."""

_CLOSING_TRIES = 50

_REFERENCE_SECONDS = 0.05
"""CPU time of `_do_reference_work` on the machine for which the limits were chosen."""


@contextmanager
def cpu_time_below(seconds: float) -> Iterator[None]:
    """Fail if a block takes more CPU time than a machine of the reference takes in `seconds`.

    Only if the block takes longer, the speed of this machine is measured.
    """
    began = time.process_time()
    yield
    used = time.process_time() - began
    if used > seconds:
        slowness = max(1.0, *(_do_reference_work() / _REFERENCE_SECONDS for _ in range(3)))
        assert used <= seconds * slowness, f"{used:.1f} s of CPU time, on a machine that is {slowness:.1f} times slower"


def _do_reference_work() -> float:
    """Return the CPU time of some work with numbers, strings and mappings."""
    began = time.process_time()
    counts: dict[str, int] = {}
    for number in range(150_000):
        name = f"name {number % 1000}"
        counts[name] = counts.get(name, 0) + len(name.split())
    return time.process_time() - began


def is_readable(descriptor: int | socket.socket, seconds: float) -> bool:
    """Wait until a descriptor can be read, or its other end was closed. Return False after some seconds.

    Unlike select(2), this accepts descriptors above 1,024.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))


_lasting_descriptors: set[str] = set()


def keep_open(descriptor: int) -> None:
    """Let no test fail because it opened a descriptor that all tests of this process use."""
    _lasting_descriptors.add(str(descriptor))


def open_descriptors() -> frozenset[str]:
    """Return the numbers of the open file descriptors of this process, and of one that is closed again."""
    return frozenset(os.listdir("/dev/fd"))


def left_open(before: frozenset[str]) -> list[str]:
    """Return descriptions of the descriptors that stay open, but were not open before."""
    if open_descriptors() <= before:
        return []
    gc.collect()  # Objects in reference cycles close their files only then.
    found = _new_descriptors(before)
    for _ in range(_CLOSING_TRIES):  # A thread that has just answered may still close its files.
        if not found:
            break
        time.sleep(0.02)
        found = _new_descriptors(before)
    return found


def _new_descriptors(before: frozenset[str]) -> list[str]:
    new = sorted(open_descriptors() - before - _lasting_descriptors, key=int)
    return [f"{number}: {target}" for number in new if (target := _target(number)) not in (None, _INDEX)]


def _target(number: str) -> str | None:
    """Return what a descriptor refers to, or None if it is closed."""
    try:
        os.fstat(int(number))
        return os.readlink(f"/dev/fd/{number}")
    except OSError:
        return None
