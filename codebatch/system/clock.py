"""Three clocks, each for one purpose."""

from __future__ import annotations

import resource
import time


def wall_ns() -> int:
    """Return the wall-clock time in nanoseconds since 1970, for display and IDs.

    No decision may depend on this clock.
    """
    return time.time_ns()


def running_ns() -> int:
    """Return the time in nanoseconds of a clock that stops while the machine is suspended. Time limits use this clock.

    On Linux this is CLOCK_MONOTONIC.
    """
    return time.monotonic_ns()


def process_cpu_ns() -> int:
    """Return the CPU time in nanoseconds that this process and its ended children have used."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + round((children.ru_utime + children.ru_stime) * 1e9)
