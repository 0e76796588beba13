"""Burn every file of a directory with one of the peers: `python -m bench.probes.executors PEER DIR JOBS`.

Each peer is used as the first example of its documentation shows.
"""

from __future__ import annotations

import concurrent.futures
import importlib
import multiprocessing
import os
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("burn")))

burn_file = importlib.import_module("burn").burn_file


def process_pool(paths: list[str], jobs: int) -> None:
    """Burn files with the standard library's ProcessPoolExecutor."""
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        list(pool.map(burn_file, paths))


def pool(paths: list[str], jobs: int) -> None:
    """Burn files with the standard library's multiprocessing.Pool, which makes four chunks for each process."""
    with multiprocessing.Pool(jobs) as workers:
        workers.map(burn_file, paths)


def joblib(paths: list[str], jobs: int) -> None:
    """Burn files with joblib, which adapts its batch size to measured times."""
    library = importlib.import_module("joblib")
    library.Parallel(n_jobs=jobs)(library.delayed(burn_file)(path) for path in paths)


def dask(paths: list[str], jobs: int) -> None:
    """Burn files with dask's scheduler over processes."""
    library = importlib.import_module("dask")
    library.compute(*[library.delayed(burn_file)(path) for path in paths], scheduler="processes", num_workers=jobs)


PEERS: dict[str, Callable[[list[str], int], None]] = {
    function.__name__: function for function in (process_pool, pool, joblib, dask)
}

if __name__ == "__main__":
    os.environ["PYTHONPATH"] = sys.path[0]
    PEERS[sys.argv[1]](sorted(str(path) for path in Path(sys.argv[2]).iterdir()), int(sys.argv[3]))
