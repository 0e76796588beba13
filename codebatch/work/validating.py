"""What tasks say of one another: what they need, and what they take of pools."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from codebatch.model.command import CommandId
from codebatch.model.graph import components
from codebatch.model.likeness import closest
from codebatch.model.work import COMMANDS_MAX, EdgeKind, WorkEdge
from codebatch.work.defining import Task
from codebatch.work.problems import Problems

_SHOWN_MAX = 20
_LIKE_MAX = 2_000
_STEPS_MAX = 200_000
"""Edges that are followed in the search for the shortest circle of those that meet."""


def check_ids(tasks: Sequence[Task], problems: Problems) -> None:
    """Tell which ids two tasks have, and which differ in case alone: some file systems know no case."""
    seen: dict[str, Task] = {}
    for task in tasks:
        other = seen.setdefault(task.id.lower(), task)
        if other is task:
            continue
        if other.id == task.id:
            told = f"{task.id!r} is defined twice, in {other.place} and in {task.place}"
            problems.add(told, "give one of them another id")
        else:
            told = f"{other.place} and {task.place} have ids that differ in case only"
            problems.add(told, "logs are named by them, and not all file systems tell those apart")
    if len(tasks) > COMMANDS_MAX:
        problems.add(f"there are {len(tasks):,} tasks, and may be {COMMANDS_MAX:,}", "make several batches of them")


def check_pools(tasks: Iterable[Task], pools: Mapping[str, int], problems: Problems) -> None:
    """Tell which tasks take more of a pool than there is."""
    for task in tasks:
        for pool, amount in task.pools.items():
            told = f"{task.place.file}: {task.id!r} takes"
            if pool not in pools:
                meant = closest(pool, pools)
                hint = f"set its size: [pools] {pool} = …" if meant is None else f"did you mean {meant!r}?"
                problems.add(f"{told} of pool {pool!r}, which there is not", hint)
            elif amount > pools[pool]:
                problems.add(f"{told} {amount} of pool {pool!r}, which has {pools[pool]}")


def edges_of(tasks: Sequence[Task], problems: Problems) -> list[WorkEdge]:
    """What waits for what, each pair once, in the order of the files. Who needs another is after it anyway."""
    ids = {task.id for task in tasks}
    edges: list[WorkEdge] = []
    for task in tasks:
        pairs: dict[str, EdgeKind] = {**dict.fromkeys(task.after, "after"), **dict.fromkeys(task.needs, "needs")}
        for on, kind in pairs.items():
            if on in ids:
                edges.append(WorkEdge(task.id, CommandId(on), kind))
                continue
            verb = "needs" if kind == "needs" else "is after"
            told = f"{task.place.file}: {task.id!r} {verb} {on!r}, which there is not"
            problems.add(told, functools.partial(like_id, on, ids))
    return edges


def like_id(word: str, ids: Iterable[str]) -> str | None:
    """A hint at the id that may be meant; of very many, one of about its length that begins as it does."""
    near = [id_ for id_ in ids if id_[:1].lower() == word[:1].lower() and abs(len(id_) - len(word)) <= _SHOWN_MAX]
    meant = closest(word, sorted(near)[:_LIKE_MAX])
    return None if meant is None else f"did you mean {meant!r}?"


def check_circles(edges: Iterable[WorkEdge], problems: Problems) -> None:
    """Tell of tasks that wait for one another: of those that hang together, the shortest circle."""
    graph: dict[CommandId, list[CommandId]] = {}
    for edge in edges:
        graph.setdefault(edge.task, []).append(edge.on)
        graph.setdefault(edge.on, [])
    for component in components(graph):
        first = component[0]
        if len(component) == 1 and first not in graph[first]:
            continue
        circle = _shortest_circle(graph, frozenset(component))
        if len(circle) == 1:
            problems.add(f"the task {first!r} needs itself")
            continue
        shown = [*circle[:_SHOWN_MAX], *([f"… ({len(circle):,} in all)"] if len(circle) > _SHOWN_MAX else [])]
        problems.add(f"the tasks need one another in a circle: {' → '.join((*shown, circle[0]))}")


def _shortest_circle(graph: Mapping[CommandId, Sequence[CommandId]], within: frozenset[CommandId]) -> list[CommandId]:
    """Breadth first from each node, as long as that is bearable: from where the circle begins in the files."""
    best: list[CommandId] = []
    steps = 0
    for start in graph:
        if start not in within:
            continue
        before: dict[CommandId, CommandId] = {}
        pending = deque([(start, 1)])
        while pending:
            node, length = pending.popleft()
            if best and length >= len(best):
                break
            steps += len(graph[node])
            if start in graph[node]:
                best = _path(before, start, node)
                break
            for other in graph[node]:
                if other in within and other not in before:
                    before[other] = node
                    pending.append((other, length + 1))
        if len(best) == 1 or (best and steps > _STEPS_MAX):
            break
    return best


def _path(before: Mapping[CommandId, CommandId], start: CommandId, end: CommandId) -> list[CommandId]:
    path = [end]
    while path[-1] != start:
        path.append(before[path[-1]])
    return path[::-1]
