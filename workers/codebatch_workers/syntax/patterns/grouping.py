"""The grouping of code that a rewrite puts into other code.

If `$X` of the new code `$X.size` stands for `a + b`, the parser reads `a + b.size` as `a + (b.size)`. So the code of
`$X` is not a node of the new tree. Then parentheses keep the code together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from tree_sitter import Node

from codebatch_workers.syntax.patterns.edits import Edit, Part, Span, length_of, new_spans, root_of
from codebatch_workers.syntax.patterns.language_patterns import LanguagePatterns
from codebatch_workers.syntax.patterns.operands import is_operation, needs_parentheses, needs_parentheses_at_start
from codebatch_workers.syntax.source import SourceFile

_NOT_PARENTHESIZED = re.compile(r"argument|pair|spread|splat|unpack")
"""The types of nodes that are not expressions: `key=value` and `*values` of a call."""
BARE_LISTS = frozenset(
    {"argument_list", "comma_expression", "expression_list", "right_assignment_list", "sequence_expression"}
)
"""The types of nodes that are lists of expressions, also without brackets."""
GROUPED_KINDS = ("expression", "unknown")
"""The kinds of new code around which parentheses may be put."""
_SEPARATORS = frozenset({",", ";"})
_TOKEN_TREE = "token_tree"  # noqa: S105 - A node of Rust: the argument of a macro, which has no inner structure.

_TEXT = re.compile(r"char|comment|content|heredoc|quote|regex|string|text")
"""The types of tokens that are text, not code."""


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
    if any(one.end_byte == two.start_byte and one.is_named and two.is_named for one, two in pairwise(inner)):
        return False  # `new $X` with `a()`, which becomes `new a()`.
    return node.type == _TOKEN_TREE or all(_can_be_in_list(child) for child in inner)


def _can_be_in_list(node: Node) -> bool:
    return node.is_named or node.type.strip() in _SEPARATORS or node.type.isspace()


def group_captures(file: SourceFile, plain: SourceFile, edits: Sequence[Edit]) -> list[Edit | None]:
    """Return edits with parentheses around code that would be read differently without. None if it cannot be.

    This is copied code that is not a node of the new tree, and code that becomes an operand (operands.py). `plain` is
    the file after the edits.
    """
    has_parentheses = LanguagePatterns.of(file.language).has_parentheses
    root = root_of(plain)
    grouped: list[Edit | None] = []
    for edit, (start, last) in zip(edits, new_spans(edits), strict=True):
        parts: list[Part] = []
        place = start
        is_possible = True
        for part in edit.parts:
            end = place + length_of([part])
            node = None if isinstance(part, str) else _node_at(file, part)
            if node is None or (is_grouped(root, place, end) and not _is_operand(plain, place, end, node.type)):
                parts.append(part)
            else:
                parts += ("(", part, ")")
                is_possible = is_possible and has_parentheses and not _NOT_PARENTHESIZED.search(node.type)
            place = end
        form = edit._replace(parts=parts)
        if edit.kind in GROUPED_KINDS and form == edit:
            replaced = root_of(file).descendant_for_byte_range(edit.start, edit.end)
            code = plain.utf8[start:last]
            if _is_operand(plain, start, last) or (
                replaced is not None and needs_parentheses_at_start(replaced, code, file.language)
            ):
                form = group_whole(edit)
        grouped.append(form if is_possible else None)
    return grouped


def _is_operand(file: SourceFile, start: int, end: int, node_type: str = "") -> bool:
    """Return whether code needs parentheses in its place. `node_type` was its type before it was copied."""
    node = _node_at(file, (start, end))
    if node is None:
        return False
    # In JavaScript, the body of `() => {}` is not an object.
    is_body = node_type == "object" and node.parent is not None and node.parent.type == "arrow_function"
    return is_body or needs_parentheses(node, file.language)


def is_read_alike(file: SourceFile, old: Span, changed: SourceFile, new: Span) -> bool:
    """Return whether code of a file is read as the same tokens in another file, or as a part of one literal there."""
    tokens, others = (_tokens_in(each, *span) for each, span in ((file, old), (changed, new)))
    if len(others) == 1 and others[0].is_text and others[0].start <= 0 and others[0].end >= new[1] - new[0]:
        return True
    if LanguagePatterns.of(file.language).has_words:
        return [token[:2] for token in tokens] == [token[:2] for token in others]
    return tokens == others


class _Token(NamedTuple):
    """A token: its offsets relative to a range, and whether it is text, not code."""

    start: int
    end: int
    is_text: bool


def _tokens_in(file: SourceFile, start: int, end: int) -> list[_Token]:
    """Return the tokens that overlap a range of a file."""
    tokens: list[_Token] = []
    pending = [root_of(file).descendant_for_byte_range(start, end)]
    while pending:
        node = pending.pop()
        if node is None or node.start_byte >= end or node.end_byte <= start:
            continue
        if node.children and node.type != _TOKEN_TREE:
            pending += reversed(node.children)
        else:
            is_text = node.type == _TOKEN_TREE or _TEXT.search(node.type) is not None
            tokens.append(_Token(node.start_byte - start, node.end_byte - start, is_text))
    return tokens


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
        parts += ("(", part, ")") if node is not None and is_operation(node) else (part,)
    return edit._replace(parts=parts)


def _node_at(file: SourceFile, span: tuple[int, int]) -> Node | None:
    """Return the node that is exactly in a range of a file, or None."""
    node = root_of(file).descendant_for_byte_range(*span)
    return (
        node
        if node is not None and node.end_byte > node.start_byte and (node.start_byte, node.end_byte) == span
        else None
    )
