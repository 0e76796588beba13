"""Tokens of matched code that a rewrite would lose without a word: comments, and keywords that the pattern lacks.

A pattern also matches code with comments and with unnamed tokens, such as `async`, that the pattern does not mention.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from tree_sitter import Node

from codebatch_workers.syntax.patterns.finders import SyntaxMatch
from codebatch_workers.syntax.patterns.reading import PatternNode

_SEPARATORS = frozenset({",", ";", "", "line_continuation"})
_Span = tuple[int, int]


class PatternTokens(NamedTuple):
    """The number of tokens of each type, and of uses of each metavariable, in a pattern."""

    types: Mapping[str, int]
    names: Mapping[str, int]


def count_tokens(pattern: PatternNode) -> PatternTokens:
    """Return the numbers of tokens and metavariables of a pattern."""
    leaves = [node for node in pattern.iter_nodes() if not node.children]
    types = Counter(node.kind for node in leaves if not node.hole)
    return PatternTokens(types, Counter(node.name for node in leaves if node.name))


def find_lost_token(root: Node, match: SyntaxMatch, tokens: PatternTokens) -> Node | None:
    """Return the first token of a match that neither its pattern nor its captures contain, or None.

    `tokens` is the result of `count_tokens`. Commas and semicolons are ignored.
    """
    node = root.descendant_for_byte_range(match.start, match.end)
    left = Counter(tokens.types)
    # A repeated metavariable is bound to one of its places. The other places have equal code.
    for name, count in tokens.names.items():
        start, end = match.captures[name]
        code = root.descendant_for_byte_range(start, end) if count > 1 and start < end else None
        for token in () if code is None else _iter_tokens(code, ()):
            if start <= token.start_byte and token.end_byte <= end:
                left[token.type] += count - 1
    for token in () if node is None else _iter_tokens(node, match.captures.values()):
        left[token.type] -= 1
        if left[token.type] < 0 and token.type.strip() not in _SEPARATORS:
            return token
    return None


def last_comment(root: Node, span: _Span) -> Node | None:
    """Return the comment with which a range of the code ends, or None."""
    start, end = span
    node = root.descendant_for_byte_range(end - 1, end) if start < end else None
    while node is not None and node.end_byte == end and node.start_byte >= start:
        if node.is_extra and not node.is_error:
            return node
        node = node.parent
    return None


def _iter_tokens(node: Node, spans: Collection[_Span]) -> Iterator[Node]:
    """Yield the tokens of a node that are not empty and not in one of some ranges, by position."""
    pending = [node]
    while pending:
        node = pending.pop()
        start, end = node.start_byte, node.end_byte
        if start == end or any(first <= start and end <= last for first, last in spans):
            continue
        if node.children and not node.is_extra:
            pending += reversed(node.children)
        else:
            yield node
