"""What is right in a language and its grammar does not know: each such place gets a stand-in.

A stand-in is as long as what it stands for, so that every offset is that of the file, and keeps names and the types in
it where they are: what is said of the file is read in its own text. It is tried only where a tree has errors: first all
that are near them, looked for in pieces of the text, then in the whole, then all there are, then kind by kind. Kept are
those that leave the fewest, and fewer than before: there they may be blunt. What one error hides is seen when that is
gone, so there are rounds. Held against parsers of the languages themselves (tests/oracles, "syntax errors").
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from codebatch_workers.syntax.broken_trees import is_hopeless_tree, iter_broken
from codebatch_workers.syntax.grammar_gaps.bash import BASH_GAPS
from codebatch_workers.syntax.grammar_gaps.c import C_GAPS, CPP_GAPS
from codebatch_workers.syntax.grammar_gaps.compiled_languages import GO_GAPS, JAVA_GAPS, RUST_GAPS, SWIFT_GAPS
from codebatch_workers.syntax.grammar_gaps.csharp import CSHARP_GAPS
from codebatch_workers.syntax.grammar_gaps.javascript import JAVASCRIPT_GAPS, TSX_GAPS, TYPESCRIPT_GAPS
from codebatch_workers.syntax.grammar_gaps.json_numbers import JSON_GAPS
from codebatch_workers.syntax.grammar_gaps.kotlin import KOTLIN_GAPS
from codebatch_workers.syntax.grammar_gaps.php import PHP_GAPS
from codebatch_workers.syntax.grammar_gaps.reparsing import reparse
from codebatch_workers.syntax.grammar_gaps.ruby import RUBY_GAPS
from codebatch_workers.syntax.grammar_gaps.stand_ins import Gap, StandIn
from codebatch_workers.syntax.grammar_gaps.toml import TOML_GAPS
from codebatch_workers.syntax.grammar_gaps.yaml import YAML_GAPS
from codebatch_workers.syntax.language.languages import APPROXIMATE_LANGUAGES

if TYPE_CHECKING:
    from tree_sitter import Parser, Tree

GAPS: Mapping[str, Sequence[Gap]] = {
    "bash": BASH_GAPS,
    "c": C_GAPS,
    "cpp": CPP_GAPS,
    "csharp": CSHARP_GAPS,
    "go": GO_GAPS,
    "java": JAVA_GAPS,
    "javascript": JAVASCRIPT_GAPS,
    "json": JSON_GAPS,
    "jsonc": JSON_GAPS,
    "kotlin": KOTLIN_GAPS,
    "php": PHP_GAPS,
    "ruby": RUBY_GAPS,
    "rust": RUST_GAPS,
    "swift": SWIFT_GAPS,
    "toml": TOML_GAPS,
    "tsx": TSX_GAPS,
    "typescript": TYPESCRIPT_GAPS,
    "yaml": YAML_GAPS,
    "zsh": BASH_GAPS,
}

# What a file may cost beyond its first tree: a try is a tree of all of it. A larger file has one try.
_TRIED_BYTES_MAX = 2 * 1024 * 1024
_ROUNDS_MAX = 10
_TRIES_OF_APPROXIMATE_MAX = 6
# How far from an error that the grammar sees its cause may be.
_LINES_NEAR = 2
# What is looked at around that first, to know what stands there: most files are much longer.
_BYTES_AROUND = 256


def without_gaps(utf8: bytes, language: str, tree: Tree, parser: Parser) -> tuple[Tree, bytes]:
    """Return the tree of a text in one of LANGUAGES_WITH_GAPS, or the one with stand-ins that has the fewest errors.

    The second value is the text of that tree.
    """
    errors = _errors(tree, language)
    tries = max(1, _TRIED_BYTES_MAX // max(1, len(utf8)))
    if language in APPROXIMATE_LANGUAGES:
        tries = min(tries, _TRIES_OF_APPROXIMATE_MAX)
    for _ in range(_ROUNDS_MAX):
        best, text, better = errors, utf8, tree
        for stand_ins in _choices(utf8, language, tree) if errors else ():
            tries -= 1
            tried = with_stand_ins(utf8, stand_ins)
            other = reparse(parser, tree, utf8, tried)
            left = _errors(other, language)
            if left < best:
                best, text, better = left, tried, other
            if not left or tries <= 0:
                break
        if best == errors:
            return tree, utf8
        utf8, tree, errors = text, better, best
        if tries <= 0:
            return tree, utf8
    return tree, utf8


def _choices(utf8: bytes, language: str, tree: Tree) -> Iterator[Sequence[StandIn]]:
    """Which stand-ins to try, one choice after the other."""
    near = _Spans(_lines_near(utf8, node.start_byte, node.end_byte) for node in iter_broken(tree.root_node, language))
    pieces = _Spans(_lines_near(utf8, start - _BYTES_AROUND, end + _BYTES_AROUND) for start, end in near)
    is_approximate = language in APPROXIMATE_LANGUAGES
    yield from _distinct(_choices_of(utf8, GAPS[language], near, pieces, is_approximate=is_approximate))


def _choices_of(
    utf8: bytes, gaps: Sequence[Gap], near: _Spans, pieces: _Spans, *, is_approximate: bool
) -> Iterator[list[StandIn]]:
    texts = [(start, utf8[start:end]) for start, end in pieces]
    if is_approximate:
        # Many of these files have errors that no stand-in mends: the whole text is not looked through for them.
        by_kind = [[each.moved(start) for start, text in texts for each in gap(text)] for gap in gaps]
        by_kind = [found for kind in by_kind if (found := [each for each in kind if each.start in near])]
        yield _all(by_kind)
        yield from by_kind
        return
    in_pieces = (each.moved(start) for start, text in texts for gap in gaps for each in gap(text))
    yield [each for each in in_pieces if each.start in near]
    kinds = [list(stand_ins(utf8)) for stand_ins in gaps]
    kinds_near = [found for kind in kinds if (found := [each for each in kind if each.start in near])]
    yield _all(kinds_near)
    yield _all(kinds)
    yield from kinds_near


def _all(kinds: Iterable[Sequence[StandIn]]) -> list[StandIn]:
    return [each for kind in kinds for each in kind]


def _distinct(choices: Iterable[Sequence[StandIn]]) -> Iterator[Sequence[StandIn]]:
    tried: list[Sequence[StandIn]] = [[]]
    for choice in choices:
        if choice not in tried:
            tried.append(choice)
            yield choice


def _lines_near(utf8: bytes, start: int, end: int) -> tuple[int, int]:
    """The lines of a span of bytes, and so many before and behind it."""
    start, end = max(0, start), min(end, len(utf8))
    for _ in range(_LINES_NEAR + 1):
        start = max(0, utf8.rfind(b"\n", 0, start))
        end = utf8.find(b"\n", end + 1) % (len(utf8) + 1)
    return start, end


class _Spans:
    """Spans of bytes in order, those that meet as one; the end of each is in it."""

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
