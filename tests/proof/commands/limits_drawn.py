"""Random limits of simulated work batches, and random requests that change them."""

from __future__ import annotations

import random

from msgspec.structs import replace

from codebatch.model.work.command import CommandId
from codebatch.model.work.limits import Caps, WorkLimits
from codebatch.model.work.request import Set, TaskSettings
from codebatch.model.work.work_batch import Work
from codebatch.query.status.work_status import WorkBatchStatus
from tests.proof.commands.wall import draw_closed_hours


def limit_work(work: Work, chance: random.Random) -> Work:
    """Return the same commands with caps on attempts or on costs of the list, a pool, tasks, or all of them."""
    scope = chance.choice(("list", "pool", "task", "all"))
    has_cost_caps = chance.random() < 0.5

    def draw_caps(of: str) -> Caps:
        if scope not in (of, "all"):
            return Caps()
        most = chance.choice((1, 2, 3, 5))
        return Caps(cost_max=float(most)) if has_cost_caps else Caps(attempts_max=most)

    of_list = draw_caps("list")
    limits = WorkLimits(
        attempts_max=of_list.attempts_max,
        cost_max=of_list.cost_max,
        pools={"api": draw_caps("pool")},
        on_cap=chance.choice(("stop", "ask")),
    )
    policies = {}
    for id_ in work.order:
        of_task = draw_caps("task")
        policies[id_] = replace(
            work.policies[id_],
            pools={"api": 1} if chance.random() < 0.7 else {},
            attempts_max=of_task.attempts_max,
            cost_max=of_task.cost_max,
            waits_max=chance.choice((1, 100)),
            retries=chance.choice((0, 2, 3)),
            has_cost=True,
        )
    max_parallel = chance.choice((1, work.max_parallel))
    return replace(work, limits=limits, policies=policies, pools={"api": 2}, max_parallel=max_parallel)


def add_clock(work: Work, begin_ns: int, chance: random.Random) -> Work:
    """Return the same commands with hours, a time of the start, or a deadline."""
    zone = chance.choice(("UTC", "Asia/Kolkata"))
    hours = draw_closed_hours(begin_ns, zone, chance)
    limits = replace(
        work.limits_or_none,
        zone=zone,
        hours=hours if chance.random() < 0.4 else "",
        pool_hours={"api": hours} if "api" in work.pools and chance.random() < 0.4 else {},
        start_at_ns=chance.choice((0, 0, begin_ns + 300_000_000_000)),
        deadline_ns=begin_ns + chance.randint(60, 900) * 1_000_000_000 if chance.random() < 0.4 else 0,
    )
    return replace(work, limits=limits)


def draw_change(status: WorkBatchStatus, begin_ns: int, chance: random.Random) -> Set:
    """Return a request that changes caps, the deadline, or the settings of a task, as `work set` makes it."""
    work = status.work
    scopes = ["", *(f"pool.{pool}" for pool in work.pools), *(f"task.{id_}" for id_ in work.order)]
    kind = chance.random()
    if kind < 0.5 and work.limits:  # Without caps, a power loss may remove leases, which later caps do not count.
        caps = Caps(attempts_max=chance.choice((None, 1, 2, 4, 8, 16)), cost_max=chance.choice((None, 1.0, 4.0, 12.0)))
        return Set(caps={chance.choice(scopes): caps})
    if kind < 0.65:
        return Set(deadline_ns=begin_ns + chance.randint(0, 3000) * 1_000_000_000)
    command = chance.choice(status.commands)
    settings = TaskSettings(
        after_round=command.round,
        retries=chance.choice((None, 0, 1, 3)),
        priority=chance.choice((None, -1, 2)),
        timeout_seconds=chance.choice((None, 0.5, 60.0)),
    )
    return Set(tasks={CommandId(command.id): settings})
