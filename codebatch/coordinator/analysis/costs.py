"""Estimates of the cost of work, in bytes of Python source that take the same time.

They determine the order of units, the initial number of workers, and the shards of each part of a batch. The language
and the class of a file are known only from its path and size, because no file is read for an estimate.

The time per byte is unknown until workers are observed (codebatch/scheduling/analysis/throughput.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from codebatch.model.entry import Entry
from codebatch.model.plan import Plan
from codebatch.model.shard import ProjectWork, ShardId

COST_PER_FILE = 2048
"""Cost of a file, in addition to its size in bytes."""

COST_PER_WORKER = 1_500_000
"""Amount of work for which one more worker is started. It applies until the speed of a worker has been observed."""

ESTIMATES_VERSION = 1
"""The version of the estimates. Part files have it, because it explains different assignments of shards to parts."""

COST_PER_CPU_SECOND = 3_300_000
"""Cost that one core does per second (`python -m bench.probes.language_costs`, one core of a server of 2024)."""

PARSED_BYTES_MAX = 8 << 20
"""Size above which the built-in tasks do not parse a file."""

PROJECT_COST_SHARE = 0.02
"""Cost of a project task, as a fraction of the cost of all files."""

_PROJECT_COST_SHARES = {"duplicates": 0.08}

_BINARY_SUFFIXES = frozenset(
    b"7z a avi bin bmp bz2 class db dll docx dylib eot exe flac gif gz ico jar jpeg jpg mo mov mp3 mp4 o ogg otf "
    b"parquet pdf png pptx pyc pyd so sqlite tar tgz tif tiff ttf wasm wav webm webp whl woff woff2 xls xlsx xz zip "
    b"zst".split()
)

_WEIGHTS = {
    b"bash": 1.0, b"c": 1.0, b"cc": 1.6, b"cpp": 1.6, b"cs": 1.0, b"css": 0.35, b"cxx": 1.6, b"go": 0.8, b"h": 1.1,
    b"hh": 1.6, b"hpp": 2.0, b"ipynb": 0.3, b"java": 0.9, b"js": 0.7, b"json": 0.4, b"jsx": 0.7, b"kt": 1.0,
    b"lua": 1.0, b"mjs": 0.7, b"php": 1.1, b"py": 1.0, b"pyi": 1.0, b"rb": 1.0, b"rs": 1.1, b"scala": 1.0,
    b"scss": 0.35, b"sh": 0.8, b"sql": 1.3, b"swift": 1.0, b"toml": 0.4, b"ts": 0.8, b"tsx": 0.8, b"xml": 0.25,
    b"yaml": 0.4, b"yml": 0.4,
}  # fmt: skip
"""CPU time per byte by path ending, relative to Python (`python -m bench.probes.language_costs`)."""

_OTHER_WEIGHT = 0.1
_MINIFIED_ENDINGS = (b".min.js", b".min.css")


def estimate_costs(plan: Plan, items: Sequence[Entry], shuffle_seed: int | None) -> dict[ShardId, list[float]]:
    """Return for each shard the cumulative costs of its items.

    With a seed, costs are multiplied by random numbers, so the order of shards is random. The cost of a project task is
    a fraction of the cost of all files. These fractions were measured for the built-in tasks.
    """
    chance = None
    if shuffle_seed is not None:
        chance = Random(shuffle_seed)  # noqa: S311 (an order, no secret)
    costs: dict[ShardId, list[float]] = {}
    for shard in plan.shards:
        factor = chance.random() if chance else 1.0
        column = [0.0]
        for item in items[shard.start : shard.end]:
            column.append(column[-1] + factor * (_source_size(item) + COST_PER_FILE))
        costs[shard.id] = column
    total_cost = sum(column[-1] for column in costs.values())
    for task in plan.project_tasks:
        costs[ProjectWork(task).id] = [0.0, _PROJECT_COST_SHARES.get(task, PROJECT_COST_SHARE) * total_cost]
    return costs


def estimate_seconds(costs: Iterable[float]) -> float:
    """Return the estimated CPU seconds of all file tasks for shards or files with given costs."""
    return sum(costs) / COST_PER_CPU_SECOND


def _source_size(entry: Entry) -> float:
    """Return the weighted size of a file, estimated from its name and size. It is 0 if tasks do not parse the file."""
    _, dot, ending = entry.path.rpartition(b"/")[2].rpartition(b".")
    suffix = ending.lower() if dot else b""
    if suffix in _BINARY_SUFFIXES or entry.size > PARSED_BYTES_MAX or entry.path.endswith(_MINIFIED_ENDINGS):
        return 0.0
    return entry.size * _WEIGHTS.get(suffix, _OTHER_WEIGHT)
