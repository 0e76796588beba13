"""Places in which code needs parentheses that its grammar does not ask for.

Grammars accept more than languages do: `-a ** b` and `a || b ?? c` in JavaScript, `a == b == c` in Rust, `{a: 1}.b` at
the start of a statement. They also read a few forms differently: `(T) -a` in C#. So an operation that becomes the
operand of another one gets parentheses, except for common operators whose precedence is the same in all languages.
"""

from __future__ import annotations

import re
from collections.abc import Set

from tree_sitter import Node

from codebatch_workers.syntax.language_syntax import LanguageSyntax
from codebatch_workers.syntax.patterns.language_patterns import LanguagePatterns

_VALUES = r"arrow_function|assign|closure|lambda|yield"
_OPERATORS = (
    r"additive|as_expression|await|binary|cast|check_|clone|comparison|conditional|conjunction|disjunction|elvis"
    r"|equality|infix|instanceof|is_expression|is_pattern|multiplicative|not_|operator|pointer_expression|postfix_exp"
    r"|prefix_exp|^range$|range_exp|reference_expression|satisfies|ternary|unary|update"
)
_OPERATION = re.compile(f"{_VALUES}|{_OPERATORS}")
_OPERATOR = re.compile(f"(?!.*(?:{_VALUES})).*(?:{_OPERATORS})")
_POSTFIX = re.compile(
    r"^call$|call_expression|element_access|field_access|field_expression|extends_clause|heritage|index_expression|invocation|member|new_exp"
    r"|navigation|selector|subscript|try_expression|type_assertion"
)
_OPENINGS, _CLOSINGS = frozenset("([{"), frozenset(")]}")
_OPTIONAL_CHAINS = frozenset({"optional_chain", "?->"})
_COMPARISONS = frozenset({"!=", "!==", "<", "<=", "==", "===", ">", ">="})
_COMMON_OPERATORS = _COMPARISONS | {"%", "&&", "*", "+", "-", "/", "and", "or", "||"}


def is_operation(node: Node) -> bool:
    """Return whether a node is an expression that needs parentheses in many places."""
    return _OPERATION.search(node.type) is not None or "new_" in node.type or "creation" in node.type


def needs_parentheses(node: Node, language: str) -> bool:
    """Return whether an expression, a node of the new tree, needs parentheses because of the node around it."""
    parent, patterns = node.parent, LanguagePatterns.of(language)
    if parent is None or LanguageSyntax.of(language).has_exact_parser:
        return False
    is_postfix = _POSTFIX.search(parent.type) is not None
    is_operand = is_postfix or _OPERATOR.match(parent.type) is not None
    if patterns.needs_parentheses is not None:
        is_decided = patterns.needs_parentheses(node, parent, is_operand)
        if is_decided is not None:
            return is_decided
    if parent.type == "let_condition" or (
        parent.type == "let_declaration" and parent.child_by_field_name("alternative")
    ):
        return is_operation(node) or (node.text or b"").endswith(b"}")
    if not is_operand or _is_between(node, _OPENINGS, _CLOSINGS):
        return False
    if is_postfix and (node.type in patterns.grouped_operands or _has_optional_chain(node)):
        return True
    if not _OPERATION.search(node.type) or not node.children:
        return False
    inner, outer = operator_of(node), operator_of(parent)
    if is_postfix or (inner in _COMPARISONS and outer in _COMPARISONS):
        return True
    if inner == "!":
        return outer not in ("&&", "||")
    return node.child_count != 3 or inner not in _COMMON_OPERATORS or outer not in _COMMON_OPERATORS | {"?"}


def needs_parentheses_at_start(old: Node, code: bytes, language: str) -> bool:
    """Return whether an expression needs parentheses because a statement begins with it.

    `code` replaces `old`, a node of the old tree.
    """
    start = LanguagePatterns.of(language).statement_start
    if start is None or not start.code.match(code):
        return False
    node: Node | None = old.parent
    is_whole = True
    while node is not None and node.start_byte == old.start_byte and node.type not in start.parents:
        is_whole = is_whole and node.end_byte == old.end_byte
        node = node.parent
    if node is None or node.type not in start.parents:
        return False
    if node.type == "argument_list" and node.start_byte != old.start_byte:
        return False  # It has parentheses.
    return not (start.is_statement and is_whole)


def _is_between(node: Node, before: Set[str], after: Set[str]) -> bool:
    """Return whether the tokens before and after a node are of some types."""
    siblings = (node.prev_sibling, before), (node.next_sibling, after)
    return all(sibling is not None and sibling.type in types for sibling, types in siblings)


def operator_of(node: Node) -> str:
    """Return the first token of a node, which is its operator if it has one."""
    return next((child.type for child in node.children if not child.is_named), "")


def _has_optional_chain(node: Node) -> bool:
    """Return whether the rest of a chain of calls and members would be skipped because of a `?.` in it."""
    while node.children and _POSTFIX.search(node.type):
        if any(child.type in _OPTIONAL_CHAINS for child in node.children):
            return True
        node = node.children[0]
    return False
