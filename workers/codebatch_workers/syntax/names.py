"""The names that definitions bind, by language. `outline` determines their scopes, and creates the records."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
from tree_sitter import Node

from codebatch.model.record import SymbolType


class DeclaredName(msgspec.Struct, frozen=True, gc=False):
    """The offsets of a name, the type of its symbol, and the owner that is written before the name (`Owner::name`).

    If the source does not contain the name, `text` is the name. For example, it is `default` for `export default`.
    """

    start: int
    end: int
    symbol_type: SymbolType
    owner: str
    text: str = ""


NamesReader = Callable[["Node", SymbolType, bytes], list[DeclaredName]]

NAME_NODE_TYPE = re.compile(r"identifier|name|constant|variable")
"""The types of nodes that are names, if they have no children."""

# A longer name is data.
NAME_BYTES_MAX = 512

_GENERIC_ARGUMENTS = re.compile(rb"<[^<>]*>")
_GENERIC_DEPTH_MAX = 8


def strip_generics(text: bytes) -> bytes:
    """Remove everything in angle brackets from a text: `Map<K, List<V>>::get` becomes `Map::get`."""
    for _ in range(_GENERIC_DEPTH_MAX):
        if b"<" not in text:
            break
        shorter = _GENERIC_ARGUMENTS.sub(b"", text)
        if shorter == text:
            break
        text = shorter
    return text


# The bytes with which a quoted name, or a name after a mark such as `@`, begins. Such a name may be a reserved word.
NAME_MARKS: dict[str, tuple[bytes, ...]] = {
    "csharp": (b"@",),
    "kotlin": (b"`",),
    "scala": (b"`",),
    "sql": (b'"', b"`", b"["),
    "swift": (b"`",),
}
_CLOSING_MARKS = {b'"': b'"', b"`": b"`", b"[": b"]", b"@": b""}


def strip_marks(utf8: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the range of a name without its quotes or its mark.

    If the closing quote is missing, return the whole range.
    """
    closing = _CLOSING_MARKS[utf8[start : start + 1]]
    is_closed = end - start > 1 + len(closing) and utf8.endswith(closing, start, end)
    return (start + 1, end - len(closing)) if is_closed else (start, end)


def _plain_name(node: Node | None, symbol_type: SymbolType, owner: str = "") -> list[DeclaredName]:
    return [] if node is None else [DeclaredName(node.start_byte, node.end_byte, symbol_type, owner)]


def names_by_field(node: Node, symbol_type: SymbolType, _utf8: bytes) -> list[DeclaredName]:
    """Return the name in the field `name`. Most grammars have this field."""
    return _plain_name(node.child_by_field_name("name"), symbol_type)


# -- Python -----------------------------------------------------------------------------------------------------------

_PYTHON_TARGET_NODES = frozenset(
    {"pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern", "as_pattern_target"}
)


def python_names(node: Node, symbol_type: SymbolType, utf8: bytes) -> list[DeclaredName]:
    """Return the name of a Python definition or `type` statement. For an assignment, return all names in its target."""
    if symbol_type == "type":
        left = node.child_by_field_name("left")
        while left is not None and left.type in ("type", "generic_type"):
            left = left.named_child(0)
        return _plain_name(left, "type") if left is not None and left.type == "identifier" else []
    if symbol_type == "variable":
        return _identifier_names(node, symbol_type, _PYTHON_TARGET_NODES, frozenset({"identifier"}))
    return names_by_field(node, symbol_type, utf8)


def _identifier_names(
    node: Node, symbol_type: SymbolType, through: frozenset[str], leaves: frozenset[str]
) -> list[DeclaredName]:
    """Return each node below a target whose type is in `leaves`. Only nodes with a type in `through` are entered.

    The search is iterative, because patterns can be deeply nested.
    """
    names = []
    pending = [node]
    while pending:
        node = pending.pop()
        kind = node.type
        if kind in leaves:
            names.append(DeclaredName(node.start_byte, node.end_byte, symbol_type, ""))
        elif kind == "pair_pattern":
            pending.extend(_optional_as_list(node.child_by_field_name("value")))
        elif kind in ("assignment_pattern", "object_assignment_pattern"):
            pending.extend(_optional_as_list(node.child_by_field_name("left")))
        elif kind in through:
            pending.extend(reversed(node.named_children))
    return names


def _optional_as_list(node: Node | None) -> list[Node]:
    return [] if node is None else [node]


# -- JavaScript and TypeScript ----------------------------------------------------------------------------------------

_JAVASCRIPT_PATTERNS = frozenset({"object_pattern", "array_pattern", "rest_pattern"})
_JAVASCRIPT_LEAVES = frozenset({"identifier", "shorthand_property_identifier_pattern"})


