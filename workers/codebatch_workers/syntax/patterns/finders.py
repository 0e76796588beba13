"""Searches for queries and patterns in files. The command `find` and custom rules use them.

Every match contains all `literals` of its finder. So a file without one of them is not parsed. This excludes nearly all
files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from tree_sitter import Node, Query, QueryCursor

from codebatch.model.text.suggestions import did_you_mean_text
from codebatch_workers.syntax.broken_trees import QUERY_DEPTH_MAX
from codebatch_workers.syntax.language.languages import EXTRA_GRAMMAR_TOOLS, every_language, has_grammar, load_language
from codebatch_workers.syntax.names import NAME_NODE_TYPE
from codebatch_workers.syntax.patterns.matching import PatternMatcher, TooManySteps
from codebatch_workers.syntax.patterns.queries import read_query, required_literals
from codebatch_workers.syntax.patterns.reading import PatternError, PatternNode, read_pattern
from codebatch_workers.syntax.source import SourceFile

__all__ = [
    "PatternError",
    "SyntaxFinder",
    "SyntaxMatch",
    "TooManySteps",
    "check_language",
    "pattern_finder",
    "query_finder",
]

_LITERALS_MAX = 8
STATES_MAX = 256
"""The maximum number of partial matches that a query may have at once.

Without this limit, a query could run for any time.
"""


class SyntaxMatch(NamedTuple):
    """A match: its offsets in the UTF-8 text of the file, and the offsets of each named capture."""

    start: int
    end: int
    captures: Mapping[str, tuple[int, int]]


class SyntaxFinder(NamedTuple):
    """A search for one query or pattern in one language. `names` are the names of its captures.

    `identifiers` are identifiers that every match contains. For a query, they are unknown, so there are none.

    `find` yields the matches in a file, sorted by their start. If several begin at the same offset, the longest is
    first. `find` raises TooManySteps.
    """

    language: str
    literals: tuple[bytes, ...]
    identifiers: tuple[str, ...]
    names: tuple[str, ...]
    find: Callable[[SourceFile], Iterator[SyntaxMatch]]


def check_language(language: str) -> None:
    """Raise PatternError if there is no grammar for a language, or if the grammar is not installed."""
    known = every_language()
    if language not in known:
        hint = did_you_mean_text(language, known) or f"there are: {', '.join(known)}"
        raise PatternError(f"no grammar for {language!r}", hint=hint)
    if not has_grammar(language):
        tool = {name: tool for tool, name in EXTRA_GRAMMAR_TOOLS.items()}[language]
        from codebatch.installation import packages_command  # Rarely needed.

        hint = f"install it with: {packages_command([tool])}"
        raise PatternError(f"the grammar of {language} is not installed", hint=hint)


def query_finder(text: str, language: str) -> SyntaxFinder:
    """Return a finder for a query. The finder finds the nodes of the capture that `read_query` returns.

    Raises PatternError.
    """
    check_language(language)

    query, capture_names = read_query(text, language)
    cursor = QueryCursor(query, match_limit=STATES_MAX)
    cursor.set_max_start_depth(QUERY_DEPTH_MAX)

    def find(file: SourceFile) -> Iterator[SyntaxMatch]:
        places: dict[tuple[int, int], SyntaxMatch] = {}
        matches = () if file.is_hopeless else cursor.matches((file.tree or file.parse()).root_node)
        if cursor.did_exceed_match_limit:
            raise TooManySteps
        for _, captures in matches:
            named = {name: (nodes[0].start_byte, nodes[0].end_byte) for name, nodes in captures.items()}
            for node in captures.get(capture_names, ()):
                span = (node.start_byte, node.end_byte)
                places.setdefault(span, SyntaxMatch(*span, named))
        yield from sorted(places.values(), key=lambda place: (place.start, -place.end))

    names = tuple(query.capture_name(index) for index in range(query.capture_count))
    return SyntaxFinder(language, required_literals(query, text), (), names, find)


def pattern_finder(text: str, language: str) -> SyntaxFinder:
    """Return a finder for the nodes that match a pattern. Raises PatternError."""
    check_language(language)
    pattern = read_pattern(text, language)
    matcher = PatternMatcher(pattern)
    query = _query_for(pattern, language)
    needle = max((node.text for node in pattern.iter_nodes() if _is_literal(node)), key=len, default=b"")

    def find(file: SourceFile) -> Iterator[SyntaxMatch]:
        utf8 = file.utf8
        candidates = file.query(query).get("_", [])
        for node, captures in matcher.iter_matches(
            [node for node in candidates if _contains_literal(utf8, node, needle)], utf8
        ):
            yield SyntaxMatch(node.start_byte, node.end_byte, captures)

    names = dict.fromkeys(node.name for node in pattern.iter_nodes() if node.name)
    return SyntaxFinder(language, _required_literals(pattern), _required_identifiers(pattern), tuple(names), find)


def _query_for(pattern: PatternNode, language: str) -> Query:
    """Return a query that captures all nodes of one type: the type of the pattern's outermost node."""
    query: Query = Query(load_language(language), f"({pattern.kind}) @_")
    return query


def _required_literals(pattern: PatternNode) -> tuple[bytes, ...]:
    """Return texts that every file with a match contains.

    The longest are first, because they occur in the fewest files.
    """
    texts = {node.text for node in pattern.iter_nodes() if _is_literal(node)}
    return tuple(sorted(texts, key=lambda text: (-len(text), text))[:_LITERALS_MAX])


def _required_identifiers(pattern: PatternNode) -> tuple[str, ...]:
    """Return identifiers that every file with a match contains. They are never a part of a longer word."""
    nodes = (node for node in pattern.iter_nodes() if node.text and node.is_named)
    return tuple(dict.fromkeys(node.text.decode() for node in nodes if NAME_NODE_TYPE.search(node.kind)))


def _is_literal(node: PatternNode) -> bool:
    """Return whether a file that contains this node must contain the node's text as bytes, in any encoding."""
    return node.text.isascii() and not any(character in b"\r\n" for character in node.text) and bool(node.text)


def _contains_literal(utf8: bytes, node: Node, needle: bytes) -> bool:
    return utf8.find(needle, node.start_byte, node.end_byte) >= 0
