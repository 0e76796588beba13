"""The names that a callee calls, also if the callee is more than a chain of names.

Examples are `(f)()`, `(x ? f : g)()`, `f!()`, `((T) f)()`, `f::<T>()` and `a.template f<T>()`. Without this module, a
call and its occurrence could disagree: relations.py takes the chain of names from it, references.py the place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tree_sitter import Node

from codebatch_workers.symbols.language_symbols import LanguageSymbols
from codebatch_workers.syntax.source import SourceFile

_FIRST, _LAST, _BRANCHES = "first", "last", "branches"
# Nodes with the value of an inner node: its field, or its place among the named children.
_VALUE_NODES: Mapping[str, str] = {
    "as_expression": _FIRST,
    "assignment_expression": "right",
    "binary_expression": _BRANCHES,
    "boolean_operator": _BRANCHES,
    "cast_expression": "value",
    "comma_expression": "right",
    "conditional_expression": _BRANCHES,
    "index_expression": "operand",
    "named_expression": "value",
    "non_null_expression": _FIRST,
    "parenthesized_expression": _LAST,
    "parenthesized_type": _LAST,
    "pointer_expression": "argument",
    "postfix_expression": "target",
    "postfix_unary_expression": _FIRST,
    "reference_expression": "value",
    "satisfies_expression": _FIRST,
    "sequence_expression": _LAST,
    "subscript": "value",
    "ternary_expression": _BRANCHES,
    "tuple_expression": _LAST,
    "type_assertion": _LAST,
    "type_cast_expression": "value",
    "unary_expression": _LAST,
}
# Nodes with the name of an inner node: its field, or the last named child before type arguments.
_NAME_NODES: Mapping[str, str] = {
    "conditional_access_expression": _LAST,
    "dependent_name": _LAST,
    "field_expression": "field",
    "generic_function": "function",
    "generic_name": _LAST,
    "generic_type": _LAST,
    "member_access_expression": "name",
    "member_binding_expression": "name",
    "qualified_identifier": "name",
    "qualified_name": "name",
    "relative_name": _LAST,
    "scoped_type_identifier": _LAST,
    "template_function": "name",
    "template_method": "name",
    "template_type": "name",
    "user_type": _LAST,
}
_OPERATORS_OF_ONE_OPERAND = frozenset({b"&&", b"and"})
_OPERATORS_OF_TWO_OPERANDS = frozenset({b"||", b"or", b"??", b"?:"})
_DEPTH_MAX = 8
_IGNORED_NODE = re.compile(r"comment|type_argument")
_CLASS_NAME = re.compile(rb"(?:.*\.)?_*[A-Z][A-Z0-9]*[a-z]|(?:.*\.)?[A-Z]\Z", re.DOTALL)


def called_values(callee: Node) -> Iterator[Node]:
    """Yield the expressions whose value a callee may have, in text order. For most callees, this is the node itself."""
    pending = [(callee, 0)]
    while pending:
        node, depth = pending.pop()
        inner = _inner_values(node) if depth < _DEPTH_MAX else None
        if inner is None:
            yield node
        else:
            pending += [(value, depth + 1) for value in reversed(inner)]


def last_name(value: Node) -> Node:
    """Return the node that ends with the last name of a chain of names: `f` of `a.f`, `a::f::<T>` and `a.f<T>`."""
    for _ in range(_DEPTH_MAX):
        step = _NAME_NODES.get(value.type)
        inner = None if step is None else _inner_node(value, step)
        if inner is None:
            break
        value = inner
    return value


def unmarked_calls(file: SourceFile) -> tuple[tuple[int, int], ...]:
    """Return the ranges of called chains of names for which the grammar has no call, in text order."""
    read = LanguageSymbols.of(file.language).unmarked_calls
    return () if read is None else file.derived(read)


def called_name_ends(callee: Node) -> Iterator[int]:
    """Yield the end offset of each name that a callee may call."""
    for value in called_values(callee):
        yield last_name(value).end_byte


def _inner_values(node: Node) -> list[Node] | None:
    """Return the inner nodes that can be the value of a node. Return None if the node is itself a value."""
    step = _VALUE_NODES.get(node.type)
    if step is None:
        return None
    if step == _BRANCHES:
        return _branches(node)
    inner = _inner_node(node, step)
    if inner is None or (node.type == "subscript" and _CLASS_NAME.match(inner.text or b"") is None):
        return None  # An element of a collection, not a class with type arguments.
    return [inner]


def _branches(node: Node) -> list[Node] | None:
    """Return the nodes of which one is the value of a conditional or logical expression."""
    operands = [child for child in node.named_children if not _IGNORED_NODE.search(child.type)]
    if len(operands) < 2:
        return None
    left, right = operands[0], operands[-1]
    if not node.type.startswith(("conditional", "ternary")):
        operator = next((child.text for child in node.children if not child.is_named), None)
        if operator in _OPERATORS_OF_ONE_OPERAND:
            return [right]
        return [left, right] if operator in _OPERATORS_OF_TWO_OPERANDS else None
    middle = node.child_by_field_name("consequence") or node.child_by_field_name("body")
    # In Python, the condition is between the two values.
    return [middle or left, right]


def _inner_node(node: Node, step: str) -> Node | None:
    if step not in (_FIRST, _LAST):
        return node.child_by_field_name(step)
    children = [child for child in node.named_children if not _IGNORED_NODE.search(child.type)]
    if not children:
        return None
    return children[0 if step == _FIRST else -1]
