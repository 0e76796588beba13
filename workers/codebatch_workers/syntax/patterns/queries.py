"""Compilation of tree-sitter queries, and error messages for invalid ones."""

from __future__ import annotations

import re

from tree_sitter import Query, QueryError

from codebatch.model.text.suggestions import closest_word
from codebatch_workers.syntax.language.languages import load_language
from codebatch_workers.syntax.patterns.reading import PatternError

QUERY_BYTES_MAX = 10_000
_MATCH_CAPTURE = "match"
_QUERY_ERROR = re.compile(r"(?P<what>.*?) at row (?P<row>\d+), column (?P<column>\d+)(?:: (?P<name>.*))?", re.DOTALL)
# A predicate `(#eq? @name "text")`. A comment can contain text that looks like one. So `required_literals` returns
# nothing if the query may contain a comment.
_EQUAL_PREDICATE = re.compile(r'\(#eq\?\s+@([\w.-]+)\s+"((?:[^"\\])+)"\s*\)')
_QUANTIFIERS_WITHOUT_ZERO = ("", "+")


def read_query(text: str, language: str) -> tuple[Query, str]:
    """Return a compiled query, and the name of the capture to report. Raises PatternError.

    The name is `match` if the query has this capture. Otherwise, it is the last one that does not begin with `_`. If a
    query has no captures, its whole node is captured.
    """
    if len(text.encode("utf-8", "surrogatepass")) > QUERY_BYTES_MAX:
        raise PatternError(f"the query is longer than {QUERY_BYTES_MAX:,} bytes", hint="shorten the query")
    query = _compile_query(text, language)
    if not query.pattern_count:
        raise PatternError("the query is empty", hint="for example: '(call function: (identifier) @name)'")
    if not query.capture_count:
        query = _compile_query(f"{text}\n@{_MATCH_CAPTURE}", language)
    names = [query.capture_name(index) for index in range(query.capture_count)]
    public_names = [name for name in names if not name.startswith("_")]
    if not public_names:
        raise PatternError(
            "no node is reported, because all captures of the query start with `_`",
            hint=f"mark the node to report with the capture `@{_MATCH_CAPTURE}`",
        )
    return query, _MATCH_CAPTURE if _MATCH_CAPTURE in names else public_names[-1]


def required_literals(query: Query, text: str) -> tuple[bytes, ...]:
    """Return texts that every file with a match contains: those that `#eq?` requires of captures that must exist."""
    if query.pattern_count != 1 or ";" in text:
        return ()
    index = {query.capture_name(number): number for number in range(query.capture_count)}
    return tuple(
        literal.encode()
        for name, literal in _EQUAL_PREDICATE.findall(text)
        if name in index and query.capture_quantifier(0, index[name]) in _QUANTIFIERS_WITHOUT_ZERO
    )


def _compile_query(text: str, language: str) -> Query:
    loaded = load_language(language)
    try:
        compiled: Query = Query(loaded, text)
        return compiled
    except (QueryError, ValueError) as error:
        raise _query_error(str(error), text, language) from error


def _query_error(error: str, text: str, language: str) -> PatternError:
    match = _QUERY_ERROR.match(error)
    if "EOF" in error:
        lines = text.split("\n")
        place = (len(lines) - 1, len(lines[-1]))
        return PatternError("the query ends too early", hint="close all brackets and quotes", place=place)
    if match is None:
        return PatternError(f"the query is not valid for {language}: {error}", hint="see: codebatch ast FILE")
    problem, row, column, name = match["what"], int(match["row"]), int(match["column"]), (match["name"] or "").strip()
    line = text.split("\n")[row] if row < text.count("\n") + 1 else ""
    # Tree-sitter counts the column in bytes, but `place` needs it in characters.
    place = (row, len(line.encode()[:column].decode("utf-8", "ignore")))
    loaded = load_language(language)
    known: list[str] = []
    if "field" in problem:
        known = [str(loaded.field_name_for_id(number)) for number in range(1, loaded.field_count + 1)]
    elif "node type" in problem:
        kinds = range(loaded.node_kind_count)
        known = [str(loaded.node_kind_for_id(kind)) for kind in kinds if loaded.node_kind_is_visible(kind)]
    meant = closest_word(name, known) if name else None
    hint = f"did you mean {meant!r}?" if meant else "list nodes and fields with: codebatch ast FILE"
    message = f"{problem[:1].lower()}{problem[1:]}{f' {name!r}' if name else ''}"
    return PatternError(f"{message} (row {row + 1}, column {place[1] + 1} of the query)", hint=hint, place=place)
