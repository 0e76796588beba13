"""Captures of C and C++ that depend on the nodes around a node: parameters, types and storage classes.

Queries could find them, too. But such patterns compile slowly in C++.
"""

from __future__ import annotations

from collections.abc import Mapping

from tree_sitter import Node

_CAPTURE_BY_NODE = {
    "class_specifier": "def.class",
    "enum_specifier": "def.enum",
    "struct_specifier": "def.struct",
    "union_specifier": "def.union",
}
# Types of declarations that `static` hides from other files. A static member of a class has another type, and stays
# visible.
_STATIC_DECLARATIONS = frozenset({"declaration", "function_definition"})


def extend_captures(captures: dict[str, list[Node]], utf8: bytes) -> Mapping[str, list[Node]]:
    """Return the captures, with parameters added, and `typedef` and `storage` replaced.

    `def.…` replaces `typedef`. `visibility` and `declared` replace `storage`.
    """
    parameters = [node for function in captures.get("function", ()) for node in _parameters_of(function)]
    for typedef in captures.pop("typedef", ()):
        if name := _CAPTURE_BY_NODE.get(_body_type(typedef)):
            captures.setdefault(name, []).append(typedef)
    hidden: list[Node] = []
    externs: dict[int, Node] = {}
    for node in captures.pop("storage", ()):
        parent = node.parent
        if parent is None:
            continue
        is_static = parent.type in _STATIC_DECLARATIONS and utf8.startswith(b"static", node.start_byte)
        if is_static and not _is_prototype(parent):
            hidden.append(node)
        if parent.type == "declaration" and utf8.startswith(b"extern", node.start_byte):
            externs[parent.id] = parent  # A declaration is added once, even if it repeats `extern`.
    declarators = (node for parent in externs.values() for node in parent.children_by_field_name("declarator"))
    declared = [node for node in declarators if node.type != "init_declarator"]  # A value makes it a definition.
    added = {"parameter": parameters, "visibility": hidden, "declared": declared}
    return {**captures, **{name: nodes for name, nodes in added.items() if nodes}}


def _is_prototype(declaration: Node) -> bool:
    """Return whether a declaration only declares a function: `static int f(void);`."""
    declarator = declaration.child_by_field_name("declarator") if declaration.type == "declaration" else None
    while declarator is not None and declarator.type == "pointer_declarator":
        declarator = declarator.child_by_field_name("declarator")
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    is_function = declarator is not None and declarator.type == "function_declarator"
    return is_function and name is not None and name.type == "identifier"


def _body_type(typedef: Node) -> str:
    """Return the node type of the type that a `typedef` defines, if this type has no name of its own.

    Otherwise, return an empty text.
    """
    type_node = typedef.child_by_field_name("type")
    if (
        type_node is None
        or type_node.child_by_field_name("body") is None
        or type_node.child_by_field_name("name") is not None
    ):
        return ""
    return type_node.type


def _parameters_of(function: Node) -> list[Node]:
    """Return the parameters of a function.

    If the function returns a function pointer, the parameters of this pointer are left out.
    """
    declarator = function.child_by_field_name("declarator")
    parameters = None
    while declarator is not None:
        parameters = declarator.child_by_field_name("parameters") or parameters
        declarator = declarator.child_by_field_name("declarator") or next(
            (child for child in declarator.named_children if child.type.endswith("_declarator")), None
        )
    return [] if parameters is None else [node for node in parameters.named_children if not node.is_error]