def pattern_names(node: Node) -> list[tuple[int, int]]:
    """Return the ranges of the names that a parameter or declarator binds.

    Names in default values and types are not bound.
    """
    if node.type in ("required_parameter", "optional_parameter"):
        node = node.child_by_field_name("pattern") or node
    leaves = _JAVASCRIPT_LEAVES | {"type_identifier"}
    return [(name.start, name.end) for name in _identifier_names(node, "variable", _JAVASCRIPT_PATTERNS, leaves)]


def javascript_names(node: Node, symbol_type: SymbolType, utf8: bytes) -> list[DeclaredName]:
    """Return the names of a definition in JavaScript or TypeScript.

    They are all names in a destructuring pattern, or the last name in the target of an assignment.
    """
    if node.type == "assignment_expression":
        left = node.child_by_field_name("left")
        if left is not None and left.type == "member_expression":
            left = left.child_by_field_name("property")
        return _plain_name(left, symbol_type)
    name = node.child_by_field_name("name")
    if name is None:
        is_default = node.parent is not None and node.parent.type == "export_statement"
        return [DeclaredName(node.start_byte, node.start_byte + 1, symbol_type, "", "default")] if is_default else []
    if name.type in _JAVASCRIPT_PATTERNS:
        return _identifier_names(name, symbol_type, _JAVASCRIPT_PATTERNS, _JAVASCRIPT_LEAVES)
    if name.type == "string":
        return [DeclaredName(name.start_byte + 1, name.end_byte - 1, symbol_type, "")]
    if name.type == "computed_property_name":
        return []
    if symbol_type == "method" and utf8[name.start_byte : name.end_byte] == b"constructor":
        symbol_type = "constructor"
    return _plain_name(name, symbol_type)


# -- C and C++ --------------------------------------------------------------------------------------------------------

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
            _qualified_name(name, symbol_type, utf8) if name.type in _CPP_NAME_NODES else _plain_name(name, symbol_type)
        )
    declarator = node.child_by_field_name("declarator") if node.type.endswith("_definition") else node
    inner, is_function = _declared_node(declarator)
    if inner is None:
        return []
    if inner.type == "structured_binding_declarator":
        return _identifier_names(inner, symbol_type, frozenset({inner.type}), frozenset({"identifier"}))
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
        _qualified_name(inner, symbol_type, utf8) if inner.type in _CPP_NAME_NODES else _plain_name(inner, symbol_type)
    )


def is_macro_block(node: Node) -> bool:
    """Return whether a function definition is `MACRO(name) {`: its only parentheses are those around the name."""
    declarator = node.child_by_field_name("declarator")
    return declarator is not None and declarator.type == "parenthesized_declarator"


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


# -- Go ---------------------------------------------------------------------------------------------

_METHOD_RECEIVER = re.compile(rb"\(\s*(?:[\w\x80-\xff]+\s+)?\*?\s*([\w\x80-\xff]+)")


def go_names(node: Node, symbol_type: SymbolType, utf8: bytes) -> list[DeclaredName]:
    """Return the name of a Go definition. The owner of a method is the type of its receiver."""
    owner = ""
    if node.type == "method_declaration":
        receiver = node.child_by_field_name("receiver")
        match = _METHOD_RECEIVER.match(utf8, receiver.start_byte, receiver.end_byte) if receiver is not None else None
        owner = match[1].decode("utf-8", "replace") if match else ""
    return _plain_name(node.child_by_field_name("name"), symbol_type, owner)


# -- Scala and Swift ---------------------------------------------------------------------------------------------------

_SCALA_PATTERNS = frozenset({"identifiers", "infix_pattern", "tuple_pattern", "typed_pattern"})


def scala_names(node: Node, symbol_type: SymbolType, utf8: bytes) -> list[DeclaredName]:
    """Return the name of a Scala definition, or all names that the pattern of a `val` binds."""
    if symbol_type != "variable":
        return names_by_field(node, symbol_type, utf8)
    names = []
    pending = [node]
    while pending:
        node = pending.pop()
        children = node.named_children
        if node.type == "identifier":
            # In a pattern, Scala compares a capitalized name and does not bind it. The name is included nevertheless.
            names.append(DeclaredName(node.start_byte, node.end_byte, symbol_type, ""))
        elif node.type == "case_class_pattern":
            pending += children[1:]
        elif node.type in _SCALA_PATTERNS or node.type == "capture_pattern":
            pending += children[:1] if node.type == "typed_pattern" else children
    return names


def swift_names(node: Node, symbol_type: SymbolType, utf8: bytes) -> list[DeclaredName]:
    """Return the name of a Swift definition. For `deinit` and `subscript`, the name is this keyword."""
    if node.type in ("deinit_declaration", "subscript_declaration"):
        word = next((child for child in node.children if child.type in ("deinit", "subscript")), None)
        return _plain_name(word, symbol_type)
    return names_by_field(node, symbol_type, utf8)


