"""Strongly connected components of a directed graph (Tarjan 1972), without recursion."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def can_close_cycle(source: str, *, type_only: bool, deferred: bool) -> bool:
    """Return whether an import of the file `source` counts for cycles: only if loading the file executes it.

    The modules of a Rust crate are compiled as one and name each other freely, and Cargo refuses cycles of crates.
    """
    return not (type_only or deferred or source.endswith(".rs"))


def components(graph: Mapping[Node, Sequence[Node]]) -> Iterator[list[Node]]:
    """The sets of nodes that lead to one another, what they lead to first; every node is in one.

    `graph` has the nodes that each node leads to; every one of these must be a key too.
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
            for other in following:
                if other not in order:
                    order[other] = lowest[other] = len(order)
                    path.append(other)
                    is_on_path.add(other)
                    pending.append((other, iter(graph[other])))
                    break
                if other in is_on_path:
                    lowest[node] = min(lowest[node], order[other])
            else:
                pending.pop()
                if pending:
                    before = pending[-1][0]
                    lowest[before] = min(lowest[before], lowest[node])
                if lowest[node] == order[node]:
                    component = [path.pop()]
                    while component[-1] != node:
                        component.append(path.pop())
                    is_on_path.difference_update(component)
                    yield component
