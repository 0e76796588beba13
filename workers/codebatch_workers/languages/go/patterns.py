"""Patterns and rewrites of Go."""

from __future__ import annotations

from tree_sitter import Node

from codebatch_workers.syntax.patterns.language_patterns import NO_CONTEXT, LanguagePatterns, RuleExample

_HEADERS = frozenset(
    {
        "expression_switch_statement",
        "for_clause",
        "for_statement",
        "if_statement",
        "range_clause",
        "type_switch_statement",
    }
)
_BRACKETED = frozenset({"argument_list", "block", "parenthesized_expression", "statement_list"})


def _needs_parentheses(node: Node, _parent: Node, _is_operand: bool) -> bool | None:
    return True if _ends_with_composite(node) and _is_in_header(node) else None


def _ends_with_composite(node: Node) -> bool:
    """Return whether code ends with a value such as `T{}`."""
    while node.children and node.type != "composite_literal":
        node = node.children[-1]
    return node.type == "composite_literal"


def _is_in_header(node: Node) -> bool:
    """Return whether a node is in a header, in which `{` begins the block if it is not in brackets."""
    parent = node.parent
    while parent is not None and parent.type not in _HEADERS:
        if parent.type in _BRACKETED or parent.type.endswith("_literal"):
            return False
        node, parent = parent, parent.parent
    return parent is not None and node.type != "block"


PATTERNS = {
    "go": LanguagePatterns(
        example=RuleExample(
            "fmt.Println($$$)",
            "fmt.Println is left in the code",
            "package a\n\nfunc f() { fmt.Println(1) }\n",
            "package a\n\nfunc f() { log.Println(1) }\n",
        ),
        stand_ins=("{n}", "{n} {N}", '"{n}"', "case {n}:"),
        # As a whole file, `a.f(x)` would be a conversion. So it is first parsed in a function.
        contexts=(("func f() {\n", "\n}"), NO_CONTEXT, ("var x ", "")),
        blocks=frozenset({"source_file", "statement_list"}),
        statement_expressions=frozenset({"call_expression", "unary_expression"}),
        refused_changes=dict.fromkeys(("defer_statement", "go_statement"), frozenset()),
        has_parentheses=True,
        needs_parentheses=_needs_parentheses,
    )
}
