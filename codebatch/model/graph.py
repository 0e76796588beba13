"""Algorithms on directed graphs, without recursion."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def find_reachable(starts: Iterable[Node], successors: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """Return some nodes, then all other nodes that can be reached from them, the nearest first."""
    reached = dict.fromkeys(starts)
    pending = deque(reached)
    while pending:
        new = [node for node in successors(pending.popleft()) if node not in reached]
        reached.update(dict.fromkeys(new))
        pending.extend(new)
    return list(reached)


def strong_components(graph: Mapping[Node, Sequence[Node]]) -> Iterator[list[Node]]:
    """Yield the strongly connected components (Tarjan 1972). Each comes after all that can be reached from it.

    `graph` maps each node to its successors. Every successor must be a key too.
    """
    order: dict[Node, int] = {}
    lowest: dict[Node, int] = {}
    path: list[Node] = []
    is_on_path: set[Node] = set()
    for root in graph:
        if root in order:
            continue
        pending = [(root, iter(graph[root]))]
        order[root] = lowest[root] = len(order)
        path.append(root)
        is_on_path.add(root)
        while pending:
            node, following = pending[-1]
            for successor in following:
                if successor not in order:
                    order[successor] = lowest[successor] = len(order)
                    path.append(successor)
                    is_on_path.add(successor)
                    pending.append((successor, iter(graph[successor])))
                    break
                if successor in is_on_path:
                    lowest[node] = min(lowest[node], order[successor])
            else:
                pending.pop()
                if pending:
                    predecessor = pending[-1][0]
                    lowest[predecessor] = min(lowest[predecessor], lowest[node])
                if lowest[node] == order[node]:
                    component = [path.pop()]
                    while component[-1] != node:
                        component.append(path.pop())
                    is_on_path.difference_update(component)
                    yield component
