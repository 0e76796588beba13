"""Nodes around a node of a syntax tree."""

from __future__ import annotations

from collections.abc import Container, Iterator

from tree_sitter import Node


def ancestors(node: Node) -> Iterator[Node]:
    """Yield the nodes around a node, the innermost first."""
    above = node.parent
    while above is not None:
        yield above
        above = above.parent


def innermost(node: Node | None, types: Container[str]) -> Node | None:
    """Return the node itself or the innermost one around it that has one of some types, or None."""
    while node is not None and node.type not in types:
        node = node.parent
    return node


def is_field(parent: Node, field: str, node: Node) -> bool:
    """Return whether a node is in a field of its parent."""
    return parent.child_by_field_name(field) == node
