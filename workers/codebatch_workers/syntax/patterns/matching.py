"""Comparison of a pattern with the nodes of a file.

A node matches a pattern node if both have the same type, and their children match in order. Nodes without children must
have the same text. In the file, comments and tokens that the pattern does not mention (trailing commas, `async`) are
skipped.

A node can match in several ways, which bind different texts to the names. All ways are followed in parallel, from one
position to the next. Ways that bind the same texts to all repeated names are treated as one. So each pattern node is
usually compared with each node of the file only once. If repeated names can be bound in many ways, there are more
comparisons. STEPS_MAX limits their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from tree_sitter import Node

from codebatch_workers.syntax.patterns.reading import PatternNode

STEPS_MAX = 100_000
STEPS_PER_BYTE_MAX = 10
"""Limits on the number of comparisons in one file: STEPS_MAX, plus STEPS_PER_BYTE_MAX for each byte of the file."""

# `_BoundTexts` has the text that is bound to each repeated name, or None. `_BoundSpans` is a linked list of all bound
# names with their offsets. The name that was bound last is first.
_BoundTexts = tuple[bytes | None, ...]
_BoundSpans: TypeAlias = "tuple[str, int, int, _BoundSpans] | None"
_MatchWays = dict[_BoundTexts, _BoundSpans]


class TooManySteps(Exception):
    """An error: a comparison needs more steps than permitted."""

    def __init__(self) -> None:
        super().__init__("it matches in too many ways")


class PatternMatcher:
    """A matcher for one pattern."""

    def __init__(self, pattern: PatternNode) -> None:
        self.pattern = pattern
        times = Counter(node.name for node in pattern.iter_nodes() if node.name)
        repeated = sorted(name for name, count in times.items() if count > 1)
        self._repeated = {name: index for index, name in enumerate(repeated)}
        self._unbound: _BoundTexts = (None,) * len(self._repeated)

    def iter_matches(self, nodes: Sequence[Node], utf8: bytes) -> Iterator[tuple[Node, Mapping[str, tuple[int, int]]]]:
        """Yield each node that matches the pattern, and the offsets bound to each name. Raises TooManySteps."""
        comparison = _FileComparison(self._repeated, utf8)
        for node in nodes:
            ways = comparison.match_node(self.pattern, node, {self._unbound: None})
            if ways:
                places: dict[str, tuple[int, int]] = {}
                bound = next(iter(ways.values()))
                while bound is not None:
                    name, start, end, bound = bound
                    places[name] = (start, end)
                yield node, places


class _FileComparison:
    """The state of a comparison with the nodes of one file."""

    def __init__(self, repeated: Mapping[str, int], utf8: bytes) -> None:
        self._repeated = repeated
        self._utf8 = utf8
        self._steps_left = STEPS_MAX + STEPS_PER_BYTE_MAX * len(utf8)

    def match_node(self, pattern: PatternNode, node: Node, ways: _MatchWays) -> _MatchWays:
        """Return the ways in which `node` matches `pattern`. Each extends one of `ways`, which match earlier nodes."""
        self._count_steps(len(ways))
        if pattern.hole:
            return self._bind_metavariable(pattern, node.start_byte, node.end_byte, ways) if node.is_named else {}
        if node.type != pattern.kind:
            return {}
        if pattern.children:
            return self._match_children(pattern.children, node.children, ways)
        start, end = node.start_byte, node.end_byte
        is_alike = not pattern.is_named or self._utf8[start:end] == pattern.text
        return ways if is_alike else {}

    def _match_children(self, patterns: Sequence[PatternNode], nodes: Sequence[Node], ways: _MatchWays) -> _MatchWays:
        """Return `ways`, extended by the ways in which `nodes` match `patterns`, the children of a pattern node.

        `ways_at` maps each position in `nodes` to the ways in which the nodes before it match the pattern's children so
        far.
        """
        is_passed = [not node.is_named or node.is_extra for node in nodes]
        ways_at: dict[int, _MatchWays] = {0: ways}
        for pattern in patterns:
            if not ways_at:
                return {}
            ways_at = (
                self._match_many(pattern, nodes, ways_at)
                if pattern.is_many
                else self._match_one(pattern, nodes, is_passed, ways_at)
            )
        ends: _MatchWays = {}
        position = len(nodes)
        while position >= 0:
            ends = ends | ways_at.get(position, {})
            position -= 1
            if position >= 0 and not is_passed[position]:
                break
        return ends

    def _match_one(
        self, pattern: PatternNode, nodes: Sequence[Node], is_passed: Sequence[bool], ways_at: Mapping[int, _MatchWays]
    ) -> dict[int, _MatchWays]:
        matches: dict[int, _MatchWays] = {}
        current: _MatchWays = {}
        last = max(ways_at)
        # Before a metavariable, no token is skipped: `yield from x` does not match `yield $X`.
        is_passed = [node.is_extra for node in nodes] if pattern.hole else is_passed
        for position in range(min(ways_at), len(nodes)):
            if position in ways_at:
                current = current | ways_at[position]
            if current:
                ways = self.match_node(pattern, nodes[position], current)
                if ways:
                    matches[position + 1] = ways
                if not is_passed[position]:
                    current = {}
            elif position > last:
                break
        return matches

    def _match_many(
        self, pattern: PatternNode, nodes: Sequence[Node], ways_at: Mapping[int, _MatchWays]
    ) -> dict[int, _MatchWays]:
        matches: dict[int, _MatchWays] = {}
        open_starts: list[tuple[int, _MatchWays]] = []
        # A bound sequence of nodes begins and ends with a named node. So a comma at the end of the sequence is not part
        # of it.
        named = _next_named(nodes) if pattern.name else [len(nodes)] * (len(nodes) + 1)
        last = -1
        for position in range(min(ways_at), len(nodes) + 1):
            if position in ways_at:
                new = ways_at[position]
                if pattern.name not in self._repeated:
                    new = {
                        texts: bound
                        for texts, bound in new.items()
                        if all(texts not in known for _, known in open_starts)
                    }
                if new:
                    open_starts.append((position, new))
            if position and nodes[position - 1].is_named:
                last = position - 1
            reached: _MatchWays = {}
            for first, ways in open_starts:
                self._count_steps(len(ways))
                span = (nodes[named[first]].start_byte, nodes[last].end_byte) if named[first] <= last else (0, 0)
                reached |= self._bind_metavariable(pattern, *span, ways)
            if reached:
                matches[position] = reached
        return matches

    def _bind_metavariable(self, pattern: PatternNode, start: int, end: int, ways: _MatchWays) -> _MatchWays:
        name = pattern.name
        if not name:
            return ways
        index = self._repeated.get(name)
        if index is None:
            return {texts: (name, start, end, bound) for texts, bound in ways.items()}
        text = self._utf8[start:end]
        bound_ways: _MatchWays = {}
        for texts, bound in ways.items():
            if texts[index] is None:
                updated: _BoundTexts = (*texts[:index], text, *texts[index + 1 :])
                bound_ways[updated] = (name, start, end, bound)
            elif texts[index] == text:
                bound_ways[texts] = bound
        return bound_ways

    def _count_steps(self, ways: int) -> None:
        self._steps_left -= ways
        if self._steps_left < 0:
            raise TooManySteps


def _next_named(nodes: Sequence[Node]) -> list[int]:
    """Return for each position the next position, at or after it, of a named node. Without one, it is len(nodes)."""
    following = [len(nodes)] * (len(nodes) + 1)
    for position in range(len(nodes) - 1, -1, -1):
        following[position] = position if nodes[position].is_named else following[position + 1]
    return following
