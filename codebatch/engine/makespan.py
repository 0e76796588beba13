"""How long an agenda takes, were every command as long as it is said to be: list scheduling, as the conductor does it.

Rules (engine/conductor.py): of those that may start the least key first; one that does not fit its pools holds them, so
that nobody behind it takes them.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from codebatch.engine.agenda import SLOTS, Agenda


class Run(NamedTuple):
    """When each item starts and ends, in seconds from the begin."""

    starts: list[float]
    ends: list[float]

    @property
    def makespan(self) -> float:
        """When the last one has ended."""
        return max(self.ends, default=0.0)


def run_through(agenda: Agenda, seconds: Sequence[float], capacity: Mapping[str, int]) -> Run:
    """Let each item take its seconds. `capacity` is that of the agenda's pools, or another."""
    waits = [len(needs) for needs in agenda.needs]
    users: list[list[int]] = [[] for _ in agenda.needs]
    for item, needs in enumerate(agenda.needs):
        for need in needs:
            users[need.item].append(item)
    starts, ends = [0.0] * len(waits), [0.0] * len(waits)
    free = dict(capacity)
    ready = [(agenda.keys[item], item) for item, count in enumerate(waits) if not count]
    heapq.heapify(ready)
    running: list[tuple[float, int]] = []
    now = 0.0
    while ready or running:
        for item in _started(agenda, ready, free, capacity):
            starts[item], ends[item] = now, now + seconds[item]
            heapq.heappush(running, (ends[item], item))
        now = running[0][0]
        while running and running[0][0] <= now:
            _, item = heapq.heappop(running)
            for pool, amount in agenda.demands[item]:
                free[pool] += min(amount, capacity[pool])
            for user in users[item]:
                waits[user] -= 1
                if not waits[user]:
                    heapq.heappush(ready, (agenda.keys[user], user))
    return Run(starts, ends)


def _started(
    agenda: Agenda, ready: list[tuple[tuple[int, int, int], int]], free: dict[str, int], capacity: Mapping[str, int]
) -> list[int]:
    """Those that start now: taken out of `ready`, and what they take out of `free`."""
    started: list[int] = []
    passed: list[tuple[tuple[int, int, int], int]] = []
    held: set[str] = set()
    while ready and free[SLOTS]:
        key, item = heapq.heappop(ready)
        slots, *pools = [(pool, min(amount, capacity[pool])) for pool, amount in agenda.demands[item]]
        if slots[1] > free[SLOTS]:
            passed.append((key, item))
            break
        if any(pool in held or free[pool] < amount for pool, amount in pools):
            held.update(pool for pool, _ in pools)
            passed.append((key, item))
            continue
        for pool, amount in (slots, *pools):
            free[pool] -= amount
        started.append(item)
    for each in passed:
        heapq.heappush(ready, each)
    return started


def critical_path(agenda: Agenda, seconds: Sequence[float]) -> list[int]:
    """The items of the longest path, in their order: no number of slots is faster than it. Needs no circle."""
    users: list[list[int]] = [[] for _ in agenda.needs]
    waits = [len(needs) for needs in agenda.needs]
    for item, needs in enumerate(agenda.needs):
        for need in needs:
            users[need.item].append(item)
    ends = [0.0] * len(waits)
    before: list[int | None] = [None] * len(waits)
    pending = [item for item, count in enumerate(waits) if not count]
    for item in pending:  # It grows as items are met.
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
