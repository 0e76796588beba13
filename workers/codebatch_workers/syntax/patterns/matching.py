"""Comparing a pattern with the nodes of a file.

A node is like one of the pattern if it is of its kind and its children are like those of the pattern, each in its turn;
of two without children the text is. Of the file's, tokens that the pattern does not name (commas at the end, `async`)
and comments are passed over. Where several ways lead to a match, all are gone together, position by position: what they
differ in is the text of names that the pattern has twice. So the time is that of comparing each node of the pattern
with each of the file once, unless such names are bound in many ways, of which there is an end: `STEPS_MAX`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from codebatch_workers.syntax.patterns.reading import PatternNode

if TYPE_CHECKING:
    from tree_sitter import Node

STEPS_MAX = 100_000
STEPS_PER_BYTE_MAX = 10
"""Comparisons in one file: so many, and so many more for each of its bytes, of which one takes a tenth."""

# The texts of the names that stand twice, as far as they are bound; and where each name was, the last one first.
_Texts = tuple[bytes | None, ...]
_Bound: TypeAlias = "tuple[str, int, int, _Bound] | None"
_Ways = dict[_Texts, _Bound]


class TooManySteps(Exception):
    """The comparison would take too long."""

    def __init__(self) -> None:
        super().__init__("it matches in too many ways")


class PatternMatcher:
    """Compares one pattern."""

    def __init__(self, pattern: PatternNode) -> None:
        self.pattern = pattern
        times = Counter(node.name for node in pattern.walk() if node.name)
        twice = sorted(name for name, count in times.items() if count > 1)
        self._twice = {name: index for index, name in enumerate(twice)}
        self._unbound: _Texts = (None,) * len(self._twice)

    def iter_matches(self, nodes: Sequence[Node], utf8: bytes) -> Iterator[tuple[Node, Mapping[str, tuple[int, int]]]]:
        """Those of some nodes that are like the pattern, each with where its names are. Raises TooManySteps."""
        comparison = _FileComparison(self._twice, utf8)
        for node in nodes:
            ways = comparison.node(self.pattern, node, {self._unbound: None})
            if ways:
                places: dict[str, tuple[int, int]] = {}
                bound = next(iter(ways.values()))
                while bound is not None:
                    name, start, end, bound = bound
                    places[name] = (start, end)
                yield node, places


class _FileComparison:
    """What is compared in one file."""

    def __init__(self, twice: Mapping[str, int], utf8: bytes) -> None:
        self._twice = twice
        self._utf8 = utf8
        self._steps_left = STEPS_MAX + STEPS_PER_BYTE_MAX * len(utf8)

    def node(self, pattern: PatternNode, node: Node, ways: _Ways) -> _Ways:
        """The ways on which a node is like one of the pattern."""
        self._count(len(ways))
        if pattern.hole:
            return self._bind(pattern, node.start_byte, node.end_byte, ways) if node.is_named else {}
        if node.type != pattern.kind:
            return {}
        if pattern.children:
            return self._children(pattern.children, node.children, ways)
        start, end = node.start_byte, node.end_byte
        is_alike = not pattern.is_named or self._utf8[start:end] == pattern.text
        return ways if is_alike else {}

    def _children(self, patterns: Sequence[PatternNode], nodes: Sequence[Node], ways: _Ways) -> _Ways:
        """The ways on which all of some nodes are like some of the pattern: how far each has come, pattern by pattern.

        At a position stand the ways on which what is before it is done.
        """
        is_passed = [not node.is_named or node.is_extra for node in nodes]
        at: dict[int, _Ways] = {0: ways}
        for pattern in patterns:
            if not at:
                return {}
            at = self._many(pattern, nodes, at) if pattern.is_many else self._one(pattern, nodes, is_passed, at)
        ends: _Ways = {}
        position = len(nodes)
        while position >= 0:
            ends = ends | at.get(position, {})
            position -= 1
            if position >= 0 and not is_passed[position]:
                break
        return ends

    def _one(
        self, pattern: PatternNode, nodes: Sequence[Node], is_passed: Sequence[bool], at: Mapping[int, _Ways]
    ) -> dict[int, _Ways]:
        found: dict[int, _Ways] = {}
        here: _Ways = {}
        last = max(at)
        # A token before what a metavariable stands for says what it is: `yield from x` is no `yield $X`.
        is_passed = [node.is_extra for node in nodes] if pattern.hole else is_passed
        for position in range(min(at), len(nodes)):
            if position in at:
                here = here | at[position]
            if here:
                ways = self.node(pattern, nodes[position], here)
                if ways:
                    found[position + 1] = ways
                if not is_passed[position]:
                    here = {}
            elif position > last:
                break
        return found

    def _many(self, pattern: PatternNode, nodes: Sequence[Node], at: Mapping[int, _Ways]) -> dict[int, _Ways]:
        found: dict[int, _Ways] = {}
        begun: list[tuple[int, _Ways]] = []
        # What is bound begins and ends with a named node: commas at its ends are none of it.
        named = _next_named(nodes) if pattern.name else [len(nodes)] * (len(nodes) + 1)
        last = -1
        for position in range(min(at), len(nodes) + 1):
            if position in at:
                new = at[position]
                if pattern.name not in self._twice:
                    new = {texts: bound for texts, bound in new.items() if all(texts not in each for _, each in begun)}
                if new:
                    begun.append((position, new))
            if position and nodes[position - 1].is_named:
                last = position - 1
            reached: _Ways = {}
            for first, ways in begun:
                self._count(len(ways))
                span = (nodes[named[first]].start_byte, nodes[last].end_byte) if named[first] <= last else (0, 0)
                reached |= self._bind(pattern, *span, ways)
            if reached:
                found[position] = reached
        return found

    def _bind(self, pattern: PatternNode, start: int, end: int, ways: _Ways) -> _Ways:
        name = pattern.name
        if not name:
            return ways
        index = self._twice.get(name)
        if index is None:
            return {texts: (name, start, end, bound) for texts, bound in ways.items()}
        text = self._utf8[start:end]
        found: _Ways = {}
        for texts, bound in ways.items():
            if texts[index] is None:
                now: _Texts = (*texts[:index], text, *texts[index + 1 :])
                found[now] = (name, start, end, bound)
            elif texts[index] == text:
                found[texts] = bound
        return found

    def _count(self, ways: int) -> None:
        self._steps_left -= ways
        if self._steps_left < 0:
            raise TooManySteps


def _next_named(nodes: Sequence[Node]) -> list[int]:
    """The position of the first named node from each position on, beyond the last where there is none."""
    following = [len(nodes)] * (len(nodes) + 1)
    for position in range(len(nodes) - 1, -1, -1):
        following[position] = position if nodes[position].is_named else following[position + 1]
    return following
