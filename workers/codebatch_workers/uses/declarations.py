"""Statements of a declaration about the value of its name, in Python, JavaScript and TypeScript."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Literal

import msgspec
from tree_sitter import Node

from codebatch_workers.syntax.bindings import BoundName
from codebatch_workers.syntax.nodes import innermost

_PARAMETERS = frozenset({"required_parameter", "optional_parameter"})
_FUNCTIONS = frozenset(
    {
        "arrow_function",
        "class",
        "class_definition",
        "class_declaration",
        "function_declaration",
        "function_definition",
        "function_expression",
        "generator_function",
        "generator_function_declaration",
        "lambda",
        "method_definition",
    }
)
_LOOPS = frozenset({"for_in_clause", "for_in_statement", "for_statement"})
_PATTERNS = frozenset({"pattern_list", "tuple_pattern"})
_BLOCKS = frozenset({"block", "module", "program", "statement_block"})
_EMPTY_VALUES = frozenset({"ellipsis", "none", "null", "undefined"})
_RETURNS_MAX = 20
_NODES_MAX = 2_000


class Declaration(msgspec.Struct, frozen=True):
    """A statement about the value of a name: its type, or an expression.

    A `with` statement enters the expression. The name is an element of the collection, or an entry of the mapping, that
    the expression is. An `argument` is a parameter without a type, of a function that is itself an argument or a value.

    If `member` is set, the name has the value of this member of the object (`const { member } = object`).
    """

    kind: Literal["type", "value", "with", "exception", "element", "entry", "argument", "empty", "unknown"]
    node: Node | None = None
    member: str = ""


LoopReader = Callable[[Node, Node, int, bytes], "Declaration | None"]
"""A function that returns what a loop states about a name, or None.

