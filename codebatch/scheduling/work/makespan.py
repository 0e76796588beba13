"""Simulation of a schedule with given durations, by the same list scheduling as in the conductor.

Rules (conductor.py): among the items that may start, the one with the smallest key starts first. If the tokens of an
item are not free, its pools are reserved against later items. Two starts are at least `start_every_seconds` apart.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from codebatch.scheduling.work.command_plan import SLOTS_POOL, CommandPlan, TokenDemand

_QueueHead = tuple[tuple[int, int, int], int]
"""The sort key of an item (CommandPlan.keys), and the item."""


_NO_SLOT = -1


class ScheduledItem(NamedTuple):
    """An item in a schedule: its start and end in seconds from the start of the schedule, and its slot."""

    item: int
    start: float
    end: float
    slot: int


def schedule_items(
    agenda: CommandPlan,
    lengths: Mapping[int, float],
    running: Collection[int] = (),
    capacity: Mapping[str, int] | None = None,
    delays: Mapping[int, float] | None = None,
) -> list[ScheduledItem]:
    """Return the schedule of items, in the order of their starts.

    `lengths` maps items to their durations in seconds. An item that is not in `lengths` has ended or never starts, and
    no other item waits for it. The `running` items start at 0, even if they exceed the capacity. `capacity` replaces
    the pools of the plan. An item in `delays` does not start before this time in seconds.
    """
    capacity = agenda.capacity if capacity is None else capacity
    users, unmet = _dependency_links(agenda, lengths)
    ends: list[tuple[float, int, int]] = []
    _add_delays(delays or {}, unmet, ends)
    ready: dict[TokenDemand, list[_QueueHead]] = {}
    _add_ready(agenda, ready, [item for item, count in unmet.items() if not count and item not in running])
    placed: list[ScheduledItem] = []
    room = dict(capacity)
    slots = list(range(max(capacity[SLOTS_POOL], len(running))))
    now = next_start = 0.0
    for item in sorted(running):
        for pool, amount in agenda.demands[item]:
            room[pool] -= min(amount, capacity[pool])
        _place_item(placed, ends, slots, item, 0.0, max(0.0, lengths[item]))
    while ready or ends:
        for item in _pop_startable(agenda, ready, room, capacity) if now >= next_start else ():
            _place_item(placed, ends, slots, item, now, now + lengths[item])
            next_start = now + agenda.start_every_seconds
        if ready and now < next_start:
            now = min([next_start, *(end for end, _, _ in ends[:1])])
        elif ends:
            now = ends[0][0]
        else:
            break
        while ends and ends[0][0] <= now:
            _, item, slot = heapq.heappop(ends)
            ends_delay = slot == _NO_SLOT
            slots = slots if ends_delay else sorted([*slots, slot])
            for pool, amount in () if ends_delay else agenda.demands[item]:
                room[pool] += min(amount, capacity[pool])
            for user in [item] if ends_delay else users[item]:
                unmet[user] -= 1
                if not unmet[user] and user not in running:
                    _add_ready(agenda, ready, [user])
    return placed


def _add_delays(delays: Mapping[int, float], unmet: dict[int, int], ends: list[tuple[float, int, int]]) -> None:
    """Add a need to each delayed item, which ends with the delay and holds no slot."""
    for item, seconds in delays.items():
        unmet[item] += 1
        heapq.heappush(ends, (seconds, item, _NO_SLOT))


def _add_ready(agenda: CommandPlan, ready: dict[TokenDemand, list[_QueueHead]], items: Collection[int]) -> None:
    for item in items:
        heapq.heappush(ready.setdefault(agenda.demands[item], []), (agenda.sort_keys[item], item))


def _dependency_links(agenda: CommandPlan, items: Collection[int]) -> tuple[dict[int, list[int]], dict[int, int]]:
    """Return the items that need each item, and for each item the number of its needs.

    Only needs among `items` count.
    """
    users: dict[int, list[int]] = {item: [] for item in items}
    unmet = dict.fromkeys(items, 0)
    for item in items:
        for need in agenda.needs[item]:
            if need.item in users:
                users[need.item].append(item)
                unmet[item] += 1
    return users, unmet


def _place_item(
    placed: list[ScheduledItem],
    ends: list[tuple[float, int, int]],
    slots: list[int],
    item: int,
    start: float,
    end: float,
) -> None:
    slot = heapq.heappop(slots)
    placed.append(ScheduledItem(item, start, end, slot))
    heapq.heappush(ends, (end, item, slot))


def estimate_makespan(
    agenda: CommandPlan, seconds: Sequence[float], capacity: Mapping[str, int] | None = None
) -> float:
    """Return the duration of a whole batch in seconds, from the start of the first command to the end of the last."""
    placed = schedule_items(agenda, dict(enumerate(seconds)), capacity=capacity)
    return max((one.end for one in placed), default=0.0)


def _pop_startable(
    agenda: CommandPlan, ready: dict[TokenDemand, list[_QueueHead]], free: dict[str, int], capacity: Mapping[str, int]
) -> list[int]:
    """Remove the items that start now from `ready` and return them. Take their tokens from `free`.

    As in the queue of the conductor, items that take the same tokens are in one heap. If the tokens of a heap's first
    item are not free, the whole heap is skipped.
    """
    started: list[int] = []
    reserved_pools: set[str] = set()
    heads = [(heap[0], demand) for demand, heap in ready.items()]
    heapq.heapify(heads)
    while heads and free[SLOTS_POOL] > 0 and not (started and agenda.start_every_seconds):
        (_, item), demand = heads[0]
        slots, *pools = [(pool, min(amount, capacity[pool])) for pool, amount in demand]
        if slots[1] > free[SLOTS_POOL]:
            break
        if any(pool in reserved_pools or free[pool] < amount for pool, amount in pools):
            reserved_pools.update(pool for pool, _ in pools)
            heapq.heappop(heads)
            continue
        for pool, amount in (slots, *pools):
            free[pool] -= amount
        started.append(item)
        heapq.heappop(ready[demand])
        if ready[demand]:
            heapq.heapreplace(heads, (ready[demand][0], demand))
        else:
            heapq.heappop(heads)
            del ready[demand]
    return started


def critical_path(agenda: CommandPlan, seconds: Sequence[float]) -> list[int]:
    """Return the items of the longest path through the dependency graph, from the first to the last command.

    The length of this path is a lower bound of the duration for any number of slots. The graph must be acyclic.
    """
    users, waits = _dependency_links(agenda, range(len(agenda.needs)))
    ends = [0.0] * len(waits)
    before: list[int | None] = [None] * len(waits)
    pending = [item for item, count in waits.items() if not count]
    for item in pending:  # The list grows while needs are met.
        ends[item] += seconds[item]
        for user in users[item]:
            if ends[item] > ends[user] or before[user] is None:
                ends[user], before[user] = ends[item], item
            waits[user] -= 1
            if not waits[user]:
                pending.append(user)
    last = max(range(len(ends)), key=lambda item: (ends[item], -item), default=None)
    path: list[int] = []
    while last is not None:
        path.append(last)
        last = before[last]
    return path[::-1]
