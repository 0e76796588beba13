"""The names that definitions bind. `outline` determines their scopes, and creates the records."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

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
"""A function that returns the names that the node of a definition binds, given the symbol type of its capture and the
source in UTF-8. The types of the returned names count.
"""

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


_CLOSING_MARKS = {b'"': b'"', b"`": b"`", b"[": b"]", b"@": b""}


def strip_marks(utf8: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the range of a name without its quotes or its mark.

    If the closing quote is missing, return the whole range.
    """
    closing = _CLOSING_MARKS[utf8[start : start + 1]]
    is_closed = end - start > 1 + len(closing) and utf8.endswith(closing, start, end)
    return (start + 1, end - len(closing)) if is_closed else (start, end)


def plain_name(node: Node | None, symbol_type: SymbolType, owner: str = "") -> list[DeclaredName]:
    """Return the name that a node consists of, if there is a node."""
    return [] if node is None else [DeclaredName(node.start_byte, node.end_byte, symbol_type, owner)]


def names_by_field(node: Node, symbol_type: SymbolType, _utf8: bytes) -> list[DeclaredName]:
    """Return the name in the field `name`. Most grammars have this field."""
    return plain_name(node.child_by_field_name("name"), symbol_type)


def identifier_names(
    node: Node,
    symbol_type: SymbolType,
    through: frozenset[str],
    leaves: frozenset[str],
    fields: Mapping[str, str] = MappingProxyType({}),
) -> list[DeclaredName]:
    """Return each node below a target whose type is in `leaves`. Only nodes with a type in `through` are entered.

    Of a node with a type in `fields`, only the field that `fields` names is entered. The search is iterative, because
    patterns can be deeply nested.
    """
    names = []
    pending = [node]
    while pending:
        node = pending.pop()
        kind = node.type
        if kind in leaves:
            names.append(DeclaredName(node.start_byte, node.end_byte, symbol_type, ""))
        elif kind in fields:
            pending.extend(node.children_by_field_name(fields[kind]))
        elif kind in through:
            pending.extend(reversed(node.named_children))
    return names