# -- Lua and PHP: functions that are assigned --------------------------------------------------------------------------


def lua_names(node: Node, symbol_type: SymbolType, utf8: bytes) -> list[DeclaredName]:
    """Return the name of a Lua function, or the target that it is assigned to: `M.f = function`, `{ f = function }`.

    The owner of `M.a.f` and `M.a:f` is `M.a`.
    """
    if node.type != "function_definition":
        return _lua_name(node.child_by_field_name("name"), symbol_type, utf8)
    holder = node.parent
    if holder is None:
        return []
    if holder.type == "field":
        target = holder.child_by_field_name("name")
    else:
        statement = holder.parent
        targets = statement.named_child(0) if statement is not None else None
        names = targets.children_by_field_name("name") if targets is not None else []
        index = holder.children_by_field_name("value").index(node)
        target = names[index] if index < len(names) else None
    if target is not None and target.type == "bracket_index_expression":
        target = target.child_by_field_name("field")
    if target is not None and target.type == "string":
        target = target.child_by_field_name("content")
    return _lua_name(target, symbol_type, utf8) if target is None or target.type in _LUA_NAME_NODES else []


def _lua_name(target: Node | None, symbol_type: SymbolType, utf8: bytes) -> list[DeclaredName]:
    if target is None or not target.type.endswith("_index_expression"):
        return _plain_name(target, symbol_type)
    owner = target.child_by_field_name("table")
    name = target.child_by_field_name("field") or target.child_by_field_name("method")
    written = b"" if owner is None else b"".join(utf8[owner.start_byte : owner.end_byte].split())
    return _plain_name(name, symbol_type, written.decode("utf-8", "replace"))


_LUA_NAME_NODES = frozenset({"dot_index_expression", "identifier", "string_content"})


def php_names(node: Node, symbol_type: SymbolType, _utf8: bytes) -> list[DeclaredName]:
    """Return the name of a PHP definition. For a closure, this is the variable to which it is assigned, without `$`."""
    if node.type not in ("anonymous_function", "arrow_function"):
        return _plain_name(node.child_by_field_name("name"), symbol_type)
    left = node.parent.child_by_field_name("left") if node.parent is not None else None
    return _plain_name(left.named_child(0), symbol_type) if left is not None else []


_RESERVED_IN_C = frozenset(
    b"_Bool _Complex auto break case char const continue default do double else enum extern float for goto if int long "
    b"register return short signed sizeof static struct switch typedef union unsigned void volatile while".split()
)
# Reserved words. When a grammar recovers from an error, it can take them for names. JavaScript has no entry, because
# any word can be the name of a member.
RESERVED_WORDS: dict[str, frozenset[bytes]] = {
    "c": _RESERVED_IN_C,
    "cpp": _RESERVED_IN_C
    | frozenset(
        b"bool catch class const_cast constexpr decltype delete dynamic_cast explicit false friend inline mutable "
        b"namespace new noexcept nullptr operator private protected public reinterpret_cast static_assert static_cast "
        b"template this throw true try typeid typename using virtual".split()
    ),
    "go": frozenset(
        b"break case chan const continue default defer else fallthrough for func go goto if import interface map "
        b"package range return select struct switch type var".split()
    ),
    "java": frozenset(
        b"abstract assert boolean break byte case catch char class const continue default do double else enum extends "
        b"final finally float for goto if implements import instanceof int interface long native new package private "
        b"protected public return short static super switch synchronized this throw throws transient try void "
        b"volatile while".split()
    ),
    "python": frozenset(
        b"False None True and as assert async await break class continue def del elif else except finally for from "
        b"global if import in is lambda nonlocal not or pass raise return try while with yield".split()
    ),
    "rust": frozenset(
        b"as break const continue else enum extern false fn for if impl in let loop match mod move mut pub ref return "
        b"static struct trait true type unsafe use where while".split()
    ),
}

NAMES_BY_LANGUAGE: dict[str, NamesReader] = {
    "bash": names_by_field,
    "c": c_names,
    "cpp": cpp_names,
    "csharp": names_by_field,
    "go": go_names,
    "hcl": names_by_field,
    "java": names_by_field,
    "javascript": javascript_names,
    "kotlin": names_by_field,
    "lua": lua_names,
    "php": php_names,
    "python": python_names,
    "ruby": names_by_field,
    "rust": names_by_field,
    "scala": scala_names,
    "sql": names_by_field,
    "swift": swift_names,
    "tsx": javascript_names,
    "typescript": javascript_names,
    "zsh": names_by_field,
}
