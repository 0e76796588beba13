"""The grouping of code that a rewrite puts into other code.

If `$X` of the new code `$X.size` stands for `a + b`, the parser reads `a + b.size` as `a + (b.size)`. So the code of
`$X` is not a node of the new tree. Then parentheses keep the code together. If they cannot, the edit is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tree_sitter import Node

from codebatch_workers.syntax.patterns.edits import Edit, Part, apply_edits, length_of, new_starts, root_of
from codebatch_workers.syntax.source import SourceFile

LANGUAGES_WITH_PARENTHESES = frozenset(
    {
        "c",
        "cpp",
        "csharp",
        "go",
        "java",
        "javascript",
        "kotlin",
        "lua",
        "php",
        "python",
        "ruby",
        "rust",
        "scala",
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
_TRIED_ALONE_MAX = 100
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


def edit_file(file: SourceFile, edits: Sequence[Edit]) -> tuple[SourceFile, list[Edit]]:
    """Return the file after some edits, with parentheses around code that would be grouped otherwise.

    Also return the edits that are left out, because parentheses are not possible. If the file would have new syntax
    errors with and without parentheses, the edits are made without, and the gate `parse` will refuse the change.
    Raises ValueError like `apply_edits`.
    """
    plain = apply_edits(file, edits)
    if file.language not in LANGUAGES_WITH_PARENTHESES:
        return plain, []
    kept = _group_all(file, plain, edits)
    changed = _apply_kept(file, plain, edits, kept)
    if _has_new_errors(file, changed):
        kept = [_repair_edit(file, edit, grouped, len(edits)) for edit, grouped in zip(edits, kept, strict=True)]
        changed = _apply_kept(file, plain, edits, kept)
    if _has_new_errors(file, changed):
        return plain, []
    return changed, [edit for edit, other in zip(edits, kept, strict=True) if other is None]


def _apply_kept(file: SourceFile, plain: SourceFile, edits: Sequence[Edit], kept: Sequence[Edit | None]) -> SourceFile:
    """Return the file after the edits in `kept` that are not None. `plain` is the file after `edits`."""
    return plain if kept == edits else apply_edits(file, [edit for edit in kept if edit is not None])


def _group_all(file: SourceFile, plain: SourceFile, edits: Sequence[Edit]) -> list[Edit | None]:
    """Return each edit with the parentheses that it needs, or None if it cannot have them."""
    grouped = _group_captures(file, plain, edits)
    changed = _apply_kept(file, plain, edits, grouped)
    whole = iter(_group_edits(changed, [edit for edit in grouped if edit is not None]))
    return [edit and next(whole) for edit in grouped]


def _has_new_errors(file: SourceFile, changed: SourceFile) -> bool:
    return changed.has_syntax_error and not file.has_syntax_error


def _repair_edit(file: SourceFile, edit: Edit, grouped: Edit | None, count: int) -> Edit | None:
    """Return an edit in the form that alone makes no syntax error.

    If there is none, return `edit`, so that the file is refused. Return None if only the parentheses are an error.
    """
    if grouped is None or count > _TRIED_ALONE_MAX:
        return edit if grouped == edit else None
    for candidate in (grouped, _group_operations(file, edit)):
        if not _has_new_errors(file, apply_edits(file, [candidate])):
            return candidate
    return edit if _has_new_errors(file, apply_edits(file, [edit])) else None


def _group_captures(file: SourceFile, plain: SourceFile, edits: Sequence[Edit]) -> list[Edit | None]:
    """Return edits with parentheses around copied nodes that are not nodes of the new tree. None if it cannot be."""
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
                is_possible = is_possible and not _NOT_PARENTHESIZED.search(node.type)
            place = end
        grouped.append(edit._replace(parts=parts) if is_possible else None)
    return grouped


def _group_edits(changed: SourceFile, edits: Sequence[Edit]) -> list[Edit]:
    """Return edits with parentheses around new code that is not a node of the changed file."""
    root = root_of(changed)
    grouped: list[Edit] = []
    for edit, start in zip(edits, new_starts(edits), strict=True):
        length = length_of(edit.parts)
        is_whole = not length or is_grouped(root, start, start + length)
        grouped.append(edit if is_whole else edit._replace(parts=["(", *edit.parts, ")"]))
    return grouped


def _group_operations(file: SourceFile, edit: Edit) -> Edit:
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
