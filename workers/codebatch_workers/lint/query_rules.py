"""Custom rules: patterns, or tree-sitter queries with the predicates `#eq?`, `#match?` and `#any-of?`.

A query reports the nodes of its capture `@report`. Without this capture, it reports its only capture whose name does
not begin with `_`. A pattern reports each match. In the message of a rule, `{name}` is replaced by the first line of
the text of the capture or metavariable `name`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec.structs import replace
from tree_sitter import Node, Query, QueryError

from codebatch.model.analysis.language_groups import with_variants
from codebatch_workers.lint.rule import RuleMatch, TextRule
from codebatch_workers.lint.settings import QueryRule
from codebatch_workers.syntax.language.languages import every_language, has_grammar, load_language
from codebatch_workers.syntax.patterns.finders import PatternError, pattern_finder
from codebatch_workers.syntax.source import SourceFile

_Finder = Callable[[SourceFile], Iterator[RuleMatch]]
_REPORT_CAPTURE = "report"
_MESSAGE_PLACEHOLDER = re.compile(r"\{([\w.-]+)\}")
_SHOWN_BYTES_MAX = 80


def compile_rule(rule: QueryRule) -> TextRule:
    """Compile a custom rule for lint.

    Raises ValueError if the rule is invalid, or does not determine what to report.
    """
    if rule.language not in every_language():
        raise ValueError(f"the rule {rule.id!r} is for {rule.language!r}, which has no grammar")
    finders: dict[str, _Finder] = {}
    for language in with_variants((rule.language,)):
        # If an optional grammar is not installed, the rule finds nothing. `run` reports the missing grammar.
        try:
            if has_grammar(language):
                finders[language] = _compile_finder(replace(rule, language=language))
        except ValueError:
            if language == rule.language:
                raise

    def find(file: SourceFile) -> Iterator[RuleMatch]:
        finder = finders.get(file.language)
        return iter(()) if finder is None else finder(file)

    return TextRule(code=rule.id, severity=rule.severity, summary=rule.message, find=find, is_style=True)


def _compile_finder(rule: QueryRule) -> _Finder:
    return _pattern_finder(rule) if rule.pattern else _query_finder(rule, *_compile_query(rule))


def _compile_query(rule: QueryRule) -> tuple[Query, str]:
    """Compile the query of a rule. Return it, and the name of the capture that it reports. Raises ValueError."""
    try:
        query = Query(load_language(rule.language), rule.query)
    except QueryError as error:
        raise ValueError(f"the query of the rule {rule.id!r} is not valid for {rule.language}: {error}") from error
    names = [query.capture_name(index) for index in range(query.capture_count)]
    open_names = [name for name in names if not name.startswith("_")]
    reported = _REPORT_CAPTURE if _REPORT_CAPTURE in names else open_names[0] if len(open_names) == 1 else None
    if reported is None:
        raise ValueError(f"the query of the rule {rule.id!r} must capture what to report as `@{_REPORT_CAPTURE}`")
    _check_message(rule, names, "query")
    return query, reported


def _check_message(rule: QueryRule, names: Collection[str], noun: str) -> None:
    for place in _MESSAGE_PLACEHOLDER.findall(rule.message):
        if place not in names:
            raise ValueError(f"the message of the rule {rule.id!r} uses `{place}`, which its {noun} does not capture")


def _pattern_finder(rule: QueryRule) -> _Finder:
    try:
        finder = pattern_finder(rule.pattern, rule.language)
    except PatternError as error:
        raise ValueError(f"the pattern of the rule {rule.id!r}: {error}; {error.hint}") from error
    _check_message(rule, finder.names, "pattern")
    message = _format_message(rule)

    def find(file: SourceFile) -> Iterator[RuleMatch]:
        if not file.can_be_parsed or file.is_hopeless:
            return
        if not all(literal in file.utf8 for literal in finder.literals):
            return
        for place in finder.find(file):
            spans = place.captures
            text = message(lambda name, spans=spans: _source_excerpt(file, *spans.get(name, (0, 0))))  # type: ignore[misc]
            yield place.start, place.end, text

    return find


def _query_finder(rule: QueryRule, query: Query, reported: str) -> _Finder:
    message = _format_message(rule)

    def find(file: SourceFile) -> Iterator[RuleMatch]:
        if not file.can_be_parsed:
            return
        findings: set[RuleMatch] = set()
        for captures in file.matches(query):
            text = message(lambda name, captures=captures: _nodes_text(file, captures.get(name, ())))  # type: ignore[misc]
            findings.update([(node.start_byte, node.end_byte, text) for node in captures.get(reported, ())])
        yield from sorted(findings)

    return find


def _format_message(rule: QueryRule) -> Callable[[Callable[[str], str]], str]:
    """Return a function that formats the message of a rule for one match.

    Its argument is a function that returns the text of a capture, given the name of the capture. The message is parsed
    only once, because a rule can have many matches.
    """
    parts = _MESSAGE_PLACEHOLDER.split(rule.message)
    words, names = parts[::2], parts[1::2]

    def message(capture_text: Callable[[str], str]) -> str:
        text = words[0]
        for name, literal in zip(names, words[1:], strict=True):
            text += capture_text(name) + literal
        return text

    return message


def _nodes_text(file: SourceFile, nodes: Sequence[Node]) -> str:
    if not nodes:
        return ""
    node = nodes[0] if len(nodes) == 1 else min(nodes, key=lambda node: (node.start_byte, node.end_byte))
    return _source_excerpt(file, node.start_byte, node.end_byte)


def _source_excerpt(file: SourceFile, start: int, end: int) -> str:
    text = file.utf8[start : min(end, start + _SHOWN_BYTES_MAX)]
    return text.decode("utf-8", "ignore").split("\n")[0].rstrip()
