"""Time. Three clocks, and what each is for."""

from __future__ import annotations

import time


def wall_ns() -> int:
    """Nanoseconds since 1970, for people: journals, ids, listings. Never compared to decide anything."""
    return time.time_ns()


def running_ns() -> int:
    """Nanoseconds on a clock that stops in suspend (CLOCK_MONOTONIC on Linux): limits of time are measured on it."""
    return time.monotonic_ns()


def process_cpu_ns() -> int:
    """CPU nanoseconds of this process, and of the children that it has waited for."""
    import resource  # of workers alone

    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + round((children.ru_utime + children.ru_stime) * 1e9)
