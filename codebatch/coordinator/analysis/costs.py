"""Estimates of the cost of work, in bytes of source.

They determine the order of units and the initial number of workers.

The time per byte is unknown until workers are observed (codebatch/scheduling/analysis/throughput.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from codebatch.model.entry import Entry
from codebatch.model.plan import Plan
from codebatch.model.shard import ProjectWork, ShardId

COST_PER_FILE = 2048
"""Cost of a file, in addition to its size in bytes."""

COST_PER_WORKER = 1_500_000
"""Amount of work for which one more worker is started. It applies until the speed of a worker has been observed."""

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


def _source_size(entry: Entry) -> int:
    """Return the number of bytes of a file that tasks parse, estimated from its name and size."""
    if entry.size <= COST_PER_FILE:
        return entry.size
    _, dot, suffix = entry.path.rpartition(b".")
    is_binary = bool(dot) and suffix.lower() in _BINARY_SUFFIXES
    return 0 if is_binary or entry.size > PARSED_BYTES_MAX else entry.size
