"""What is captured for what stands around it, by the nodes of that, of which there are few.

A query could say it too. But patterns of what functions take cost a fifth of all that Python's query does, and what
C++'s say of parents and children 40 ms of each process that compiles them.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING

from codebatch_workers.syntax.language.languages import LANGUAGES_WITH_MACROS

if TYPE_CHECKING:
    from tree_sitter import Node

# What a function's `parameters` hold that is one, by language. Other languages' queries say it.
_PARAMETERS = {
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
# Here a parameter's value may be a function; and `x => x` has one parameter by another name.
_SCRIPTS = frozenset({"javascript", "tsx", "typescript"})
_START = attrgetter("start_byte")

_TYPES = {
    "class_specifier": "def.class",
    "enum_specifier": "def.enum",
    "struct_specifier": "def.struct",
    "union_specifier": "def.union",
}
# `static` hides these; a member of a class is seen as any other.
_HIDDEN = frozenset({"declaration", "function_definition"})


def captured(found: dict[str, list[Node]], utf8: bytes, language: str) -> Mapping[str, list[Node]]:
    """Return `found`, the parameters of each `function`, and in C and C++ what `typedef` and `storage` are."""
    if language in LANGUAGES_WITH_MACROS:
        return _captured_of_c(found, utf8)
    # A guard of Kotlin's `when` has a comma as stand-in (gaps_of_kotlin.py).
    guards = [node for node in found.pop("guard", ()) if not utf8.startswith(b",", node.start_byte)]
    if guards:
        found.setdefault("decision", []).extend(guards)
    types = _PARAMETERS.get(language)
    functions = found.get("function")
    if types is None or functions is None:
        return found
    parameters = found.get("parameter", [])
    for function in functions:
        declared = function.child_by_field_name("parameters")
        if declared is not None:
            parameters += [node for node in declared.named_children if node.type in types]
    if language in _SCRIPTS:
        parameters.sort(key=_START)
    return {**found, "parameter": parameters} if parameters else found


def _captured_of_c(found: dict[str, list[Node]], utf8: bytes) -> Mapping[str, list[Node]]:
    """What `typedef` and `storage` are is `def.…`, `visibility` and `declared`."""
    parameters = [node for function in found.get("function", ()) for node in _parameters_of_c(function)]
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


def _parameters_of_c(function: Node) -> list[Node]:
    """What a function takes; where it returns a pointer to another, these are not that one's."""
    declarator = function.child_by_field_name("declarator")
    found = None
    while declarator is not None:
        found = declarator.child_by_field_name("parameters") or found
        declarator = declarator.child_by_field_name("declarator") or next(
            (child for child in declarator.named_children if child.type.endswith("_declarator")), None
        )
    return [] if found is None else [node for node in found.named_children if not node.is_error]
