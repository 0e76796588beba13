"""The names that declarators of C and C++ define."""

from __future__ import annotations

import re

from tree_sitter import Node

from codebatch.model.record import SymbolType
from codebatch_workers.syntax.names import DeclaredName, identifier_names, plain_name, strip_generics

_C_NAME_NODES = frozenset({"identifier", "field_identifier", "type_identifier", "primitive_type"})
_CPP_NAME_NODES = frozenset(
    {"destructor_name", "operator_name", "operator_cast", "qualified_identifier", "template_function"}
)
_DECLARATOR_NODES = _C_NAME_NODES | _CPP_NAME_NODES | {"structured_binding_declarator"}
_INLINE_KEYWORD = re.compile(rb"\binline\b")


def c_names(node: Node, symbol_type: SymbolType, utf8: bytes) -> list[DeclaredName]:
    """Return the names that `cpp_names` returns, except for functions that a struct declares as members."""
    return [name for name in cpp_names(node, symbol_type, utf8) if symbol_type == name.symbol_type]


def cpp_names(node: Node, symbol_type: SymbolType, utf8: bytes) -> list[DeclaredName]:
    """Return the name that a declarator in C or C++ defines.

    For example, `(*names[3])(void)` defines `names`. A prototype such as `int f(void);` defines nothing.
    """
    name = node.child_by_field_name("name")
    if name is not None and name.type == "nested_namespace_specifier":
        text = b"".join(_INLINE_KEYWORD.sub(b"", utf8[name.start_byte : name.end_byte]).split())
        return [DeclaredName(name.start_byte, name.end_byte, symbol_type, "", text.decode("utf-8", "replace"))]
    if name is not None and node.type not in _DECLARATOR_NODES:
        return (
            _qualified_name(name, symbol_type, utf8) if name.type in _CPP_NAME_NODES else plain_name(name, symbol_type)
        )
    declarator = node.child_by_field_name("declarator") if node.type.endswith("_definition") else node
    inner, is_function = _declared_node(declarator)
    if inner is None:
        return []
    if inner.type == "structured_binding_declarator":
        return identifier_names(inner, symbol_type, frozenset({inner.type}), frozenset({"identifier"}))
    if inner.type == "operator_cast":
        to = inner.child_by_field_name("declarator")
        end = inner.end_byte if to is None else to.start_byte
        text = utf8[inner.start_byte : end].rstrip()
        return [
            DeclaredName(inner.start_byte, inner.start_byte + len(text), "method" if is_function else symbol_type, "")
        ]
    if is_function:
        if symbol_type == "variable":
            return []
        if symbol_type == "field":
            symbol_type = "method"
    return (
        _qualified_name(inner, symbol_type, utf8) if inner.type in _CPP_NAME_NODES else plain_name(inner, symbol_type)
    )


def _declared_node(node: Node | None) -> tuple[Node | None, bool]:
    """Return the node that a declarator declares, and whether it is a function.

    A pointer to a function is not a function.
    """
    is_function = False
    while node is not None and node.type not in _DECLARATOR_NODES:
        inner = node.child_by_field_name("declarator")
        if node.type == "function_declarator":
            # `(*f)(int)` declares a pointer. `(f)(int)` declares a function. The parentheses around its name prevent
            # the expansion of a macro `f`.
            in_brackets = (
                inner.named_child(0) if inner is not None and inner.type == "parenthesized_declarator" else None
            )
            is_function = inner is not None and (in_brackets is None or in_brackets.type in _DECLARATOR_NODES)
        if inner is None:
            inner = next(
                (
                    child
                    for child in node.named_children
                    if child.type.endswith("declarator") or child.type in _DECLARATOR_NODES
                ),
                None,
            )
        node = inner
    return node, is_function or (node is not None and node.type == "operator_cast")


def _qualified_name(node: Node, symbol_type: SymbolType, utf8: bytes) -> list[DeclaredName]:
    """Return the last part of a qualified name, with its owner: `name`, owned by `Outer`, for `Outer<T>::name`."""
    text = utf8[node.start_byte : node.end_byte]
    # The innermost `qualified_identifier` contains the part after the last `::` that is not in angle brackets.
    start = node.start_byte
    while node.type == "qualified_identifier":
        inner = node.child_by_field_name("name")
        if inner is None:
            break
        node = inner
    owner = strip_generics(text[: node.start_byte - start]).rstrip(b": \t\r\n")
    if node.type == "template_function":
        node = node.child_by_field_name("name") or node
    return [
        DeclaredName(node.start_byte, node.end_byte, symbol_type, b"".join(owner.split()).decode("utf-8", "replace"))
    ]
