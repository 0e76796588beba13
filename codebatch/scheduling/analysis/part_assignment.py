"""Assignment of the shards of a plan to parts: longest processing time first (Graham 1969).

The costliest shard goes first, to the part with the least work. The assignment depends only on the costs and on the
number of parts, so every machine computes the same one.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def assign_shards(costs: Sequence[float], parts: int) -> list[list[int]]:
    """Return for each part the positions of its shards, ascending. `costs` has the cost of each shard.

    Equal costs are assigned in the order of their positions, and equal parts receive a shard in the order of their
    numbers.
    """
    assigned: list[list[int]] = [[] for _ in range(parts)]
    loads = [(0.0, part) for part in range(parts)]
    for position in sorted(range(len(costs)), key=lambda position: (-costs[position], position)):
        load, part = loads[0]
        assigned[part].append(position)
        heapq.heapreplace(loads, (load + costs[position], part))
    return [sorted(positions) for positions in assigned]
