"""The names that definitions, parameters and declarators of JavaScript and TypeScript bind."""

from __future__ import annotations

from tree_sitter import Node

from codebatch.model.record import SymbolType
from codebatch_workers.syntax.names import DeclaredName, identifier_names, plain_name

_PATTERNS = frozenset({"object_pattern", "array_pattern", "rest_pattern"})
_LEAVES = frozenset({"identifier", "shorthand_property_identifier_pattern"})
_FIELDS = {"assignment_pattern": "left", "object_assignment_pattern": "left", "pair_pattern": "value"}


def bound_names(node: Node) -> list[tuple[int, int]]:
    """Return the ranges of the names that a parameter or declarator binds.

    Names in default values and types are not bound.
    """
    if node.type in ("required_parameter", "optional_parameter"):
        node = node.child_by_field_name("pattern") or node
    leaves = _LEAVES | {"type_identifier"}
    return [(name.start, name.end) for name in identifier_names(node, "variable", _PATTERNS, leaves, _FIELDS)]


def declared_names(node: Node, symbol_type: SymbolType, utf8: bytes) -> list[DeclaredName]:
    """Return the names of a definition in JavaScript or TypeScript.

    They are all names in a destructuring pattern, or the last name in the target of an assignment.
    """
    if node.type == "assignment_expression":
        left = node.child_by_field_name("left")
        if left is not None and left.type == "member_expression":
            left = left.child_by_field_name("property")
        return plain_name(left, symbol_type)
    name = node.child_by_field_name("name")
    if name is None:
        is_default = node.parent is not None and node.parent.type == "export_statement"
        return [DeclaredName(node.start_byte, node.start_byte + 1, symbol_type, "", "default")] if is_default else []
    if name.type in _PATTERNS:
        return identifier_names(name, symbol_type, _PATTERNS, _LEAVES, _FIELDS)
    if name.type == "string":
        return [DeclaredName(name.start_byte + 1, name.end_byte - 1, symbol_type, "")]
    if name.type == "computed_property_name":
        return []
    if symbol_type == "method" and utf8[name.start_byte : name.end_byte] == b"constructor":
        symbol_type = "constructor"
    return plain_name(name, symbol_type)
