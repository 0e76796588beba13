"""Syntax of Go."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tree_sitter import Node

from codebatch.model.record import SymbolType
from codebatch_workers.syntax.language_syntax import LanguageSyntax, MigrationFramework
from codebatch_workers.syntax.names import DeclaredName, plain_name

_METHOD_RECEIVER = re.compile(rb"\(\s*(?:[\w\x80-\xff]+\s+)?\*?\s*([\w\x80-\xff]+)")


def _declared_names(node: Node, symbol_type: SymbolType, utf8: bytes) -> list[DeclaredName]:
    """Return the name of a Go definition. The owner of a method is the type of its receiver."""
    owner = ""
    if node.type == "method_declaration":
        receiver = node.child_by_field_name("receiver")
        match = _METHOD_RECEIVER.match(utf8, receiver.start_byte, receiver.end_byte) if receiver is not None else None
        owner = match[1].decode("utf-8", "replace") if match else ""
    return plain_name(node.child_by_field_name("name"), symbol_type, owner)


SYNTAX: Mapping[str, LanguageSyntax] = {
    "go": LanguageSyntax(
        queries=("go",),
        binding_queries=("go",),
        declared_names=_declared_names,
        reserved_words=frozenset(
            b"break case chan const continue default defer else fallthrough for func go goto if import interface map "
            b"package range return select struct switch type var".split()
        ),
        comments=("//",),
        migrations=(MigrationFramework(b"goose.AddMigration"),),
    )
}
