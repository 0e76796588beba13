"""What is captured in C and C++ for what stands around it: by its nodes, of which there are few.

A query could say it too. But what its patterns say of parents and children costs a process that compiles them for C++
40 ms, half of all that the query does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

_TYPES = {
    "class_specifier": "def.class",
    "enum_specifier": "def.enum",
    "struct_specifier": "def.struct",
    "union_specifier": "def.union",
}
# `static` hides these; a member of a class is seen as any other.
_HIDDEN = frozenset({"declaration", "function_definition"})


def captured(found: dict[str, list[Node]], utf8: bytes) -> Mapping[str, list[Node]]:
    """`found`, and what `function`, `typedef` and `storage` are: `parameter`, `def.…`, `visibility` and `declared`."""
    parameters = [node for function in found.get("function", ()) for node in _parameters(function)]
    for typedef in found.pop("typedef", ()):
        if name := _TYPES.get(_type_of_body(typedef)):
            found.setdefault(name, []).append(typedef)
    hidden: list[Node] = []
    externs: dict[int, Node] = {}
    for node in found.pop("storage", ()):
        around = node.parent
        if around is None:
            continue
        if around.type in _HIDDEN and utf8.startswith(b"static", node.start_byte):
            hidden.append(node)
        if around.type == "declaration" and utf8.startswith(b"extern", node.start_byte):
            externs[around.id] = around  # Once, however often it says so.
    declared = [node for each in externs.values() for node in each.children_by_field_name("declarator")]
    made = {"parameter": parameters, "visibility": hidden, "declared": declared}
    return {**found, **{name: nodes for name, nodes in made.items() if nodes}}


def _type_of_body(typedef: Node) -> str:
    """What a `typedef` names that has no other name; empty where it names what is defined elsewhere."""
    of = typedef.child_by_field_name("type")
    if of is None or of.child_by_field_name("body") is None or of.child_by_field_name("name") is not None:
        return ""
    return of.type


def _parameters(function: Node) -> list[Node]:
    """What a function takes; where it returns a pointer to another, these are not that one's."""
    declarator = function.child_by_field_name("declarator")
    found = None
    while declarator is not None:
        found = declarator.child_by_field_name("parameters") or found
        declarator = declarator.child_by_field_name("declarator") or next(
            (child for child in declarator.named_children if child.type.endswith("_declarator")), None
        )
    return [] if found is None else [node for node in found.named_children if not node.is_error]
