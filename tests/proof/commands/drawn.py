"""Simulated work batches, drawn from a seed."""

from __future__ import annotations

import random

from codebatch.model.command import Command, CommandId
from codebatch.model.work import Answering, Policy, Work, WorkEdge
from tests.proof.commands.world import CommandWorld, Fault, FaultKind


def draw_world(seed: int, kinds: tuple[FaultKind, ...], **made: object) -> CommandWorld:
    """The world of a seed, in which such faults happen."""
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
            id_: Policy(
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
        answering=chance.choice((None, None, Answering(command=("helper",)))),
        start_every_seconds=chance.choice((0.0, 0.0, 0.0, 1.0)),
    )
    span = 200 + 120 * count
    faults = [
        Fault(at=chance.randrange(span), kind=chance.choice(kinds), seed=chance.getrandbits(32))
        for _ in range(chance.randint(0, 10))
    ]
    commands = [Command(id=id_, run=("true",)) for id_ in ids]
    return CommandWorld(chance, commands, work, faults, **made)  # type: ignore[arg-type] # What a control plants.
