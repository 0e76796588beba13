"""Partial parsing of Python: only the function or top-level statement that contains a range of bytes is parsed.

When ruff has finished, the tree of the file was already released. Filters need only the nodes around a finding. In a
partial tree, these nodes are the same. A few lines are parsed much faster than the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tree_sitter import Node, Range, Tree

from codebatch_workers.lint.python.injected_names import enclosing_nodes
from codebatch_workers.syntax.language.languages import load_parser
from codebatch_workers.syntax.source import SourceFile

_EnclosingLinesFinder = Callable[[SourceFile, int, int], "tuple[int, int] | None"]

_PARSED_LINES_MAX = 1_000
"""The maximum number of lines that are parsed separately.

If a function or statement is longer, the whole file is parsed.
"""
_PIECE_REQUESTS_MAX = 100
"""The maximum number of partial trees that are requested for one file. After that, the whole file is parsed."""
_STATEMENT_START = re.compile(rb"(?!(?:elif|else|except|finally)\b)[A-Za-z_@]")
"""A pattern for the first characters of a line that begins a statement, without the line's indentation.

Lines within brackets or strings can match, too.
"""
_FUNCTION_START = re.compile(rb"(?:async[ \t]+)?def\b")
_BLANKS_PATTERN = re.compile(rb"[ \t\f]*")


def node_in_function(file: SourceFile, start: int, end: int) -> Node | None:
    """Return the smallest node that spans the bytes [start, end), in a tree of the enclosing function only, or None.

    The function is the innermost one around the first line, or an outer one. Up to this function, the node's ancestors
    are the same as in the tree of the file.
    """
    node = _node_in_piece(file, _function_lines, start, end)
    # The parsed lines can include a comment after the function. A node in this comment is not in the function.
    return (
        node
        if node is not None and any(ancestor.type == "function_definition" for ancestor in enclosing_nodes(node))
        else None
    )


def node_in_statement(file: SourceFile, start: int, end: int) -> Node | None:
    """Return the smallest node that spans the bytes [start, end), in a tree of their top-level statement only.

    Return None if the tree of the whole file is needed.
    """
    return _node_in_piece(file, _statement_lines, start, end)


def _node_in_piece(file: SourceFile, lines_around: _EnclosingLinesFinder, start: int, end: int) -> Node | None:
    if "tree" in vars(file) or b"\r" in file.utf8:
        return None
    parts = file.derived(_ParsedPieces)
    parts.requests += 1
    if parts.requests > _PIECE_REQUESTS_MAX:
        return None
    span = lines_around(file, file.line(start), file.line(max(start, end - 1)))
    if span is None:
        return None
    if span not in parts.trees:
        parts.trees[span] = _parse_lines(file, *span)
    tree = parts.trees[span]
    return None if tree.root_node.has_error else tree.root_node.descendant_for_byte_range(start, end)


class _ParsedPieces:
    """The partial trees of a file by their first and last line, and the number of times that one was requested."""

    def __init__(self, _file: SourceFile) -> None:
        self.trees: dict[tuple[int, int], Tree] = {}
        self.requests = 0


def _function_lines(file: SourceFile, first: int, last: int) -> tuple[int, int] | None:
    """Return the first and last line, from 1, of a function that contains the lines `first` to `last`.

    Return None if the function cannot be found with certainty.
    """
    utf8, starts = file.utf8, file.line_starts
    depth: int | None = None
    for line in range(first, max(first - _PARSED_LINES_MAX, 0), -1):
        begin = _BLANKS_PATTERN.match(utf8, starts[line - 1])
        assert begin is not None
        if utf8[begin.end() : begin.end() + 1] in (b"", b"\n", b"#"):
            continue
        width = begin.end() - begin.start()
        is_outside = depth is None or width < depth
        if is_outside and _FUNCTION_START.match(utf8, begin.end()):
            return _with_continuation(file, line, last, width)
        depth = width if depth is None else min(depth, width)
    return None


def _statement_lines(file: SourceFile, first: int, last: int) -> tuple[int, int] | None:
    """Return the first and last line, from 1, of the top-level statement that contains the lines `first` to `last`.

    Return None if the statement cannot be found with certainty.
    """
    first_min = max(first - _PARSED_LINES_MAX, 1)
    while first > first_min and not _STATEMENT_START.match(file.utf8, file.line_starts[first - 1]):
        first -= 1
    return _with_continuation(file, first, last, 0)


def _with_continuation(file: SourceFile, first: int, last: int, width: int) -> tuple[int, int] | None:
    """Extend a range of lines up to the next line that begins a statement and is indented by at most `width`.

    Return None if the range is too long, or may begin within a string.
    """
    utf8, starts = file.utf8, file.line_starts
    while last < len(starts) and last - first <= _PARSED_LINES_MAX and not _begins_statement(utf8, starts[last], width):
        last += 1
    begin = starts[first - 1]
    is_in_text = any(utf8.count(quotes, 0, begin) % 2 for quotes in (b'"""', b"'''"))
    is_long = last - first >= min(_PARSED_LINES_MAX, len(starts) // 2)
    return None if is_long or is_in_text or utf8.endswith(b"\\\n", 0, begin) else (first, last)


def _begins_statement(utf8: bytes, start: int, width: int) -> bool:
    blanks = _BLANKS_PATTERN.match(utf8, start, start + width)
    return blanks is not None and _STATEMENT_START.match(utf8, blanks.end()) is not None


def _parse_lines(file: SourceFile, first: int, last: int) -> Tree:
    starts = file.line_starts
    end = starts[last] if last < len(starts) else len(file.utf8)
    parser = load_parser(file.language)
    parser.included_ranges = [Range((first - 1, 0), (last, 0), starts[first - 1], end)]
    try:
        return parser.parse(file.utf8)
    finally:
        parser.included_ranges = []
