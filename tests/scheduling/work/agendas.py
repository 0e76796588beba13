"""Random command plans: commands with needs, pools and policies."""

from __future__ import annotations

import random

from msgspec.structs import replace

from codebatch.model.work.command import CommandId
from codebatch.model.work.work_batch import (
    AnsweringPolicy,
    FailureAction,
    InterruptedAction,
    TaskPolicy,
    Work,
    WorkEdge,
)
from codebatch.scheduling.work.command_plan import SLOTS_POOL, CommandPlan, make_command_plan


def random_agenda(rng: random.Random) -> CommandPlan:
    """Draw a plan of commands with random needs, pools and policies."""
    count = rng.randint(1, 12)
    ids = [CommandId(f"c{item:02}") for item in range(count)]
    order = rng.sample(ids, count)
    edges = [
        WorkEdge(order[user], order[need], "needs" if rng.random() < 0.85 else "after")
        for user in range(count)
        for need in range(user)
        if rng.random() < 0.25
    ]
    policies = {id_: _policy(rng) for id_ in ids}
    on_failure: FailureAction = rng.choice(("skip-dependents", "skip-dependents", "continue", "stop"))
    work = Work(
        source="a seed",
        root=b"/",
        order=tuple(order),
        edges=tuple(edges),
        policies=policies,
        strategy="parallel",
        max_parallel=rng.randint(1, 4),
        on_failure=on_failure,
        failures_max=rng.randint(1, 2),
        pools={"db": 2},
        on_blocked=rng.choice(("end", "end", "wait")),
        answering=rng.choice((None, None, AnsweringPolicy())),
        start_every_seconds=rng.choice((0.0, 0.0, 0.0, 1.0)),
        timeout_seconds=rng.choice((None, None, None, 1.0)),
        halt=rng.choice(("soon", "now")),
    )
    return make_command_plan(work, sorted(ids))


def flat(agenda: CommandPlan) -> CommandPlan:
    """Return the same commands with few needs and with restarts allowed, so that many can be assigned at once."""
    return replace(
        agenda,
        needs=[needs[:1] if item % 4 == 0 else () for item, needs in enumerate(agenda.needs)],
        policies=[
            replace(
                policy, if_interrupted="restart", restarts_max=max(1, policy.restarts_max), pools={}, exclusive=False
            )
            for policy in agenda.policies
        ],
        demands=[((SLOTS_POOL, 1),)] * len(agenda.demands),
        on_failure="skip-dependents" if agenda.on_failure == "stop" else agenda.on_failure,
        start_every_seconds=0.0,
    )


def _policy(rng: random.Random) -> TaskPolicy:
    if_interrupted: InterruptedAction = rng.choice(("restart", "restart", "fail", "ask"))
    return TaskPolicy(
        priority=rng.choice((0, 0, 1)),
        pools=rng.choice(({}, {}, {"db": 1}, {"db": 2})),
        exclusive=rng.random() < 0.1,
        if_interrupted=if_interrupted,
        restarts_max=rng.randint(0, 2),
        retries=rng.choice((0, 0, 1, 2)),
        backoff_seconds=rng.choice((0.0, 1.0)),
        retry_reasons=rng.choice((("exit",), ("exit", "stall"))),
        on_exhausted=rng.choice(("fail", "fail", "ask")),
        on_stall=rng.choice(("fail", "ask")),
    )
