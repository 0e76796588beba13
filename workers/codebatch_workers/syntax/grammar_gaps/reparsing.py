"""Incremental parsing of a text, given the tree of a text that differs from it only in some lines.

The method is described in the tree-sitter manual, "Editing". The edits are applied to a copy of the old tree. The
parser then reuses the unchanged parts of this copy.
"""

from __future__ import annotations

from tree_sitter import Parser, Tree


def reparse(parser: Parser, tree: Tree, before: bytes, after: bytes) -> Tree:
    """Return the tree of the text `after`. `tree` is the tree of the text `before`, and stays unchanged.

    If any line has different lengths in the two texts, the whole text is parsed.
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
