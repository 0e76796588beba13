"""Calls of Ruby methods by their name only, which the grammar parses as variables.

A name is a call unless the enclosing method, class or file binds a local variable with this name.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator

from tree_sitter import Node

from codebatch_workers.syntax.source import SourceFile

_SCOPE_CAPTURES = ("def.function", "def.class", "def.module", "singleton")


def unmarked_calls(file: SourceFile) -> tuple[tuple[int, int], ...]:
    """Return the ranges of the names that are called, in text order."""
    return tuple((node.start_byte, node.end_byte) for node in _called_names(file))


def _called_names(file: SourceFile) -> Iterator[Node]:
    """Yield the names that are neither a part of another construct nor a local variable."""
    captures = file.captures
    names = captures.get("plain_name", ())
    if not names:
        return
    taken = {node.start_byte for capture in ("tail", "bound_name", "method_name") for node in captures.get(capture, ())}
    spans = sorted(
        (node.start_byte, -node.end_byte) for capture in _SCOPE_CAPTURES for node in captures.get(capture, ())
    )
    scopes = _Scopes([(start, -minus_end) for start, minus_end in spans])
    bound: dict[int, set[bytes]] = defaultdict(set)
    for node in captures.get("bound_name", ()):
        bound[scopes.at(node.start_byte)].add(file.utf8[node.start_byte : node.end_byte].rstrip(b":"))
    for node in names:
        start = node.start_byte
        if start not in taken and file.utf8[start : node.end_byte] not in bound[scopes.at(start)]:
            yield node


class _Scopes:
    """Nested ranges of a text, outer before inner. Each offset has the number of the innermost range around it."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._starts, self._numbers = [0], [-1]
        open_spans: list[tuple[int, int]] = []
        for number, (start, end) in enumerate(spans):
            self._close(open_spans, start)
            self._starts.append(start)
            self._numbers.append(number)
            open_spans.append((end, number))
        self._close(open_spans, None)

    def _close(self, open_spans: list[tuple[int, int]], until: int | None) -> None:
        """Close the ranges that end before an offset."""
        while open_spans and (until is None or open_spans[-1][0] <= until):
            end, _ = open_spans.pop()
            self._starts.append(end)
            self._numbers.append(open_spans[-1][1] if open_spans else -1)

    def at(self, offset: int) -> int:
        """Return the number of the innermost range that contains an offset, or -1 if none does."""
        return self._numbers[bisect_right(self._starts, offset) - 1]
