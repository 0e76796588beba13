"""What work is estimated to cost, in bytes of source: by it work is ordered, and workers are worth starting."""

from __future__ import annotations

from collections.abc import Sequence

from codebatch.model.entry import Entry
from codebatch.model.plan import Plan
from codebatch.model.shard import ProjectWork, ShardId

COST_PER_FILE = 2048
COST_PER_WORKER = 1_500_000
# Of what all files cost: of a project task, and of one that is known to take longer.
PROJECT_SHARE = 0.02
_PROJECT_SHARES = {"duplicates": 0.08}


def estimate(plan: Plan, items: Sequence[Entry], shuffle_seed: int | None) -> dict[ShardId, list[float]]:
    """Cumulative cost estimates: bytes, and some more for each file's own overhead; at random where a seed is given.

    A project task costs a share of it all: about what was measured for the built-in ones. The longest begins first.
    """
    chance = None
    if shuffle_seed is not None:
        from random import Random

        chance = Random(shuffle_seed)  # noqa: S311 (an order, no secret)
    costs: dict[ShardId, list[float]] = {}
    for shard in plan.shards:
        factor = chance.random() if chance else 1.0
        column = [0.0]
        for item in items[shard.start : shard.end]:
            column.append(column[-1] + factor * (item.size + COST_PER_FILE))
        costs[shard.id] = column
    whole = sum(column[-1] for column in costs.values())
    for task in plan.project_tasks:
        costs[ProjectWork(task).id] = [0.0, _PROJECT_SHARES.get(task, PROJECT_SHARE) * whole]
    return costs
