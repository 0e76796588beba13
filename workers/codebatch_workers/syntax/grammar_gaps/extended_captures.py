"""Captures that depend on the nodes around a node. They are derived from the captures of these outer nodes.

Queries could find them, too. But such patterns run slowly in Python, and compile slowly in C++. The outer nodes are
few.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter

from tree_sitter import Node

from codebatch_workers.syntax.language_syntax import language_syntax

# Types of nodes that are parameters if they are in the field `parameters` of a function. In all other languages, the
# query captures parameters.
_PARAMETER_NODES = {
    language: frozenset(types.split())
    for language, types in {
        "csharp": "parameter",
        "java": "formal_parameter spread_parameter",
        "javascript": "array_pattern assignment_pattern identifier object_pattern rest_pattern",
        "lua": "identifier vararg_expression",
        "php": "property_promotion_parameter simple_parameter variadic_parameter",
        "python": "default_parameter dictionary_splat_pattern identifier list_splat_pattern typed_default_parameter "
        "typed_parameter",
        "ruby": "block_parameter destructured_parameter hash_splat_parameter identifier keyword_parameter "
        "optional_parameter splat_parameter",
        "rust": "parameter self_parameter",
        "tsx": "optional_parameter required_parameter",
        "typescript": "optional_parameter required_parameter",
    }.items()
}
# In these languages, the default of a parameter can be a function, and the parameter of `x => x` is in another field.
# So parameters are not found in text order, and must be sorted.
_JAVASCRIPT_LANGUAGES = frozenset({"javascript", "tsx", "typescript"})
_start_byte = attrgetter("start_byte")

_CAPTURE_BY_NODE = {
    "class_specifier": "def.class",
    "enum_specifier": "def.enum",
    "struct_specifier": "def.struct",
    "union_specifier": "def.union",
}
# Types of declarations that `static` hides from other files. A static member of a class has another type, and stays
# visible.
_STATIC_DECLARATIONS = frozenset({"declaration", "function_definition"})


def extended_captures(captures: dict[str, list[Node]], utf8: bytes, language: str) -> Mapping[str, list[Node]]:
    """Return the captures of a query, with those added that are derived from them.

    The added captures are parameters, and in C and C++ also types and storage classes.
    """
    if language_syntax(language).has_macros:
        return _enclosing_c_captures(captures, utf8)
    # Guards in Kotlin's `when` are left out. The parser got a comma in place of their `if` (kotlin.py), so they look
    # like further conditions.
    guards = [node for node in captures.pop("guard", ()) if not utf8.startswith(b",", node.start_byte)]
    if guards:
        captures.setdefault("decision", []).extend(guards)
    types = _PARAMETER_NODES.get(language)
    functions = captures.get("function")
    if types is None or functions is None:
        return captures
    parameters = captures.get("parameter", [])
    for function in functions:
        declared = function.child_by_field_name("parameters")
        if declared is not None:
            parameters += [node for node in declared.named_children if node.type in types]
    if language in _JAVASCRIPT_LANGUAGES:
        parameters.sort(key=_start_byte)
    return {**captures, "parameter": parameters} if parameters else captures


def _enclosing_c_captures(captures: dict[str, list[Node]], utf8: bytes) -> Mapping[str, list[Node]]:
    """Return the captures, with parameters added, and `typedef` and `storage` replaced.

    `def.…` replaces `typedef`. `visibility` and `declared` replace `storage`.
    """
    parameters = [node for function in captures.get("function", ()) for node in _c_parameters(function)]
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
    declared = [node for declaration in externs.values() for node in declaration.children_by_field_name("declarator")]
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


def _c_parameters(function: Node) -> list[Node]:
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
