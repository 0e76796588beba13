"""The types of variables, fields and results in Rust, as far as the code states them.

A type is a path as written: `T`, `a::T`, `Self`. For a variable whose value is the result of a call, it is the path of
the function with `()`: `T::new()`.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from codebatch_workers.syntax.names import NAME_BYTES_MAX

_PATH = re.compile(rb"(?:[A-Za-z_]\w*::)*[A-Za-z_]\w*\Z")
_PATH_NODES = frozenset({"identifier", "scoped_identifier", "scoped_type_identifier", "type_identifier"})
_DECLARATIONS = frozenset({"field_declaration", "let_declaration", "parameter", "const_item", "static_item"})
_CALL_MARK = "()"


def rust_type(name: Node, utf8: bytes) -> str:
    """Return the type of a variable, parameter, constant or field. Return an empty string if it is unknown."""
    declaration = name.parent
    if declaration is not None and declaration.type == "mut_pattern":
        declaration = declaration.parent
    if declaration is None or declaration.type not in _DECLARATIONS:
        return ""
    declared = declaration.child_by_field_name("type")
    if declared is not None:
        return rust_type_path(declared, utf8)
    value = declaration.child_by_field_name("value") if declaration.type == "let_declaration" else None
    while value is not None and value.type == "reference_expression":
        value = value.child_by_field_name("value")
    if value is None:
        return ""
    if value.type == "struct_expression":
        constructed = value.child_by_field_name("name")
        return "" if constructed is None else rust_type_path(constructed, utf8)
    function = value.child_by_field_name("function") if value.type == "call_expression" else None
    path = "" if function is None or function.type not in _PATH_NODES else _path(function, utf8)
    return f"{path}{_CALL_MARK}" if path else ""


def called_function(written: str) -> str:
    """Return the path of the function if a type is the result of a call. Otherwise, return an empty string."""
    return written.removesuffix(_CALL_MARK) if written.endswith(_CALL_MARK) else ""


def rust_type_path(node: Node, utf8: bytes) -> str:
    """Return the path of a type without references and type arguments. Return an empty string for other types."""
    if node.type in ("reference_type", "generic_type"):
        inner = node.child_by_field_name("type")
        return "" if inner is None else rust_type_path(inner, utf8)
    return _path(node, utf8) if node.type in _PATH_NODES else ""


def rust_result_type(function: Node, utf8: bytes) -> str:
    """Return the path of the declared result of a function."""
    if function.type not in ("function_item", "function_signature_item"):
        return ""
    result = function.child_by_field_name("return_type")
    return "" if result is None else rust_type_path(result, utf8)


def _path(node: Node, utf8: bytes) -> str:
    text = utf8[node.start_byte : node.end_byte][:NAME_BYTES_MAX]
    return text.decode("utf-8", "replace") if _PATH.match(text) else ""
