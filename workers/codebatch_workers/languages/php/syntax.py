"""Syntax of PHP."""

from __future__ import annotations

import re

from tree_sitter import Node

from codebatch.model.record import SymbolType
from codebatch_workers.syntax.language_syntax import LanguageSyntax, MigrationFramework, TemplateMarks
from codebatch_workers.syntax.names import DeclaredName, plain_name


def _declared_names(node: Node, symbol_type: SymbolType, _utf8: bytes) -> list[DeclaredName]:
    """Return the name of a PHP definition. For a closure, this is the variable to which it is assigned, without `$`."""
    if node.type not in ("anonymous_function", "arrow_function"):
        return plain_name(node.child_by_field_name("name"), symbol_type)
    left = node.parent.child_by_field_name("left") if node.parent is not None else None
    return plain_name(left.named_child(0), symbol_type) if left is not None else []


SYNTAX = {
    "php": LanguageSyntax(
        queries=("php",),
        binding_queries=("php",),
        declared_names=_declared_names,
        comments=("#", "//"),
        embedded_languages={"text": "html"},
        migrations=(
            # Laravel, Doctrine, Phinx, Yii.
            MigrationFramework(
                b"Migration",
                (
                    re.compile(rb"\bextends\s+\\?(?:\w+\\)*\w*Migration\b"),
                    re.compile(rb"\bfunction\s+(?:up|change|safeUp)\s*\("),
                ),
            ),
        ),
        template_marks=TemplateMarks(are_names=True),
        parameter_nodes=frozenset({"property_promotion_parameter", "simple_parameter", "variadic_parameter"}),
    )
}
