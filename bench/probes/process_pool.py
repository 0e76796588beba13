"""Print microseconds for each empty task of a ProcessPoolExecutor.

Called as `python -m bench.probes.process_pool TASKS WORKERS`.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor


def nothing(number: int) -> int:
    """Return the number: the empty task."""
    return number


def measure(tasks: int, workers: int) -> float:
    """Submit empty tasks one by one and wait for all of them. Return microseconds for each."""
    with ProcessPoolExecutor(workers) as pool:
        list(pool.map(nothing, range(workers * 4)))
        began = time.perf_counter()
        futures = [pool.submit(nothing, number) for number in range(tasks)]
        for future in futures:
            future.result()
        return (time.perf_counter() - began) / tasks * 1e6


if __name__ == "__main__":
    print(measure(*map(int, sys.argv[1:3])))
