"""Syntax of Java, Kotlin and Scala."""

from __future__ import annotations

import re

from tree_sitter import Node

from codebatch.model.record import SymbolType
from codebatch_workers.syntax.language_syntax import LanguageSyntax, MigrationFramework, TemplateMarks
from codebatch_workers.syntax.names import DeclaredName, names_by_field

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


_MIGRATIONS = (
    MigrationFramework(b"JavaMigration", (re.compile(rb"(?:\bextends|\bimplements|:)\s*(?:Base)?JavaMigration\b"),)),
)
_SCALA_PATTERNS = frozenset({"identifiers", "infix_pattern", "tuple_pattern", "typed_pattern"})


def _scala_names(node: Node, symbol_type: SymbolType, utf8: bytes) -> list[DeclaredName]:
    """Return the name of a Scala definition, or all names that the pattern of a `val` binds."""
    if symbol_type != "variable":
        return names_by_field(node, symbol_type, utf8)
    names = []
    pending = [node]
    while pending:
        node = pending.pop()
        children = node.named_children
        if node.type == "identifier":
            # In a pattern, Scala compares a capitalized name and does not bind it. The name is included nevertheless.
            names.append(DeclaredName(node.start_byte, node.end_byte, symbol_type, ""))
        elif node.type == "case_class_pattern":
            pending += children[1:]
        elif node.type in _SCALA_PATTERNS or node.type == "capture_pattern":
            pending += children[:1] if node.type == "typed_pattern" else children
    return names


SYNTAX = {
    "java": LanguageSyntax(
        queries=("java",),
        binding_queries=("java",),
        declared_names=names_by_field,
        reserved_words=frozenset(
            b"abstract assert boolean break byte case catch char class const continue default do double else enum "
            b"extends final finally float for goto if implements import instanceof int interface long native new "
            b"package private protected public return short static super switch synchronized this throw throws "
            b"transient try void volatile while".split()
        ),
        comments=("//",),
        migrations=_MIGRATIONS,
        template_marks=TemplateMarks(are_names=True, others=_JAVA_MARKS),
        parameter_nodes=frozenset({"formal_parameter", "spread_parameter"}),
    ),
    "kotlin": LanguageSyntax(
        is_approximate=True,
        queries=("kotlin",),
        binding_queries=("kotlin",),
        declared_names=names_by_field,
        name_marks=(b"`",),
        comments=("//",),
        migrations=_MIGRATIONS,
        repair=_blank_final_quotes,
        extend_captures=_extend_kotlin_captures,
    ),
    "scala": LanguageSyntax(
        is_approximate=True,
        queries=("scala",),
        binding_queries=("scala",),
        declared_names=_scala_names,
        name_marks=(b"`",),
        comments=("//",),
    ),
}
