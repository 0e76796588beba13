"""Incremental parsing of a text that differs from an already parsed text only in some lines.

The method is that of the tree-sitter manual, "Editing": after edits are applied to a copy of the old tree, the parser
reuses its unchanged parts.
"""

from __future__ import annotations

from tree_sitter import Parser, Tree


def reparse(parser: Parser, tree: Tree, before: bytes, after: bytes) -> Tree:
    """Return the tree of `after`. `tree` is the tree of `before` and stays unchanged.

    If any line differs in length between the two texts, the whole text is parsed.
    """
    old_lines, new_lines = before.split(b"\n"), after.split(b"\n")
    if list(map(len, old_lines)) != list(map(len, new_lines)):
        return parser.parse(after)
    old = tree.copy()
    start = 0
    for row, (old_line, new_line) in enumerate(zip(old_lines, new_lines, strict=True)):
        end = start + len(old_line)
        if old_line != new_line:
            old.edit(start, end, end, (row, 0), (row, len(old_line)), (row, len(old_line)))
        start = end + 1
    return parser.parse(after, old)
