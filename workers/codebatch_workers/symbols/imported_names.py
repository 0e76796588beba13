"""One imported name, and texts of nodes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from tree_sitter import Node

PREFIX_CHARS_MAX = 1024
"""The maximum length of a common prefix in nested imports (`use a::{b::{c}}`).

Longer prefixes occur only in hostile input.
"""


class ImportedName(msgspec.Struct, frozen=True, gc=False):
    """One imported name: its target as written, its node, and the node of the local name that it binds, or None.

    If one statement binds several names of one target, only the first has the target; it is empty in the others.
    `is_module` is true if the whole target is a module, and another statement could import a member with the same
    target. `module_file` is the file of such a module according to Rust's `#[path]`.
    """

    target: str
    node: Node
    bound: Node | None
    is_module: bool = False
    module_file: str = ""


ImportsOf = Callable[["Node", bytes], list[ImportedName]]


def node_text(node: Node, utf8: bytes) -> str:
    """Return a name as written, without white space in it, which some grammars allow."""
    return b"".join(utf8[node.start_byte : node.end_byte].split()).decode("utf-8", "replace")


def literal_text(node: Node, utf8: bytes) -> str:
    """Return the text between the quotes or brackets of a literal."""
    return utf8[node.start_byte + 1 : node.end_byte - 1].decode("utf-8", "replace")
