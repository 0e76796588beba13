"""The tree of a text from that of nearly the same text: only the lines that differ are parsed anew.

tree-sitter's own way (its manual, "Editing"): the old tree is told what has changed, and what has not is taken over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Parser, Tree


def reparse(parser: Parser, tree: Tree, before: bytes, after: bytes) -> Tree:
    """The tree of `after`, where `tree`, which stays as it is, is that of `before`.

    Where their lines do not end at the same offsets, all is parsed anew.
    """
    lines, others = before.split(b"\n"), after.split(b"\n")
    if list(map(len, lines)) != list(map(len, others)):
        return parser.parse(after)
    old = tree.copy()
    start = 0
    for row, (line, other) in enumerate(zip(lines, others, strict=True)):
        end = start + len(line)
        if line != other:
            old.edit(start, end, end, (row, 0), (row, len(line)), (row, len(line)))
        start = end + 1
    return parser.parse(after, old)
