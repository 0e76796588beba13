"""Local variables and parameters of a file, and their types as far as the code states them.

A name is local if its innermost binding is a variable or parameter of a function. The type of a local is its declared
type, or the class of which its only assigned value is constructed. Functions and imports in a function are not local
variables: the code that resolves uses finds them by their scope.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tree_sitter import Node

from codebatch_workers.syntax.bindings import BoundName, FileBindings, NameScope, find_bindings
from codebatch_workers.syntax.names import NAME_BYTES_MAX, strip_generics
from codebatch_workers.syntax.source import SourceFile

UNKNOWN_TYPE = "?"

TypeReader = Callable[[Node, bytes], str]
"""A function that returns the declared type of a name in a text, or an empty string."""

_LOCAL_KINDS = frozenset({"variable", "parameter", "var", "own", "type_parameter"})
_OWN_OBJECT_NAMES = frozenset({b"cls", b"self", b"this"})
# Words in place of a type for which the compiler infers the type.
_INFERRED_TYPES = frozenset({b"auto", b"var", b"val", b"let"})
_TYPE_NAME = re.compile(rb"[A-Za-z_\x80-\xff][\w.:\\\x80-\xff]*\Z")
_TYPE_FIELDS = ("type", "return_type")
_VALUE_FIELDS = ("value", "right")
_DECLARATION_LEVELS_MAX = 3
# Declarations in Go and Rust. The names that they bind are visible behind them.
_DECLARATIONS = frozenset(
    {
        "const_spec",
        "let_condition",
        "let_declaration",
        "parameter_list",
        "range_clause",
        "receive_statement",
        "short_var_declaration",
        "var_spec",
    }
)
# The nodes that construct an object, with the field that names its class.
_CONSTRUCTIONS: Mapping[str, str] = {
    "composite_literal": "type",
    "instance_expression": "",
    "new_expression": "constructor",
    "object_creation_expression": "type",
    "struct_expression": "name",
}
_CAPITAL_NAME = re.compile(rb"(?:[\w]+\.)*[A-Z]\w*\Z")


class LocalNames:
    """The local variables and parameters of a file. A language without a locals query has none."""

    def __init__(
        self, file: SourceFile, read_type: TypeReader | None = None, *, is_sequential: bool, capitals_construct: bool
    ) -> None:
        """`read_type` reads the types of names in the language. By default, they are in fields of the nodes around.

        - `is_sequential`: a block sees a variable only after its declaration.
        - `capitals_construct`: a call of a name with a capital letter constructs an object.
        """
        self._file = file
        self._read_type = read_type
        self._capitals_construct = capitals_construct
        self._bindings: FileBindings | None = find_bindings(file)
        self._is_sequential = is_sequential
        scopes = self._bindings.scopes[1:] if self._bindings is not None else ()
        self._names = frozenset(name for scope in scopes for name in scope.names)
        self._types: dict[int, str] = {}

    def receiver(self, offset: int, name: bytes) -> str:
        """Return the type of a local variable that is used at an offset, or UNKNOWN_TYPE if its type is unknown.

        Return the empty string if the name is not a local variable.
        """
        if name not in self._names or self._bindings is None or name in _OWN_OBJECT_NAMES:
            return ""
        if not self._is_sequential:
            bound = self._bindings.find_definitions(offset, name)
            if bound is None or bound[0].parent is None or bound[0].is_class:
                return ""
            return self._type_of(bound[1]) if all(one.kind in _LOCAL_KINDS for one in bound[1]) else ""
        scope: NameScope | None = self._bindings.scope_at(offset)
        while scope is not None and scope.parent is not None:
            visible = () if scope.is_class else scope.names.get(name, ())
            found = [definition for definition in visible if _is_visible(definition, offset)][-1:]
            if found:
                return self._type_of(found) if found[0].kind in _LOCAL_KINDS else ""
            scope = scope.parent
        return ""

    def definition(self, offset: int, name: bytes, kinds: frozenset[str]) -> BoundName | None:
        """Return the innermost definition of a local name of some kinds that a use at an offset sees."""
        if name not in self._names or self._bindings is None:
            return None
        scope: NameScope | None = self._bindings.scope_at(offset)
        while scope is not None and scope.parent is not None:
            found = [
                definition
                for definition in scope.names.get(name, ())
                if definition.start <= offset and definition.kind in kinds
            ]
            if found:
                return found[-1]
            scope = scope.parent
        return None

    def declared_type(self, name: Node) -> str:
        """Return the declared type of a name, or the class of which its value is constructed. It is as written."""
        if self._read_type is None:
            return _type_in_fields(name, self._file.utf8, capitals_construct=self._capitals_construct)
        return self._read_type(name, self._file.utf8)

    def _type_of(self, definitions: list[BoundName]) -> str:
        types = {self._type_of_one(definition) for definition in definitions}
        return types.pop() if len(types) == 1 else UNKNOWN_TYPE

    def _type_of_one(self, definition: BoundName) -> str:
        if definition.kind == "type_parameter":
            return UNKNOWN_TYPE
        if definition.start not in self._types:
            self._types[definition.start] = self.declared_type(definition.node) or UNKNOWN_TYPE
        return self._types[definition.start]


def _is_visible(definition: BoundName, offset: int) -> bool:
    """Return whether a definition in a sequential language precedes an offset. Its own value does not see it."""
    if definition.start >= offset:
        return definition.start == offset
    node: Node | None = definition.node
    for _ in range(_DECLARATION_LEVELS_MAX):
        node = None if node is None else node.parent
        if node is None:
            break
        if node.type in _DECLARATIONS:
            return node.end_byte <= offset
        value = node.child_by_field_name("value") if node.type == "type_switch_statement" else None
        if value is not None:
            return value.end_byte <= offset
    return True


def _type_in_fields(name: Node, utf8: bytes, *, capitals_construct: bool) -> str:
    """Return the type in the fields of the nodes around a name, or the class of which its value is constructed.

    It is returned as written, without type arguments. Return an empty string if the code states no type, or not the
    type of a single object.
    """
    node: Node | None = name
    constructed = ""
    for _ in range(_DECLARATION_LEVELS_MAX):
        if node is None:
            break
        for field in _TYPE_FIELDS:
            type_node = node.child_by_field_name(field)
            if type_node is not None and type_node.start_byte != name.start_byte:
                text = type_text(type_node, utf8)
                if text:
                    return text
        for field in _VALUE_FIELDS:
            value = node.child_by_field_name(field)
            if value is not None and not constructed:
                if value.start_byte <= name.start_byte < value.end_byte:
                    return ""
                constructed = constructed_class(value, utf8, capitals_construct=capitals_construct)
        node = node.parent
    return constructed


def type_text(node: Node, utf8: bytes) -> str:
    """Return a type that is a plain name, without its type arguments and marks for pointers and optional values."""
    text = strip_generics(utf8[node.start_byte : node.end_byte][:NAME_BYTES_MAX]).strip()
    text = text.removeprefix(b":").strip().strip(b"*&?!\"' ")
    is_name = _TYPE_NAME.match(text) is not None and text not in _INFERRED_TYPES
    return text.decode("utf-8", "replace") if is_name else ""


def constructed_class(value: Node, utf8: bytes, *, capitals_construct: bool) -> str:
    """Return the class of which a value is constructed, or an empty string."""
    while value.type in ("unary_expression", "expression_list", "parenthesized_expression", "equals_value_clause"):
        if value.named_child_count != 1:
            return ""
        value = value.named_children[0]
    field = _CONSTRUCTIONS.get(value.type)
    if field:
        constructed = value.child_by_field_name(field)
        return "" if constructed is None else type_text(constructed, utf8)
    if capitals_construct and value.type in ("call", "call_expression"):
        function = value.child_by_field_name("function") or (value.named_children or [value])[0]
        text = strip_generics(utf8[function.start_byte : function.end_byte][:NAME_BYTES_MAX])
        return text.decode("utf-8", "replace") if _CAPITAL_NAME.match(text) else ""
    return ""
