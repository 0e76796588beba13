"""The chain of names that ends with an occurrence of a name: `a.b.c`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from tree_sitter import Node

from codebatch_workers.symbols.imported_names import node_text

_NAMES_MAX = 8
_BYTES_BEFORE_MAX = 400
_NAME_BYTES = bytes(byte for byte in range(256) if byte >= 0x80 or chr(byte).isalnum() or byte in b"_$")
_SEPARATORS = (b"?->", b"->", b"?.", b"!.", b"::", b".", b"\\")
_RAW_NAME_MARK = b"r#"
# The nodes of chains, with the fields of the part before the last name and of the last name.
_MEMBER_NODES: Mapping[str, tuple[str, str]] = {
    "attribute": ("object", "attribute"),
    "member_expression": ("object", "property"),
    "nested_identifier": ("object", "property"),
    "nested_type_identifier": ("module", "name"),
    "qualified_type": ("package", "name"),
    "selector_expression": ("operand", "field"),
}
_PLAIN_NODES = frozenset({"identifier", "jsx_namespace_name", "package_identifier", "super", "this", "type_identifier"})
_TRANSPARENT_NODES = frozenset({"non_null_expression", "parenthesized_expression"})


class NameChain(msgspec.Struct, frozen=True):
    """The names of a chain. `start` is the offset of the first name.

    `is_open` is set if an expression whose value is unknown precedes the first name: `f().a.b`. `is_absolute` is set if
    a separator precedes it: `\\a\\b`, `::a::b`.
    """

    names: tuple[str, ...]
    start: int
    is_open: bool
    is_absolute: bool


def chain_at(utf8: bytes, start: int, end: int, *, has_arrows: bool) -> NameChain:
    """Return the chain of names whose last name is at the given offsets.

    If `has_arrows` is not set, an arrow precedes the type of a result.
    """
    names = [utf8[start:end].decode("utf-8", "replace")]
    before = utf8[max(start - _BYTES_BEFORE_MAX, 0) : start]
    first = start
    separator, left = _separator_before(before, has_arrows=has_arrows)
    while separator and len(names) < _NAMES_MAX:
        name_start = len(left.rstrip(_NAME_BYTES))
        if left.endswith(_RAW_NAME_MARK, 0, name_start):
            name_start -= len(_RAW_NAME_MARK)
        if name_start == len(left):
            break
        names.append(left[name_start:].decode("utf-8", "replace"))
        first -= len(before) - name_start
        before = before[:name_start]
        separator, left = _separator_before(before, has_arrows=has_arrows)
    is_absolute = separator in (b"\\", b"::") and not _ends_expression(left)
    return NameChain(tuple(reversed(names)), first, bool(separator) and not is_absolute, is_absolute)


def _separator_before(before: bytes, *, has_arrows: bool) -> tuple[bytes, bytes]:
    """Return the separator at the end of a text, and the text before it. Without one, return an empty separator.

    A line end after a full stop ends a comment or a sentence, so the separator must be in the line of the name.
    """
    text = before.rstrip(b" \t")
    separator = next((separator for separator in _SEPARATORS if text.endswith(separator)), b"")
    # Several dots are another operator.
    is_other = separator == b"." and text.endswith(b"..")
    if is_other or (separator.endswith(b"->") and not has_arrows):
        return b"", text
    left = text[: len(text) - len(separator)]
    # A word before a blank does not belong to the chain: `extends \\a\\b`, `return ::f()`.
    is_first = separator in (b"\\", b"::") and left[-1:].isspace()
    return separator, b"" if is_first else left.rstrip()


def node_chain(name: Node, utf8: bytes) -> NameChain:
    """Return the chain of names that ends with a node in a tree of Go, Python, JavaScript or TypeScript.

    Python's call `super()` is the name `super`.
    """
    names = [node_text(name, utf8)]
    node, is_open = name, False
    while len(names) < _NAMES_MAX:
        fields = _MEMBER_NODES.get(node.parent.type) if node.parent is not None else None
        if node.parent is None or fields is None or node.parent.child_by_field_name(fields[1]) != node:
            break
        owner = node.parent.child_by_field_name(fields[0])
        while owner is not None and owner.type in _TRANSPARENT_NODES and owner.named_child_count == 1:
            owner = owner.named_children[0]
        if owner is not None and owner.type in _MEMBER_NODES:
            owner = owner.child_by_field_name(_MEMBER_NODES[owner.type][1])
        elif owner is not None and owner.type == "call" and utf8[owner.start_byte : owner.end_byte] == b"super()":
            owner = owner.child_by_field_name("function")
        elif owner is None or owner.type not in _PLAIN_NODES:
            is_open = True
            break
        if owner is None:
            is_open = True
            break
        names.append(node_text(owner, utf8))
        node = owner
    return NameChain(tuple(reversed(names)), node.start_byte, is_open, False)


def _ends_expression(text: bytes) -> bool:
    return bool(text) and (text[-1:] in b")]}>\"'`" or text[-1:].isalnum())


def name_components(written: str) -> list[str]:
    """Return the names of a chain as written: `a`, `b` and `c` for `a::b::c`."""
    for separator in ("::", "\\", "->"):
        written = written.replace(separator, ".")
    return [part for part in written.split(".") if part] or [written]
