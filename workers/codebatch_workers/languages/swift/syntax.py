"""Syntax of Swift."""

from __future__ import annotations

from tree_sitter import Node

from codebatch.model.record import SymbolType
from codebatch_workers.syntax.language_syntax import LanguageSyntax
from codebatch_workers.syntax.names import DeclaredName, names_by_field, plain_name


def _declared_names(node: Node, symbol_type: SymbolType, utf8: bytes) -> list[DeclaredName]:
    """Return the name of a Swift definition. For `deinit` and `subscript`, the name is this keyword."""
    if node.type in ("deinit_declaration", "subscript_declaration"):
        word = next((child for child in node.children if child.type in ("deinit", "subscript")), None)
        return plain_name(word, symbol_type)
    return names_by_field(node, symbol_type, utf8)


SYNTAX = {
    "swift": LanguageSyntax(
        is_approximate=True,
        queries=("swift",),
        binding_queries=("swift",),
        declared_names=_declared_names,
        name_marks=(b"`",),
        comments=("//",),
    )
}
