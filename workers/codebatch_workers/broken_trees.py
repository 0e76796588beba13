"""What is wrong in a syntax tree, and how much of it can be looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

# tree-sitter's queries count depth in 16 bits, and take quadratic time beyond; nothing that people write is as deep.
QUERY_DEPTH_MAX = 4_000
# They also take quadratic time over the tokens of one error; a file with such an error is not in its language.
_ERROR_TOKENS_MAX = 10_000


def iter_broken(root: Node) -> Iterator[Node]:
    """Every error and every missing node, in no order.

    Most of a tree is sound: going down only where it is not takes a tenth of the time of a query for them.
    """
    pending = [(root, 0)]
    while pending:
        node, depth = pending.pop()
        if node.is_error or node.is_missing:
            yield node
        if depth < QUERY_DEPTH_MAX:
            # Of itself, a token that is an error does not say that it has one.
            pending += [(child, depth + 1) for child in node.children if child.has_error or child.is_error]


def is_hopeless_tree(tree: Tree) -> bool:
    """Whether one error swallows so much that there is nothing to be learnt from a tree."""
    root = tree.root_node
    return any(node.is_error and node.child_count > _ERROR_TOKENS_MAX for node in (root, *root.children))
