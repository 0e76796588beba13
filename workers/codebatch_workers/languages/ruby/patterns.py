"""Patterns and rewrites of Ruby."""

from __future__ import annotations

import re

from tree_sitter import Node

from codebatch_workers.syntax.patterns.language_patterns import LanguagePatterns, RuleExample, StatementStart
from codebatch_workers.syntax.patterns.operands import operator_of

_BLOCKS = frozenset({"body_statement", "block_body", "else", "parenthesized_statements", "program", "then"})


def _needs_parentheses(node: Node, parent: Node, is_operand: bool) -> bool | None:
    if node.type.endswith("_modifier") or operator_of(node) == "not":
        return parent.type not in _BLOCKS
    if node.type == "call" and _has_bare_arguments(node):
        return is_operand or any(child.type in (",", "[", ":") for child in parent.children)
    return None


def _has_bare_arguments(call: Node) -> bool:
    """Return whether a call has arguments without parentheses."""
    arguments = call.child_by_field_name("arguments")
    return arguments is not None and arguments.children[0].type != "("


PATTERNS = {
    "ruby": LanguagePatterns(
        example=RuleExample("puts $X", "puts is left in the code", "puts 1\n", "log 1\n"),
        stand_ins=("{n}", "{N}"),
        blocks=frozenset(
            {
                "program",
                "body_statement",
                "block_body",
                "then",
                "else",
                "ensure",
                "do",
                "begin",
                "begin_block",
                "end_block",
            }
        ),
        has_parentheses=True,
        needs_parentheses=_needs_parentheses,
        statement_start=StatementStart(re.compile(rb"\{"), _BLOCKS | {"argument_list"}),
    )
}
