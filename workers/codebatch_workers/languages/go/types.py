"""The types of variables, fields and results in Go, as far as the code states them.

A type is a name as written: `T`, `pkg.T`. For a variable whose value is the result of a call, it is the callee with the
number of the result and the offset of the callee in its file: `pkg.New()0@20`.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from codebatch_workers.syntax.names import NAME_BYTES_MAX

_NAME = re.compile(
    rb"\*?\s*([A-Za-z_\x80-\xff][\w\x80-\xff]*(?:\.[A-Za-z_\x80-\xff][\w\x80-\xff]*)?)(?:\[.*)?\Z", re.DOTALL
)
_CALLEE = re.compile(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*(?:\.[A-Za-z_\x80-\xff][\w\x80-\xff]*){0,3}\Z")
_NOT_NAMES = frozenset({b"chan", b"func", b"interface", b"map", b"struct"})
_RESULT = re.compile(r"(.+)\(\)(\d+)@(\d+)\Z")
_FUNCTIONS = frozenset({"function_declaration", "method_declaration", "method_elem"})


def go_type(name: Node, utf8: bytes) -> str:
    """Return the type of a variable, parameter or field. Return an empty string if it is unknown."""
    parent = name.parent
    if parent is None:
        return ""
    declared = parent.child_by_field_name("type")
    if declared is not None:
        return "" if parent.type == "variadic_parameter_declaration" else type_name(declared, utf8)
    statement = parent if parent.type in ("var_spec", "const_spec") else parent.parent
    if statement is None or statement.type not in ("short_var_declaration", "var_spec"):
        return ""
    left = statement.children_by_field_name("name") if statement.type == "var_spec" else parent.named_children
    values = statement.child_by_field_name("value" if statement.type == "var_spec" else "right")
    right = [] if values is None else [node for node in values.named_children if node.type != "comment"]
    index = next((index for index, node in enumerate(left) if node.start_byte == name.start_byte), 0)
    if len(right) == 1:
        return _value_type(right[0], utf8, index)
    return _value_type(right[index], utf8, 0) if index < len(right) == len(left) else ""


def _value_type(value: Node, utf8: bytes, index: int) -> str:
    """Return the type of a value, or of one of the results of a call."""
    if value.type == "unary_expression":
        operand = value.child_by_field_name("operand")
        is_address = utf8[value.start_byte : value.start_byte + 1] == b"&"
        return _value_type(operand, utf8, index) if is_address and operand is not None else ""
    if value.type in ("composite_literal", "type_assertion_expression") and index == 0:
        written = value.child_by_field_name("type")
        return "" if written is None else type_name(written, utf8)
    if value.type != "call_expression":
        return ""
    function, arguments = value.child_by_field_name("function"), value.child_by_field_name("arguments")
    callee = b"" if function is None else utf8[function.start_byte : function.end_byte][:NAME_BYTES_MAX]
    if callee == b"new" and arguments is not None and arguments.named_child_count == 1:
        return type_name(arguments.named_children[0], utf8)
    if function is None or not _CALLEE.match(callee):
        return ""
    return f"{callee.decode('utf-8', 'replace')}(){index}@{function.start_byte}"


def type_name(node: Node, utf8: bytes) -> str:
    """Return the name of a type, without its pointer and type arguments. Return an empty string for other types."""
    match = _NAME.match(utf8[node.start_byte : node.end_byte][:NAME_BYTES_MAX])
    return "" if match is None or match[1] in _NOT_NAMES else match[1].decode("utf-8", "replace")


def split_result(written: str) -> tuple[str, int, int] | None:
    """Return the callee, the number of the result, and the offset of the callee, if a type is the result of a call."""
    match = _RESULT.match(written)
    return None if match is None else (match[1], int(match[2]), int(match[3]))


def result_type(function: Node, utf8: bytes, index: int) -> str:
    """Return the declared type of a result of a function."""
    result = None if function.type not in _FUNCTIONS else function.child_by_field_name("result")
    if result is None:
        return ""
    if result.type != "parameter_list":
        return type_name(result, utf8) if index == 0 else ""
    types: list[Node] = []
    for declaration in result.named_children:
        written = declaration.child_by_field_name("type")
        if written is not None:
            types += [written] * max(len(declaration.children_by_field_name("name")), 1)
    return type_name(types[index], utf8) if index < len(types) else ""
