"""Three clocks, each for one purpose."""

from __future__ import annotations

import resource
import time


def wall_ns() -> int:
    """Return nanoseconds since 1970, for people: journals, ids, listings. No decision may depend on this clock."""
    return time.time_ns()


def running_ns() -> int:
    """Return nanoseconds of a clock that stops in suspend (CLOCK_MONOTONIC on Linux). Time limits use this clock."""
    return time.monotonic_ns()


def process_cpu_ns() -> int:
    """Return the CPU time in nanoseconds of this process and of the children that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + round((children.ru_utime + children.ru_stime) * 1e9)
