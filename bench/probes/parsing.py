"""Measure processes that share nothing: `python -m bench.probes.parsing COUNT` prints their wall-clock seconds.

Each of COUNT processes parses the same source with tree-sitter and with Python, a fixed number of times. The seconds
count from the time when all are ready until the last one is done. On a machine with enough equal cores, the seconds
do not depend on COUNT.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import multiprocessing
import sys
import time
from multiprocessing.synchronize import Barrier

import tree_sitter_python
from tree_sitter import Language, Parser

_ROUNDS = 40


def _parse(barrier: Barrier, source: str) -> None:
    parser, data = Parser(Language(tree_sitter_python.language())), source.encode()
    barrier.wait()
    for _ in range(_ROUNDS):
        parser.parse(data)
        ast.parse(source)


def measure(count: int) -> float:
    """Return the seconds until all processes are done."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(count + 1)
    source = inspect.getsource(argparse)
    processes = [context.Process(target=_parse, args=(barrier, source)) for _ in range(count)]
    for process in processes:
        process.start()
    barrier.wait()
    started = time.perf_counter()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    return time.perf_counter() - started


if __name__ == "__main__":
    print(measure(int(sys.argv[1])))
