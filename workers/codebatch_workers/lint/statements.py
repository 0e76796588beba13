"""The statement at the top of a Python module in which something is, parsed by itself.

What is around a place is told by it as well as by the tree of the whole file, which is no longer there when ruff has
spoken: that of a statement is made in a tenth of the time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codebatch_workers.syntax.languages import grammar
from codebatch_workers.syntax.source import SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

_LINES_MAX = 1_000
"""What is longer is parsed with all that is around it."""
_BEGINS = re.compile(rb"(?!(?:elif|else|except|finally)\b)[A-Za-z_@]")
"""How a statement begins at the start of a line; between brackets and in texts other things do."""


def node_in_statement(file: SourceFile, start: int, end: int) -> Node | None:
    """The smallest node that spans some bytes, in the tree of their statement; None where that cannot be told alone."""
    if "tree" in vars(file) or b"\r" in file.utf8:
        return None
    span = _lines_of_statement(file, file.line(start), file.line(max(start, end - 1)))
    if span is None:
        return None
    trees = file.derived(_trees)
    if span not in trees:
        trees[span] = _parse(file, *span)
    tree = trees[span]
    return None if tree.root_node.has_error else tree.root_node.descendant_for_byte_range(start, end)


def _trees(_file: SourceFile) -> dict[tuple[int, int], Tree]:
    return {}


def _lines_of_statement(file: SourceFile, first: int, last: int) -> tuple[int, int] | None:
    """Of lines, from 1, the first and the last with what belongs to them; None where the text does not tell these."""
    utf8, starts = file.utf8, file.line_starts
    first_min = max(first - _LINES_MAX, 1)
    while first > first_min and not _BEGINS.match(utf8, starts[first - 1]):
        first -= 1
    while last < len(starts) and last - first <= _LINES_MAX and not _BEGINS.match(utf8, starts[last]):
        last += 1
    begin = starts[first - 1]
    is_in_text = any(utf8.count(quotes, 0, begin) % 2 for quotes in (b'"""', b"'''"))
    is_long = last - first >= min(_LINES_MAX, len(starts) // 2)
    return None if is_long or is_in_text or utf8.endswith(b"\\\n", 0, begin) else (first, last)


def _parse(file: SourceFile, first: int, last: int) -> Tree:
    from tree_sitter import Range

    starts = file.line_starts
    end = starts[last] if last < len(starts) else len(file.utf8)
    parser = grammar(file.language).parser
    parser.included_ranges = [Range((first - 1, 0), (last, 0), starts[first - 1], end)]
    try:
        return parser.parse(file.utf8)
    finally:
        parser.included_ranges = []
