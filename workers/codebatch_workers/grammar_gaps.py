"""What is right in a language and its grammar does not know: each such place gets a stand-in.

A stand-in is as long as what it stands for, so that every offset is that of the file, and keeps names and the types in
it where they are: what is said of the file is read in its own text. It is tried only where a tree has errors: first all
that are near them, then all there are, then kind by kind. Kept are those that leave the fewest, and fewer than before:
there they may be blunt. What one error hides is seen when that is gone, so there are rounds. Held against parsers of
the languages themselves (tests/oracles, "syntax errors").
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from codebatch_workers.broken_trees import is_hopeless_tree, iter_broken
from codebatch_workers.gaps_of_compiled import GO_GAPS, JAVA_GAPS, RUST_GAPS
from codebatch_workers.gaps_of_scripts import JAVASCRIPT_GAPS, TSX_GAPS, TYPESCRIPT_GAPS
from codebatch_workers.stand_ins import Gap, StandIn

if TYPE_CHECKING:
    from tree_sitter import Tree

GAPS: Mapping[str, Sequence[Gap]] = {
    "go": GO_GAPS,
    "java": JAVA_GAPS,
    "javascript": JAVASCRIPT_GAPS,
    "rust": RUST_GAPS,
    "tsx": TSX_GAPS,
    "typescript": TYPESCRIPT_GAPS,
}

# What a file may cost beyond its first tree: a try is a tree of all of it. A larger file has one try.
_TRIED_BYTES_MAX = 2 * 1024 * 1024
_ROUNDS_MAX = 10
# How far from an error that the grammar sees its cause may be.
_LINES_NEAR = 2


def without_gaps(utf8: bytes, language: str, tree: Tree, parse: Callable[[bytes], Tree]) -> Tree:
    """The tree of a text, or the one with stand-ins that has the fewest errors."""
    if language not in GAPS:
        return tree
    errors = _errors(tree, language)
    tries = max(1, _TRIED_BYTES_MAX // max(1, len(utf8)))
    for _ in range(_ROUNDS_MAX):
        best, text, better = errors, utf8, tree
        for stand_ins in _choices(utf8, language, tree) if errors else ():
            tries -= 1
            tried = with_stand_ins(utf8, stand_ins)
            other = parse(tried)
            left = _errors(other, language)
            if left < best:
                best, text, better = left, tried, other
            if not left or tries <= 0:
                break
        if best == errors:
            return tree
        utf8, tree, errors = text, better, best
        if tries <= 0:
            return tree
    return tree


def _choices(utf8: bytes, language: str, tree: Tree) -> Iterator[Sequence[StandIn]]:
    """Which stand-ins to try, one choice after the other."""
    kinds = [list(stand_ins(utf8)) for stand_ins in GAPS[language]]
    is_near = _nearness(utf8, tree, language)
    near = [found for kind in kinds if (found := [each for each in kind if is_near(each)])]
    yield from _distinct([_all(near), _all(kinds), *near])


def _all(kinds: Iterable[Sequence[StandIn]]) -> list[StandIn]:
    return [each for kind in kinds for each in kind]


def _distinct(choices: Iterable[Sequence[StandIn]]) -> Iterator[Sequence[StandIn]]:
    tried: list[Sequence[StandIn]] = [[]]
    for choice in choices:
        if choice not in tried:
            tried.append(choice)
            yield choice


def _nearness(utf8: bytes, tree: Tree, language: str) -> Callable[[StandIn], bool]:
    """Whether a stand-in is in the lines of an error, or close by."""
    starts: list[int] = []
    ends: list[int] = []
    for start, end in sorted((node.start_byte, node.end_byte) for node in iter_broken(tree.root_node, language)):
        for _ in range(_LINES_NEAR + 1):
            start = max(0, utf8.rfind(b"\n", 0, start))
            end = utf8.find(b"\n", end + 1) % (len(utf8) + 1)
        if ends and start <= ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(start)
            ends.append(end)

    def is_near(stand_in: StandIn) -> bool:
        index = bisect_right(starts, stand_in.start) - 1
        return index >= 0 and stand_in.start <= ends[index]

    return is_near


def with_stand_ins(utf8: bytes, stand_ins: Iterable[StandIn]) -> bytes:
    """The text with each in its place, but for those that begin within another one."""
    text = bytearray(utf8)
    end = 0
    for start, stand_in in sorted(stand_ins, key=lambda each: (each.start, -len(each.text))):
        if start >= end:
            end = start + len(stand_in)
            text[start:end] = stand_in
    assert len(text) == len(utf8)
    return bytes(text)


def _errors(tree: Tree, language: str) -> int:
    """How many errors a tree has; without end where it is hopeless."""
    if is_hopeless_tree(tree):
        return sys.maxsize
    return sum(1 for _ in iter_broken(tree.root_node, language))
