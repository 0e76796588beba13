"""Replacements for valid code that a grammar does not support, which is called a gap.

A replacement is other code, which the grammar supports. It has the same length, so offsets stay valid. It must not move
names or change the types of their nodes, because records take names from the text of the file. Replacements are tried
only if a tree has errors, in this order:

1. all replacements near errors, found by searching only the text around errors
2. all replacements near errors, found by searching the whole text
3. all replacements in the text
4. only the replacements of one kind near errors, for each kind

The choice with the fewest errors is used if it has fewer errors than the original text. So replacements may be
approximate. An error can hide others, so there are several rounds. Tests compare the results with parsers of the
languages (tests/oracles, "syntax errors").
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from tree_sitter import Parser, Tree

from codebatch_workers.syntax.broken_trees import is_hopeless_tree, iter_broken_nodes
from codebatch_workers.syntax.grammar_gaps.reparsing import reparse
from codebatch_workers.syntax.language_gaps import GapFinder, LanguageGaps, Replacement
from codebatch_workers.syntax.language_syntax import LanguageSyntax

# The maximum number of bytes that are parsed again for one file. Each try parses the whole file. For a larger file,
# there is one try.
_REPAIRED_BYTES_MAX = 2 * 1024 * 1024
_REPAIR_ROUNDS_MAX = 10
_APPROXIMATE_ATTEMPTS_MAX = 6
# The maximum number of lines between an error and its cause.
_LINES_AROUND_ERROR = 2
# The first choice also searches this number of bytes before and after these lines. Most files are much longer.
_BYTES_AROUND_ERROR = 256


def tree_without_gaps(utf8: bytes, language: str, tree: Tree, parser: Parser) -> tuple[Tree, bytes]:
    """Return the tree with the fewest errors for a text, and the text that was parsed to get this tree.

    This is the original tree, or the tree of a text with replacements.
    """
    errors = _count_errors(tree, language)
    tries = max(1, _REPAIRED_BYTES_MAX // max(1, len(utf8)))
    if LanguageSyntax.of(language).is_approximate:
        tries = min(tries, _APPROXIMATE_ATTEMPTS_MAX)
    for _ in range(_REPAIR_ROUNDS_MAX):
        fewest, best_text, best_tree = errors, utf8, tree
        for stand_ins in _iter_choices(utf8, language, tree) if errors else ():
            tries -= 1
            candidate = apply_replacements(utf8, stand_ins)
            candidate_tree = reparse(parser, tree, utf8, candidate)
            remaining = _count_errors(candidate_tree, language)
            if remaining < fewest:
                fewest, best_text, best_tree = remaining, candidate, candidate_tree
            if not remaining or tries <= 0:
                break
        if fewest == errors:
            return tree, utf8
        utf8, tree, errors = best_text, best_tree, fewest
        if tries <= 0:
            return tree, utf8
    return tree, utf8


def _iter_choices(utf8: bytes, language: str, tree: Tree) -> Iterator[Sequence[Replacement]]:
    """Yield the lists of replacements to try, in the order of the module's docstring."""
    near = _MergedSpans(
        _offsets_of_near_lines(utf8, node.start_byte, node.end_byte)
        for node in iter_broken_nodes(tree.root_node, language)
    )
    pieces = _MergedSpans(
        _offsets_of_near_lines(utf8, start - _BYTES_AROUND_ERROR, end + _BYTES_AROUND_ERROR) for start, end in near
    )
    is_approximate = LanguageSyntax.of(language).is_approximate
    yield from _iter_distinct(
        _gap_choices(utf8, LanguageGaps.of(language).finders, near, pieces, is_approximate=is_approximate)
    )


def _gap_choices(
    utf8: bytes, gaps: Sequence[GapFinder], near: _MergedSpans, pieces: _MergedSpans, *, is_approximate: bool
) -> Iterator[list[Replacement]]:
    texts = [(start, utf8[start:end]) for start, end in pieces]
    if is_approximate:
        # Many such files have errors that no replacement can fix. So a search of the whole text would be a waste.
        by_kind = [[stand_in.moved_by(start) for start, text in texts for stand_in in gap(text)] for gap in gaps]
        by_kind = [
            matches for kind in by_kind if (matches := [stand_in for stand_in in kind if stand_in.start in near])
        ]
        yield _flatten(by_kind)
        yield from by_kind
        return
    in_pieces = (stand_in.moved_by(start) for start, text in texts for gap in gaps for stand_in in gap(text))
    yield [stand_in for stand_in in in_pieces if stand_in.start in near]
    kinds = [list(stand_ins(utf8)) for stand_ins in gaps]
    kinds_near = [matches for kind in kinds if (matches := [stand_in for stand_in in kind if stand_in.start in near])]
    yield _flatten(kinds_near)
    yield _flatten(kinds)
    yield from kinds_near


def _flatten(kinds: Iterable[Sequence[Replacement]]) -> list[Replacement]:
    return [stand_in for kind in kinds for stand_in in kind]


def _iter_distinct(choices: Iterable[Sequence[Replacement]]) -> Iterator[Sequence[Replacement]]:
    distinct: list[Sequence[Replacement]] = [[]]
    for choice in choices:
        if choice not in distinct:
            distinct.append(choice)
            yield choice


def _offsets_of_near_lines(utf8: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the range of the lines that contain [start, end), with _LINES_NEAR more lines before and after."""
    start, end = max(0, start), min(end, len(utf8))
    for _ in range(_LINES_AROUND_ERROR + 1):
        start = max(0, utf8.rfind(b"\n", 0, start))
        end = utf8.find(b"\n", end + 1) % (len(utf8) + 1)
    return start, end


class _MergedSpans:
    """Sorted ranges of bytes. Ranges that overlap or touch are merged. The end offset is also in the range."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(spans):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._starts, self._ends, strict=True)

    def __contains__(self, offset: int) -> bool:
        index = bisect_right(self._starts, offset) - 1
        return index >= 0 and offset <= self._ends[index]


def apply_replacements(utf8: bytes, stand_ins: Iterable[Replacement]) -> bytes:
    """Return a text with replacements applied. A replacement that begins within another one is skipped."""
    text = bytearray(utf8)
    end = 0
    for start, replacement in sorted(stand_ins, key=lambda stand_in: (stand_in.start, -len(stand_in.text))):
        if start >= end:
            end = start + len(replacement)
            text[start:end] = replacement
    assert len(text) == len(utf8)
    return bytes(text)


def _count_errors(tree: Tree, language: str) -> int:
    """Return the number of errors in a tree. For a hopeless tree, return sys.maxsize."""
    if is_hopeless_tree(tree):
        return sys.maxsize
    return sum(1 for _ in iter_broken_nodes(tree.root_node, language))
