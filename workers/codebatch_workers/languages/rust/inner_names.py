"""Names in the format strings of Rust: `{name}`."""

from __future__ import annotations

import re

from tree_sitter import Node

# Formatting macros of Rust's standard library, with the number of arguments before the format string.
_FORMAT_ARGUMENT_INDEX = {
    **dict.fromkeys(
        (b"eprint", b"eprintln", b"format", b"format_args", b"panic", b"print", b"println", b"todo", b"unimplemented"),
        0,
    ),
    **dict.fromkeys((b"assert", b"debug_assert", b"unreachable", b"write", b"writeln"), 1),
    **dict.fromkeys((b"assert_eq", b"assert_ne", b"debug_assert_eq", b"debug_assert_ne"), 2),
    b"unreachable": 0,
}
_MACROS_WITHOUT_FORMAT = frozenset(
    b"cfg compile_error concat env include include_bytes include_str option_env vec".split()
)
# Attributes with format strings from thiserror, derive_more, displaydoc and snafu.
_FORMATTING_ATTRIBUTES = frozenset({b"display", b"error", b"snafu"})
_FORMAT_PLACE = re.compile(rb"\{\{|\{(\w+)(?::[^{}]*)?\}")
_FORMAT_WIDTH = re.compile(rb"\b(\w+)\$")


def is_in_format(node: Node, utf8: bytes, start: int, end: int) -> bool:
    """Return whether the part is a name in a format string of Rust: `{name}`, `{name:?}` or `{:name$}`."""
    literal = node.parent
    if literal is None or not _is_format_string(literal, utf8):
        return False
    for match in _FORMAT_PLACE.finditer(utf8, node.start_byte, node.end_byte):
        if match.start() < start < match.end():
            return match.span(1) == (start, end) or any(
                width.span(1) == (start, end) for width in _FORMAT_WIDTH.finditer(utf8, *match.span())
            )
    # The pattern does not match `{:width$}`, which has no name before the colon.
    before = utf8.rfind(b"{", node.start_byte, start)
    is_width = utf8[end : end + 1] == b"$" and utf8[before : before + 2] == b"{:"
    return before >= 0 and is_width and b"}" not in utf8[before:start]


def _is_format_string(literal: Node, utf8: bytes) -> bool:
    tree = literal.parent
    if tree is None or tree.type != "token_tree" or tree.parent is None:
        return False
    owner = tree.parent
    name_node = (
        owner.child_by_field_name("macro") if owner.type == "macro_invocation" else next(iter(owner.children), None)
    )
    name = utf8[name_node.start_byte : name_node.end_byte].rpartition(b"::")[2] if name_node is not None else b""
    if owner.type == "attribute":
        return name in _FORMATTING_ATTRIBUTES
    if owner.type != "macro_invocation" or name in _MACROS_WITHOUT_FORMAT:
        return False
    position = _FORMAT_ARGUMENT_INDEX.get(name)
    before = [child for child in tree.children if child.end_byte <= literal.start_byte]
    return position is None or sum(child.type == "," for child in before) == position
