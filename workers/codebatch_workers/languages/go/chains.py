"""Chains of names in Go, with fields that are keys of composite literals."""

from __future__ import annotations

from tree_sitter import Node

from codebatch_workers.languages.go.types import type_name
from codebatch_workers.symbols.imported_names import node_text
from codebatch_workers.uses.chains import NameChain, node_chain

_ELEMENT_FIELDS = ("element", "value")
_LITERAL_LEVELS_MAX = 3


def go_chain(name: Node, utf8: bytes) -> NameChain | None:
    """Return the chain that ends with a name, or None if the name is not used.

    The key of a composite literal is a field: `name` in `T{name: 1}` is the chain `T.name`.
    """
    is_member = name.parent is not None and name.parent.type == "selector_expression"
    if name.type == "field_identifier" and not is_member:
        return None  # The definition of a field in a type without a name.
    return _keyed_field(name, utf8) or node_chain(name, utf8)


def _keyed_field(name: Node, utf8: bytes) -> NameChain | None:
    """Return the chain of a field that is the key of a composite literal: `T.name` for `T{name: 1}`.

    Return None for other names. The chain is open if the type of the literal is unknown.
    """
    element = name.parent
    keyed = element.parent if element is not None and element.type == "literal_element" else None
    if element is None or keyed is None or keyed.type != "keyed_element":
        return None
    if keyed.child_by_field_name("key") != element:
        return None
    literal, level = keyed.parent, 0
    while literal is not None and literal.parent is not None and literal.parent.type != "composite_literal":
        literal = literal.parent
        level += literal.type == "literal_value"
        if level > _LITERAL_LEVELS_MAX or literal.type not in ("literal_value", "literal_element", "keyed_element"):
            return None
    written = None if literal is None or literal.parent is None else literal.parent.child_by_field_name("type")
    text = node_text(name, utf8)
    for _ in range(level):
        written = None if written is None else _element_type(written)
    if written is None:
        return NameChain((text,), name.start_byte, True, False)
    if written.type in ("map_type", "array_type", "slice_type", "implicit_length_array_type"):
        return None
    owner = type_name(written, utf8)
    if not owner:
        return NameChain((text,), name.start_byte, True, False)
    return NameChain((*owner.split("."), text), name.start_byte, False, False)


def _element_type(written: Node) -> Node | None:
    """Return the type of the elements of an array, slice or map."""
    element = next((found for field in _ELEMENT_FIELDS if (found := written.child_by_field_name(field))), None)
    if element is not None and element.type == "pointer_type" and element.named_children:
        return element.named_children[0]
    return element
