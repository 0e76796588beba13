"""Random simulated work batches, each drawn from a seed."""

from __future__ import annotations

import random

from msgspec.structs import replace

from codebatch.model.work.command import Command, CommandId, ResultPointers
from codebatch.model.work.work_batch import AnsweringPolicy, TaskPolicy, Work, WorkEdge
from tests.proof.commands.limits_drawn import add_clock, limit_work
from tests.proof.commands.wall import draw_begin_ns
from tests.proof.commands.world import CommandWorld, Fault, FaultKind


def draw_world(seed: int, kinds: tuple[FaultKind, ...], **options: object) -> CommandWorld:
    """Draw the world of a seed, with faults of the given kinds. `options` are further arguments of the world."""
    chance = random.Random(seed)
    count = chance.randint(1, 8)
    ids = [CommandId(f"c{number}") for number in range(count)]
    edges = tuple(
        WorkEdge(ids[user], ids[need], "needs" if chance.random() < 0.8 else "after")
        for user in range(count)
        for need in range(user)
        if chance.random() < 0.3
    )
    work = Work(
        source=f"seed {seed}",
        root=b"/simulated",
        order=tuple(ids),
        edges=edges,
        policies={
            id_: TaskPolicy(
                if_interrupted=chance.choice(("restart", "restart", "fail", "ask")),
                restarts_max=chance.randint(0, 3),
                priority=chance.choice((0, 0, 1)),
                exclusive=chance.random() < 0.1,
                retries=chance.choice((0, 0, 1, 2)),
                backoff_seconds=chance.choice((0.0, 1.0)),
                on_exhausted=chance.choice(("fail", "fail", "ask")),
            )
            for id_ in ids
        },
        strategy="parallel",
        max_parallel=chance.randint(1, 3),
        on_failure=chance.choice(("skip-dependents", "skip-dependents", "continue", "stop")),
        answering=chance.choice((None, None, AnsweringPolicy(command=("helper",)))),
        start_every_seconds=chance.choice((0.0, 0.0, 0.0, 1.0)),
        timeout_seconds=chance.choice((None, None, None, 1.0)),
        halt=chance.choice(("soon", "now")),
    )
    if seed % 3 == 1:
        work = _flat(work)
    if seed % 2:
        work = limit_work(work, random.Random(f"limits {seed}"))
    begin_ns = draw_begin_ns(random.Random(f"begin {seed}"))
    if seed % 4 == 1 or seed % 8 == 4:
        work = add_clock(work, begin_ns, random.Random(f"clock {seed}"))
    span = 200 + 120 * count
    faults = [
        Fault(at=chance.randrange(span), kind=chance.choice(kinds), seed=chance.getrandbits(32))
        for _ in range(chance.randint(0, 10))
    ]
    result = ResultPointers(cost="/cost")
    commands = [Command(id=id_, run=("true",), wait_if=chance.choice(("", "limited")), result=result) for id_ in ids]
    options.setdefault("gives_much", seed % 3 > 0)
    if "add tasks" in kinds and seed % 3 == 0:
        later = random.Random(f"added {seed}").randint(0, count - 1)
        options.setdefault("added_later", later)
        # Commands that are added later often follow a command that has ended by then.
        known = {edge.task for edge in work.edges if edge.on == ids[0]}
        follows = [WorkEdge(id_, ids[0], "after") for id_ in ids[count - later :] if id_ not in known]
        work = replace(work, edges=(*work.edges, *follows))
        faults += [Fault(at=chance.randrange(span), kind="add tasks", seed=seed) for _ in range(later)]
    return CommandWorld(chance, commands, work, faults, begin_ns, **options)  # type: ignore[arg-type] # A negative control plants its bug here.


def _flat(work: Work) -> Work:
    """Return the same commands with few needs and with restarts allowed, so that many can be assigned at once."""
    return replace(
        work,
        edges=work.edges[:1],
        policies={
            id_: replace(policy, if_interrupted="restart", restarts_max=max(1, policy.restarts_max), exclusive=False)
            for id_, policy in work.policies.items()
        },
        on_failure="skip-dependents" if work.on_failure == "stop" else work.on_failure,
        start_every_seconds=0.0,
    )
