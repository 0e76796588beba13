"""What is wrong in a syntax tree, and how much of it can be looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

# tree-sitter's queries count depth in 16 bits, and take quadratic time beyond; nothing that people write is as deep.
QUERY_DEPTH_MAX = 4_000
# They also take quadratic time over the tokens of one error; a file with such an error is not in its language.
_ERROR_TOKENS_MAX = 10_000


# Where Rust allows any tokens, if brackets are closed and texts end; its grammar knows some.
_MACRO_NODES = frozenset({"token_tree", "token_tree_pattern", "token_repetition", "token_repetition_pattern"})
_MACRO_TOKENS = re.compile(rb"[\w\s$~@#?!.,;:=+*/%^&|<>-]*\Z")
_SCRIPTS = frozenset({"javascript", "typescript", "tsx"})
# Between an operand and what follows it are a few blanks.
_BYTES_BETWEEN = 200


def iter_broken(root: Node, language: str) -> Iterator[Node]:
    """Every error and every missing node, in no order, but for those that a grammar is known to be wrong about.

    Most of a tree is sound: going down only where it is not takes a tenth of the time of a query for them.
    """
    is_script, is_rust = language in _SCRIPTS, language == "rust"
    pending = [(root, 0, False)]
    while pending:
        node, depth, is_in_macro = pending.pop()
        if node.is_missing:
            if not (is_script and node.type == "!" and _ends_an_operand(node, root.text or b"")):
                yield node
        elif node.is_error and not (is_in_macro and _MACRO_TOKENS.match(node.text or b"")):
            yield node
        elif not node.is_error and not node.child_count and node.has_error:
            # A token that is missing may be hidden in the node that it is all of.
            yield node
        if depth < QUERY_DEPTH_MAX and node.child_count:
            is_in_macro = is_in_macro or (is_rust and node.type in _MACRO_NODES)
            # Of itself, a token that is an error does not say that it has one.
            pending += [(child, depth + 1, is_in_macro) for child in node.children if child.has_error or child.is_error]


def _ends_an_operand(node: Node, text: bytes) -> bool:
    """Whether a `!` is missing that nothing needs.

    To the grammar it ends `x<{}>` in `x<{}>`…``, and `[x as y]` in `[x as y] = z`, but `x as y = z` is wrong.
    """
    before = text[max(0, node.start_byte - _BYTES_BETWEEN) : node.start_byte].rstrip()
    behind = text[node.end_byte : node.end_byte + _BYTES_BETWEEN].lstrip()
    return before.endswith((b")", b"]", b"}")) or not behind.startswith(b"=")


def is_hopeless_tree(tree: Tree) -> bool:
    """Whether one error swallows so much that there is nothing to be learnt from a tree."""
    root = tree.root_node
    return any(node.is_error and node.child_count > _ERROR_TOKENS_MAX for node in (root, *root.children))
