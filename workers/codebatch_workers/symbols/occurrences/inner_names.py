"""Names that are only a part of a token in the tree."""

from __future__ import annotations

from tree_sitter import Node

_CLOSING_QUOTES = {b"`": b"`", b'"': b'"', b"[": b"]", b"@": b"", b"r#": b""}


def is_marked_name(node: Node, utf8: bytes, start: int, end: int) -> bool:
    """Return whether the part is a name in quotes, or a name after a mark for reserved words, such as `@` or `r#`."""
    opening, closing = utf8[node.start_byte : start], utf8[end : node.end_byte]
    return _CLOSING_QUOTES.get(opening) == closing
