"""Syntax errors in a tree, and limits beyond which a tree is useless or too deep for queries."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node, Tree

from codebatch_workers.syntax.language_gaps import LanguageGaps

# Tree-sitter counts depth in 16 bits when it runs a query. Beyond this depth, queries take quadratic time. Code written
# by hand is never so deep.
QUERY_DEPTH_MAX = 4_000
# Each level of nested code has a byte or more. So of code that is too deep, at least _BYTES_PER_PROBE consecutive bytes
# are deeper than _PROBED_DEPTH_MAX.
_PROBED_DEPTH_MAX = QUERY_DEPTH_MAX // 4
_BYTES_PER_PROBE = QUERY_DEPTH_MAX - _PROBED_DEPTH_MAX
# Queries also take quadratic time in the number of tokens within one error. A file with such an error is probably not
# in the assumed language.
_ERROR_TOKENS_MAX = 10_000


def iter_broken_nodes(root: Node, language: str) -> Iterator[Node]:
    """Yield every error and missing node of a tree, in undefined order. Known errors of the grammar are left out.

    Only nodes that contain errors are visited. This takes a tenth of the time of a query.
    """
    gaps = LanguageGaps.of(language)
    is_false_missing, macro_tokens = gaps.is_false_missing, gaps.macro_tokens
    pending = [(root, 0, False)]
    while pending:
        node, depth, is_in_macro = pending.pop()
        if node.is_missing:
            if is_false_missing is None or not is_false_missing(node, root):
                yield node
        elif node.is_error and not (is_in_macro and macro_tokens and macro_tokens.match(node.text or b"")):
            yield node
        elif not node.is_error and not node.child_count and node.has_error:
            # This node consists of nothing but a missing token, which is not among its children.
            yield node
        if depth < QUERY_DEPTH_MAX and node.child_count:
            is_in_macro = is_in_macro or node.type in gaps.macro_nodes
            # If a token is itself an error, its `has_error` is false.
            pending += [(child, depth + 1, is_in_macro) for child in node.children if child.has_error or child.is_error]


def exceeds_query_depth(tree: Tree, size: int) -> bool:
    """Return whether queries may miss nodes of a tree, because these are too deep. `size` is the size of the text.

    Only places at a certain distance are examined.
    """
    for offset in range(_BYTES_PER_PROBE, size, _BYTES_PER_PROBE):
        cursor = tree.walk()
        depth = 0
        while cursor.goto_first_child_for_byte(offset) is not None:
            depth += 1
            if depth > _PROBED_DEPTH_MAX:
                return True
    return False


def is_hopeless_tree(tree: Tree) -> bool:
    """Return whether a single error covers so much of a tree that the rest of the tree is useless."""
    root = tree.root_node
    return any(node.is_error and node.child_count > _ERROR_TOKENS_MAX for node in (root, *root.children))
