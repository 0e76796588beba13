"""The commands of a work batch as items in plan order, with their needs, policies and pools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

import msgspec

from codebatch.model.work.command import CommandId
from codebatch.model.work.limits import NO_LIMITS, WorkLimits
from codebatch.model.work.request import Add
from codebatch.model.work.work_batch import DEFAULT_POLICY, FailureAction, TaskPolicy, TaskSuccess, Work

Length = TypeVar("Length", int, float)

WHOLE_POOL = 1 << 62
"""A demand for all tokens of a pool, whatever its capacity."""

SLOTS_POOL = ""
"""The name of the pool of slots.

Every command takes a slot while it runs. Pools of users have other names, never empty.
"""

TokenDemand = tuple[tuple[str, int], ...]
"""The tokens that a command takes while it runs, as (pool, number): slots first, then the other pools by name."""


class CommandNeed(NamedTuple):
    """A need of a command: the item that must have ended, and whether the item must have succeeded."""

    item: int
    must_succeed: bool


class CommandPlan(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The commands of a work batch by item. An item is the index of a command in the plan.

    The lists by item only grow, when a request adds commands.

    - `ranks`: the positions of the commands in the task list.
    - `seconds`: the estimated durations. Empty if the order of starts does not depend on them.
    - `capacity`: the number of tokens of each pool.
    - `batch`: the ID of the batch, from which the jitter of waiting times is derived.
    - `start_every_seconds`: the minimum time between two starts.
    - `waits_for_answers`: the coordinator keeps running while an answer could open a command.
    - `has_answering_policy`: rules or a program try to answer questions before people are asked.
    - `timeout_seconds`: the time limit of one coordinator.
    - `halts_on_failure`: if a failure stops the batch, running commands are terminated.
    - `limits`: caps, a deadline and hours of the batch.
    - `successes`: the last successes of tasks in earlier batches, also of tasks that are not in the batch.
    """

    ids: list[CommandId]
    needs: list[tuple[CommandNeed, ...]]
    policies: list[TaskPolicy]
    demands: list[TokenDemand]
    ranks: list[int]
    seconds: list[float]
    capacity: dict[str, int]
    on_failure: FailureAction
    failures_max: int
    batch: str = ""
    start_every_seconds: float = 0.0
    waits_for_answers: bool = False
    has_answering_policy: bool = False
    timeout_seconds: float | None = None
    halts_on_failure: bool = False
    limits: WorkLimits = NO_LIMITS
    successes: Mapping[CommandId, TaskSuccess] = {}

    @cached_property
    def items_by_id(self) -> dict[CommandId, int]:
        """The item of each command."""
        return {id_: item for item, id_ in enumerate(self.ids)}

    @cached_property
    def sort_keys(self) -> tuple[tuple[int, int, int], ...]:
        """The sort key of each command. Among commands that may start, the one with the smallest key starts first.

        The keys are computed on first use, because a process that only displays the batch does not need them.
        """
        lengths_ms = {item: round(1000 * seconds) for item, seconds in enumerate(self.seconds)}
        path_lengths = longest_paths(self.needs, lengths_ms) if lengths_ms else [0] * len(self.ids)
        return tuple(
            (-policy.priority, -path_lengths[item], self.ranks[item]) for item, policy in enumerate(self.policies)
        )

    def add(self, add: Add) -> list[int]:
        """Add the commands of a request, and return their items. The mean duration is expected of each."""
        items = {id_: item for item, id_ in enumerate((*self.ids, *(command.id for command in add.commands)))}
        needs: dict[CommandId, list[CommandNeed]] = {command.id: [] for command in add.commands}
        for edge in add.edges:
            needs[edge.task].append(CommandNeed(items[edge.on], edge.kind == "needs"))
        policies = [add.policies.get(id_, DEFAULT_POLICY) for id_ in needs]
        new = list(range(len(self.ids), len(items)))
        if self.seconds:
            mean = sum(self.seconds) / len(self.seconds)
            self.seconds.extend(policy.expected_seconds or mean for policy in policies)
        self.ids.extend(needs)
        self.needs.extend(map(tuple, needs.values()))
        self.policies.extend(policies)
        self.demands.extend(map(_token_demand, policies))
        self.ranks.extend(new)
        for cached in ("sort_keys", "items_by_id"):
            self.__dict__.pop(cached, None)
        return new


def make_command_plan(
    work: Work, ids: Sequence[CommandId], batch: str = "", seconds: Sequence[float] = ()
) -> CommandPlan:
    """Return the command plan of a work batch. `ids` are the IDs of its commands in item order.

    `seconds` are the estimated durations in item order. If there are none, all commands count as equally long.
    """
    items = {id_: item for item, id_ in enumerate(ids)}
    needs: list[list[CommandNeed]] = [[] for _ in ids]
    for edge in work.edges:
        needs[items[edge.task]].append(CommandNeed(items[edge.on], edge.kind == "needs"))
    policies = list(map(work.task_policy, ids))
    usual = _token_demand(DEFAULT_POLICY)
    slots = 1 if work.strategy == "serial" else work.max_parallel
    rank = {id_: place for place, id_ in enumerate(work.order)}
    return CommandPlan(
        ids=list(ids),
        needs=list(map(tuple, needs)),
        policies=policies,
        demands=[usual if policy is DEFAULT_POLICY else _token_demand(policy) for policy in policies],
        ranks=list(map(rank.__getitem__, ids)),
        seconds=[] if work.strategy == "serial" else list(seconds or [1.0] * len(ids)),
        capacity={**work.pools, SLOTS_POOL: slots},
        on_failure=work.on_failure,
        failures_max=work.failures_max,
        batch=batch,
        start_every_seconds=work.start_every_seconds,
        waits_for_answers=work.on_blocked == "wait",
        has_answering_policy=work.answering is not None,
        timeout_seconds=work.timeout_seconds,
        halts_on_failure=work.halt == "now",
        limits=work.limits_or_none,
        successes=work.successes or {},
    )


def _token_demand(policy: TaskPolicy) -> TokenDemand:
    return ((SLOTS_POOL, WHOLE_POOL if policy.exclusive else 1), *sorted(policy.pools.items()))


def longest_paths(needs: Sequence[Sequence[CommandNeed]], lengths: Mapping[int, Length]) -> dict[int, Length]:
    """Map each item of `lengths` to the length of the longest path that begins at this item.

    A path goes from a command to commands that need it. The length of the first item is included. Paths are computed in
    reverse order, beginning with commands that no command needs (Kahn 1962). A valid task list has no cycles.
    """
    inner_needs = {item: [need.item for need in needs[item] if need.item in lengths] for item in lengths}
    users = Counter(need for item_needs in inner_needs.values() for need in item_needs)
    paths = dict(lengths)
    free = [item for item in lengths if not users[item]]
    while free:
        item = free.pop()
        for need in inner_needs[item]:
            paths[need] = max(paths[need], lengths[need] + paths[item])
            users[need] -= 1
            if not users[need]:
                free.append(need)
    return paths
