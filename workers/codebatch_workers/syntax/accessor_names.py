"""Names for functions that the source does not name: accessors, operators, indexers, initializers and destructors."""

from __future__ import annotations

from tree_sitter import Node

from codebatch_workers.syntax.names import NAME_BYTES_MAX

_ACCESSOR_OWNERS = frozenset(
    {
        "event_declaration",
        "indexer_declaration",
        "property_declaration",
        "property_promotion_parameter",
        "subscript_declaration",
    }
)
_VARIABLE_NODES = frozenset({"property_element", "variable_declaration"})
_ACCESSOR_NAMES = {
    "anonymous_initializer": "init",
    "indexer_declaration": "this",
    "secondary_constructor": "constructor",
    "subscript_declaration": "subscript",
}


def accessor_name(node: Node, utf8: bytes) -> str:
    """Return a name for a function that the source does not name.

    The name is an operator, a keyword, or the name of the property to which an accessor belongs.
    """
    kind = node.type
    if kind in _ACCESSOR_NAMES:
        return _ACCESSOR_NAMES[kind]
    if kind in ("operator_declaration", "conversion_operator_declaration"):
        operator = node.child_by_field_name("operator") or node.child_by_field_name("type")
        return "operator" if operator is None else f"operator {_node_text(operator, utf8)}"
    if kind == "destructor_declaration":
        name = node.child_by_field_name("name")
        return "~" if name is None else f"~{_node_text(name, utf8)}"
    owner = node.parent
    while owner is not None and owner.type not in _ACCESSOR_OWNERS:
        owner = owner.parent
    if owner is None:
        return kind
    if owner.type in _ACCESSOR_NAMES:
        return _ACCESSOR_NAMES[owner.type]
    name = owner.child_by_field_name("name")
    if name is None:
        variable = next((child for child in owner.named_children if child.type in _VARIABLE_NODES), None)
        name = None if variable is None else variable.named_child(0)
    return kind if name is None else _node_text(name, utf8).removeprefix("$")


def _node_text(node: Node, utf8: bytes) -> str:
    return utf8[node.start_byte : node.end_byte][:NAME_BYTES_MAX].decode("utf-8", "replace")
