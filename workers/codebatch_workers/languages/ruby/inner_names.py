"""Names in symbols of Ruby: `:name`, `name:` and `%i[name]`."""

from __future__ import annotations

from tree_sitter import Node

_SYMBOL_MARKS = b":?!="


def is_symbol(node: Node, utf8: bytes, start: int, end: int) -> bool:
    """Return whether the part is the name in `:name`, `:name=` or `name:`.

    `name:` is a key, or short for `name: name`.
    """
    return utf8[node.start_byte : node.end_byte].strip(_SYMBOL_MARKS) == utf8[start:end].strip(_SYMBOL_MARKS)


def is_listed_symbol(node: Node, _utf8: bytes, start: int, end: int) -> bool:
    """Return whether the part is the whole text of a symbol: in `%i[…]` or in quotes."""
    parent = node.parent
    is_whole = (node.start_byte, node.end_byte) == (start, end)
    return is_whole and parent is not None and parent.type in ("bare_symbol", "delimited_symbol")
