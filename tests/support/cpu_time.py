"""A limit of CPU time that does not depend on the speed of the machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

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
