"""The grouping of code that a rewrite puts into other code.

If `$X` of the new code `$X.size` stands for `a + b`, the parser reads `a + b.size` as `a + (b.size)`. So the code of
`$X` is not a node of the new tree. Then parentheses keep the code together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tree_sitter import Node

from codebatch_workers.syntax.patterns.edits import Edit, Part, length_of, new_starts, root_of
from codebatch_workers.syntax.source import SourceFile

LANGUAGES_WITH_PARENTHESES = frozenset(
    {
        "c",
        "cpp",
        "csharp",
        "go",
        "hcl",
        "java",
        "javascript",
        "kotlin",
        "lua",
        "php",
        "python",
        "ruby",
        "rust",
        "scala",
        "sql",
        "swift",
        "tsx",
        "typescript",
    }
)
"""The languages in which parentheses group an expression."""
_NOT_PARENTHESIZED = re.compile(r"argument|pair|spread|splat|unpack")
"""The types of nodes that are not expressions: `key=value` and `*values` of a call."""
_OPERATION = re.compile(
    r"as_expression|await|binary|boolean|cast|clone|comparison|conditional|creation|infix|lambda|new_|not_|operator|ternary|unary"
)
"""The types of expressions that often need parentheses."""
BARE_LISTS = frozenset(
    {"argument_list", "comma_expression", "expression_list", "right_assignment_list", "sequence_expression"}
)
"""The types of nodes that are lists of expressions, also without brackets."""
_SEPARATORS = frozenset({",", ";"})
_TOKEN_TREE = "token_tree"  # noqa: S105 - A node of Rust: the argument of a macro, which has no inner structure.


def is_grouped(root: Node, start: int, end: int) -> bool:
    """Return whether the code in [start, end) is a node, a list of nodes, or in a token such as a string."""
    node = root.descendant_for_byte_range(start, end)
    if node is None or (node.start_byte, node.end_byte) == (start, end):
        return True
    inner = [child for child in node.children if child.start_byte < end and child.end_byte > start]
    if not inner:
        return True
    if inner[0].start_byte != start or inner[-1].end_byte != end:
        return False
    return node.type == _TOKEN_TREE or all(_can_be_in_list(child) for child in inner)


def _can_be_in_list(node: Node) -> bool:
    return node.is_named or node.type.strip() in _SEPARATORS or node.type.isspace()


def group_captures(file: SourceFile, plain: SourceFile, edits: Sequence[Edit]) -> list[Edit | None]:
    """Return edits with parentheses around copied nodes that are not nodes of the new tree. None if it cannot be.

    `plain` is the file after the edits.
    """
    has_parentheses = file.language in LANGUAGES_WITH_PARENTHESES
    root = root_of(plain)
    grouped: list[Edit | None] = []
    for edit, start in zip(edits, new_starts(edits), strict=True):
        parts: list[Part] = []
        place = start
        is_possible = True
        for part in edit.parts:
            end = place + length_of([part])
            node = None if isinstance(part, str) else _node_at(file, part)
            if node is None or is_grouped(root, place, end):
                parts.append(part)
            else:
                parts += ("(", part, ")")
                is_possible = is_possible and has_parentheses and not _NOT_PARENTHESIZED.search(node.type)
            place = end
        grouped.append(edit._replace(parts=parts) if is_possible else None)
    return grouped


def group_whole(edit: Edit) -> Edit:
    """Return an edit with parentheses around the new code."""
    return edit._replace(parts=["(", *edit.parts, ")"])


def is_one_expression(root: Node, start: int, end: int) -> bool:
    """Return whether the code in [start, end) is one expression in parentheses, not a list or several statements."""
    node = root.descendant_for_byte_range(start, end)
    if node is None or (node.start_byte, node.end_byte) != (start, end):
        return False
    opening, *inner, closing = node.children
    types = [child.type for child in inner if not child.is_extra]
    return (opening.type, closing.type) == ("(", ")") and len(types) == 1 and types[0] not in BARE_LISTS


def group_operations(file: SourceFile, edit: Edit) -> Edit:
    """Return an edit with parentheses around all copied expressions that have an operator."""
    parts: list[Part] = []
    for part in edit.parts:
        node = None if isinstance(part, str) else _node_at(file, part)
        is_operation = node is not None and _OPERATION.search(node.type)
        parts += ("(", part, ")") if is_operation else (part,)
    return edit._replace(parts=parts)


def _node_at(file: SourceFile, span: tuple[int, int]) -> Node | None:
    """Return the node that is exactly in a range of a file, or None."""
    node = root_of(file).descendant_for_byte_range(*span)
    return (
        node
        if node is not None and node.end_byte > node.start_byte and (node.start_byte, node.end_byte) == span
        else None
    )
