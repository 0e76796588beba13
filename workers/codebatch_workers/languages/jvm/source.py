"""The text of Java and Kotlin."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tree_sitter import Node

from codebatch_workers.syntax.language_source import LanguageSource, TemplateMarks

# Marks of Velocity, as in Maven archetypes.
_JAVA_MARKS = re.compile(rb"(?<![\w\"'])\$\{[A-Za-z_][\w.]*\}")
_QUOTES_LENGTH = len(b'"""')
_TEXT_OR_COMMENT = re.compile(
    rb'//[^\n]*|/\*.*?(?:\*/|\Z)|\'(?:[^\'\\\n]|\\.)*\'|"""[^"]*(?:"{1,2}(?!")[^"]*)*("{3,})|"(?:[^"\\\n]|\\.)*"',
    re.DOTALL,
)


def _blank_final_quotes(utf8: bytes) -> bytes:
    """Replace quotes at the end of the content of a raw string by letters.

    A raw string ends with three quotes, but more can precede them. The grammar would end the string too early.
    """
    if b'""""' not in utf8:
        return utf8
    text = bytearray(utf8)
    for match in _TEXT_OR_COMMENT.finditer(utf8):
        start, end = match.span(1)
        if end - start > _QUOTES_LENGTH:
            text[start : end - _QUOTES_LENGTH] = b"_" * (end - start - _QUOTES_LENGTH)
    return bytes(text)


def _extend_kotlin_captures(captures: dict[str, list[Node]], utf8: bytes) -> dict[str, list[Node]]:
    """Add the guards in `when` to the decisions.

    The parser got a comma in place of the `if` of a guard (kotlin_gaps.py), so the query captures commas. Commas of the
    text separate conditions, and are left out.
    """
    guards = [node for node in captures.pop("guard", ()) if not utf8.startswith(b",", node.start_byte)]
    if guards:
        captures.setdefault("decision", []).extend(guards)
    return captures


SOURCE: Mapping[str, LanguageSource] = {
    "java": LanguageSource(
        template_marks=TemplateMarks(are_names=True, others=_JAVA_MARKS),
        parameter_nodes="formal_parameter spread_parameter",
    ),
    "kotlin": LanguageSource(repair=_blank_final_quotes, extend_captures=_extend_kotlin_captures),
}
