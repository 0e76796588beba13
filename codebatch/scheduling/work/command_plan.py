"""What there is to conduct: the commands of a work batch as numbers, in plan order, and what needs what."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec

from codebatch.model.work.command import CommandId
from codebatch.model.work.work_batch import NO_POLICY, OnFailure, Policy, Work

ALL = 1 << 62
"""A demand for all that there is: whoever wants more gets no more."""

SLOTS = ""
"""The pool that everything takes of; no pool of a user's has that name."""

Demand = tuple[tuple[str, int], ...]
"""How much of which pools a command takes while it runs: of slots first, then by name."""


class Need(NamedTuple):
    """What must have ended before a command starts, and whether it must have ended well."""

    item: int
    must_succeed: bool


class CommandPlan(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A work batch by item: the place of a command in the plan.

    `ranks` are the places in the file, `seconds` how long each takes likely; none where that does not matter. `batch`
    is its id, from which waits are drawn; between two starts are `start_every_seconds` at least. Where one
    `waits_for_answers`, it is not over while somebody could answer; where one `consults`, somebody else than people
    may. One coordinator runs it for `timeout_seconds` at most. If it `halts`, what runs is ended once it is stopped.
    """

    ids: tuple[CommandId, ...]
    needs: tuple[tuple[Need, ...], ...]
    policies: tuple[Policy, ...]
    demands: tuple[Demand, ...]
    ranks: tuple[int, ...]
    seconds: tuple[float, ...]
    capacity: dict[str, int]
    on_failure: OnFailure
    failures_max: int
    batch: str = ""
    start_every_seconds: float = 0.0
    waits_for_answers: bool = False
    consults: bool = False
    timeout_seconds: float | None = None
    halts: bool = False

    @cached_property
    def keys(self) -> tuple[tuple[int, int, int], ...]:
        """What orders those that may start, the least first. Who only looks on does not ask."""
        behind = _behind(self.needs, self.seconds) if self.seconds else [0] * len(self.ids)
        return tuple((-policy.priority, -behind[item], self.ranks[item]) for item, policy in enumerate(self.policies))


def make_command_plan(
    work: Work, ids: Sequence[CommandId], batch: str = "", seconds: Sequence[float] = ()
) -> CommandPlan:
    """The agenda of a work batch whose plan has these items, which are those of its order.

    `seconds` are how long each takes likely; without them all take equally long.
    """
    items = {id_: item for item, id_ in enumerate(ids)}
    needs: list[list[Need]] = [[] for _ in ids]
    for edge in work.edges:
        needs[items[edge.task]].append(Need(items[edge.on], edge.kind == "needs"))
    policies = tuple(map(work.policy, ids))
    usual = _demand(NO_POLICY)
    slots = 1 if work.strategy == "serial" else work.max_parallel
    rank = {id_: place for place, id_ in enumerate(work.order)}
    return CommandPlan(
        ids=tuple(ids),
        needs=tuple(map(tuple, needs)),
        policies=policies,
        demands=tuple(usual if policy is NO_POLICY else _demand(policy) for policy in policies),
        ranks=tuple(map(rank.__getitem__, ids)),
        seconds=() if work.strategy == "serial" else tuple(seconds or [1.0] * len(ids)),
        capacity={**work.pools, SLOTS: slots},
        on_failure=work.on_failure,
        failures_max=work.failures_max,
        batch=batch,
        start_every_seconds=work.start_every_seconds,
        waits_for_answers=work.on_blocked == "wait",
        consults=work.answering is not None,
        timeout_seconds=work.timeout_seconds,
        halts=work.halt == "now",
    )


def _demand(policy: Policy) -> Demand:
    return ((SLOTS, ALL if policy.exclusive else 1), *sorted(policy.pools.items()))


def _behind(needs: Sequence[Sequence[Need]], seconds: Sequence[float]) -> list[int]:
    """Of each item how long the longest path is that begins with it, in ms: what list scheduling starts first.

    From the ends of the graph upwards (Kahn 1962). What is on a circle, which no work file makes, has none.
    """
    users = [0] * len(needs)
    for each in needs:
        for need in each:
            users[need.item] += 1
    behind = [0] * len(needs)
    free = [item for item, count in enumerate(users) if not count]
    while free:
        item = free.pop()
        behind[item] += round(1000 * seconds[item])
        for need in needs[item]:
            behind[need.item] = max(behind[need.item], behind[item])
            users[need.item] -= 1
            if not users[need.item]:
                free.append(need.item)
    return behind
