"""What looks for a query or a pattern in files: the same whether a question asks it of all or a rule of each.

A file that does not hold the texts which every match must hold (`literals`) need not be parsed, which is nearly all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from codebatch_workers.syntax.broken_trees import QUERY_DEPTH_MAX
from codebatch_workers.syntax.language.languages import EXTRA_GRAMMAR_TOOLS, every_language, has_grammar
from codebatch_workers.syntax.patterns.matching import PatternMatcher, TooManySteps
from codebatch_workers.syntax.patterns.queries import literals_of, read_query
from codebatch_workers.syntax.patterns.reading import PatternError, PatternNode, read_pattern
from codebatch_workers.syntax.source import SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node, Query

__all__ = ["Finder", "Match", "PatternError", "TooManySteps", "check_language", "pattern_finder", "query_finder"]

_LITERALS_MAX = 8
STATES_MAX = 256
"""Matches of a query that may be under way at once; the time for what does not fit is beyond all bounds."""


class Match(NamedTuple):
    """Where a match is, and what it calls by names: offsets into the file's text in UTF-8."""

    start: int
    end: int
    captures: Mapping[str, tuple[int, int]]


class Finder(NamedTuple):
    """Finds what a query or a pattern says. `names` are what its captures are called.

    `find` gives the places in a file by their start, of two the longer first; raises TooManySteps.
    """

    language: str
    literals: tuple[bytes, ...]
    names: tuple[str, ...]
    find: Callable[[SourceFile], Iterator[Match]]


def check_language(language: str) -> None:
    """Refuse a language without a grammar, or one whose grammar is not installed. Raises PatternError."""
    from codebatch.model.text.suggestions import did_you_mean

    known = every_language()
    if language not in known:
        hint = did_you_mean(language, known) or f"there are: {', '.join(known)}"
        raise PatternError(f"no grammar for {language!r}", hint=hint)
    if not has_grammar(language):
        tool = {name: tool for tool, name in EXTRA_GRAMMAR_TOOLS.items()}[language]
        raise PatternError(f"the grammar of {language} is not installed", hint=f"install it with: pip install {tool}")


def query_finder(text: str, language: str) -> Finder:
    """What finds the matches of a query, at its capture `@match` or its last. Raises PatternError."""
    check_language(language)
    from tree_sitter import QueryCursor

    query, shown = read_query(text, language)
    cursor = QueryCursor(query, match_limit=STATES_MAX)
    cursor.set_max_start_depth(QUERY_DEPTH_MAX)

    def find(file: SourceFile) -> Iterator[Match]:
        found: dict[tuple[int, int], Match] = {}
        matches = () if file.is_hopeless else cursor.matches((file.tree or file.parse()).root_node)
        if cursor.did_exceed_match_limit:
            raise TooManySteps
        for _, captures in matches:
            named = {name: (nodes[0].start_byte, nodes[0].end_byte) for name, nodes in captures.items()}
            for node in captures.get(shown, ()):
                span = (node.start_byte, node.end_byte)
                found.setdefault(span, Match(*span, named))
        yield from sorted(found.values(), key=_in_order)

    names = tuple(query.capture_name(index) for index in range(query.capture_count))
    return Finder(language, literals_of(query, text), names, find)


def pattern_finder(text: str, language: str) -> Finder:
    """What finds the nodes that are like a pattern. Raises PatternError."""
    check_language(language)
    pattern = read_pattern(text, language)
    matcher = PatternMatcher(pattern)
    query = _query_for(pattern, language)
    needle = max((node.text for node in pattern.walk() if _is_literal(node)), key=len, default=b"")

    def find(file: SourceFile) -> Iterator[Match]:
        utf8 = file.utf8
        nodes = file.query(query).get("_", [])
        for node, captures in matcher.iter_matches([node for node in nodes if _holds(utf8, node, needle)], utf8):
            yield Match(node.start_byte, node.end_byte, captures)

    names = dict.fromkeys(node.name for node in pattern.walk() if node.name)
    return Finder(language, _literals(pattern), tuple(names), find)


def _query_for(pattern: PatternNode, language: str) -> Query:
    """What finds every node that may be the pattern's: those of its kind."""
    from tree_sitter import Query

    from codebatch_workers.syntax.language.languages import grammar

    query: Query = Query(grammar(language).language, f"({pattern.kind}) @_")
    return query


def _literals(pattern: PatternNode) -> tuple[bytes, ...]:
    """What stands in every file that has a match, the longest first, which few files have."""
    texts = {node.text for node in pattern.walk() if _is_literal(node)}
    return tuple(sorted(texts, key=lambda text: (-len(text), text))[:_LITERALS_MAX])


def _is_literal(node: PatternNode) -> bool:
    """Whether a node's text is in the bytes of any file that has it, whatever its encoding."""
    return node.text.isascii() and not any(character in b"\r\n" for character in node.text) and bool(node.text)


def _holds(utf8: bytes, node: Node, needle: bytes) -> bool:
    return utf8.find(needle, node.start_byte, node.end_byte) >= 0


def _in_order(place: Match) -> tuple[int, int]:
    return place.start, -place.end
