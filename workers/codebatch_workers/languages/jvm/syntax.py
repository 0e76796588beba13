"""Syntax of Java, Kotlin and Scala."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tree_sitter import Node

from codebatch.model.record import SymbolType
from codebatch_workers.syntax.language_syntax import LanguageSyntax, MigrationFramework
from codebatch_workers.syntax.names import DeclaredName, names_by_field

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


SYNTAX: Mapping[str, LanguageSyntax] = {
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
    ),
    "kotlin": LanguageSyntax(
        is_approximate=True,
        queries=("kotlin",),
        binding_queries=("kotlin",),
        declared_names=names_by_field,
        name_marks=(b"`",),
        comments=("//",),
        migrations=_MIGRATIONS,
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