The arguments are the target of the loop, the loop, the index of the name in the target, and the text of the file.
"""
_UNKNOWN = Declaration("unknown")
_EMPTY = Declaration("empty")


def bound_declaration(bound: BoundName, utf8: bytes, read_loop: LoopReader | None) -> Declaration:
    """Return what the definition of a name states about its value."""
    node = bound.node
    if node.type in _PARAMETERS:
        pattern = node.child_by_field_name("pattern")
        stated = _UNKNOWN if pattern is None else _of_target(pattern, node, bound, utf8)
        is_plain = pattern is not None and pattern.type == "identifier"
        return Declaration("argument", node) if stated.kind == "unknown" and is_plain else stated
    parent = node.parent
    if parent is None:
        return _UNKNOWN
    if parent.type in ("formal_parameters", "arrow_function") and node.type == "identifier":
        return Declaration("argument", node)
    if parent.type in _LOOPS:
        return _of_loop(node, parent, 0, utf8, read_loop)
    if parent.type in _PATTERNS and parent.parent is not None:
        index = parent.named_children.index(node)
        if parent.parent.type in _LOOPS:
            return _of_loop(parent, parent.parent, index, utf8, read_loop)
        return _of_unpacking(parent, parent.parent, index)
    if parent.type == "variable_declarator":
        return _of_target(node, parent, bound, utf8)
    return name_declaration(node)


def _of_loop(target: Node, loop: Node, index: int, utf8: bytes, read_loop: LoopReader | None) -> Declaration:
    is_target = read_loop is not None and loop.child_by_field_name("left") == target
    return (read_loop(target, loop, index, utf8) if read_loop and is_target else None) or _UNKNOWN


def _of_unpacking(pattern: Node, statement: Node, index: int) -> Declaration:
    """Return what `a, b = x, y` states about the name at an index."""
    values = statement.child_by_field_name("right") if statement.type == "assignment" else None
    if values is None or statement.child_by_field_name("left") != pattern:
        return _UNKNOWN
    is_listed = values.type in ("expression_list", "tuple") and values.named_child_count == pattern.named_child_count
    return Declaration("value", values.named_children[index]) if is_listed else _UNKNOWN


def _of_target(target: Node, owner: Node, bound: BoundName, utf8: bytes) -> Declaration:
    """Return what a declarator or parameter states about a name in its target, which can be a pattern."""
    stated = _stated(owner, "type", "value")
    if target.type == "identifier":
        return stated
    if target.type != "object_pattern" or stated.kind == "unknown":
        return _UNKNOWN
    for part in target.named_children:
        key = part if part.type == "shorthand_property_identifier_pattern" else part.child_by_field_name("key")
        value = part if part.type == "shorthand_property_identifier_pattern" else part.child_by_field_name("value")
        if key is not None and value is not None and value.start_byte == bound.start:
            member = utf8[key.start_byte : key.end_byte].decode("utf-8", "replace")
            return Declaration(stated.kind, stated.node, member)
    return _UNKNOWN


def pattern_of(key: Node) -> Node | None:
    """Return the pattern in which a name selects a member of an object, or None: `{ key }`, `{ key: local }`."""
    around = key.parent
    if around is not None and around.type == "object_assignment_pattern" and around.child_by_field_name("left") == key:
        around = around.parent
    elif around is not None and around.type == "pair_pattern" and around.child_by_field_name("key") == key:
        return around.parent
    is_short = key.type == "shorthand_property_identifier_pattern"
    return around if is_short and around is not None and around.type == "object_pattern" else None


def pattern_declaration(pattern: Node, utf8: bytes, read_loop: LoopReader | None) -> Declaration:
    """Return what the code around a pattern states about the object that it destructures."""
    owner = pattern.parent
    if owner is None:
        return _UNKNOWN
    if owner.type in _LOOPS:
        return _of_loop(pattern, owner, 0, utf8, read_loop)
    if owner.type == "variable_declarator":
        return _stated(owner, "type", "value")
    if owner.type in _PARAMETERS:
        stated = _stated(owner, "type", "value")
        return Declaration("argument", owner) if stated.kind == "unknown" else stated
    if owner.type == "formal_parameters":
        return Declaration("argument", pattern)
    if owner.type == "assignment_expression":
        return _stated(owner, "", "right")
    key = owner.child_by_field_name("key") if owner.type == "pair_pattern" else None
    outer = None if key is None else pattern_of(key)
    stated = _UNKNOWN if outer is None else pattern_declaration(outer, utf8, read_loop)
    if key is None or stated.member or stated.kind == "unknown":
        return _UNKNOWN
    return Declaration(stated.kind, stated.node, utf8[key.start_byte : key.end_byte].decode("utf-8", "replace"))


def name_declaration(name: Node) -> Declaration:
    """Return what the code around a name states about its value, if this code declares it."""
    parent = name.parent
    if parent is None:
        return _UNKNOWN
    if parent.type in ("attribute", "member_expression") and parent.parent is not None:
        name, parent = parent, parent.parent
    if parent.type in ("assignment", "assignment_expression") and parent.child_by_field_name("left") == name:
        return _stated(parent, "type", "right")
    if parent.type in ("typed_parameter", "typed_default_parameter"):
        return _stated(parent, "type", "")
    if parent.type == "named_expression":
        return _stated(parent, "", "value")
    if parent.type == "variable_declarator" or parent.type in _PARAMETERS:
        return _stated(parent, "type", "value")
    if parent.type in ("public_field_definition", "field_definition", "property_signature"):
        return _stated(parent, "type", "value")
    if parent.type == "as_pattern_target" and parent.parent is not None and parent.parent.parent is not None:
        entered = next(iter(parent.parent.named_children), None)
        around = parent.parent.parent.type
        if around == "with_item":
            return Declaration("with", entered)
        return Declaration("exception", entered) if around == "except_clause" else _UNKNOWN
    return _UNKNOWN


def _stated(owner: Node, type_field: str, value_field: str) -> Declaration:
    declared = owner.child_by_field_name(type_field) if type_field else None
    if declared is not None:
        return Declaration("type", declared)
    value = owner.child_by_field_name(value_field) if value_field else None
    while value is not None and value.type == "assignment":
        value = value.child_by_field_name("right")
    if value is None:
        return _EMPTY if owner.type == "variable_declarator" else _UNKNOWN
    return _EMPTY if value.type in _EMPTY_VALUES else Declaration("value", value)


def nearest_definition(definitions: list[BoundName], offset: int) -> BoundName | None:
    """Return the definition that reaches a use at an offset, if the text order shows which of several does."""
    before = [definition for definition in definitions if definition.start < offset]
    nearest = max(before, key=lambda definition: definition.start, default=None)
    if nearest is None:
        return None
    block = innermost(nearest.node, _BLOCKS)
    return nearest if block is not None and block.start_byte <= offset < block.end_byte else None


def function_node(name: Node) -> Node | None:
    """Return the function that a name declares: its declaration, or the function that it is set to."""
    parent = name.parent
    if parent is None:
        return None
    value = parent.child_by_field_name("value") or parent.child_by_field_name("right")
    if parent.type in ("variable_declarator", "assignment_expression", "public_field_definition", "field_definition"):
        return value if value is not None and value.type in _FUNCTIONS else None
    return parent if parent.child_by_field_name("parameters") is not None else None


def returned_values(function: Node) -> list[Node] | None:
    """Return the expressions that a function returns. Return None if it is a generator, or if there are too many."""
    body = function.child_by_field_name("body")
    if body is None:
        return None
    if function.type == "arrow_function" and body.type != "statement_block":
        return [body]
    values: list[Node] = []
    for count, node in enumerate(_own_nodes(body)):
        if node.type in ("yield", "yield_expression") or count > _NODES_MAX or len(values) > _RETURNS_MAX:
            return None
        if node.type == "return_statement":
            values.extend(child for child in node.named_children[:1] if child.type not in _EMPTY_VALUES)
    return values


def _own_nodes(body: Node) -> Iterator[Node]:
    """Yield the nodes of the body of a function, without those of inner functions."""
    pending = [body]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(child for child in reversed(node.named_children) if child.type not in _FUNCTIONS)


def without_qualifier(declaration: Declaration, utf8: bytes, qualifiers: Collection[str]) -> Declaration:
    """Return the declaration by the value if the type is only a qualifier, such as `Final`."""
    node = declaration.node
    statement = None if node is None else node.parent
    if node is None or statement is None:
        return declaration
    if utf8[node.start_byte : node.end_byte].rpartition(b".")[2].decode("utf-8", "replace") not in qualifiers:
        return declaration
    return Declaration("value", statement.child_by_field_name("right"))
