"""What is known of one import, and the texts of nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tree_sitter import Node


PREFIX_CHARS_MAX = 1024
"""What nested imports (`use a::{b::{c}}`) have in common: what is longer is made to hurt."""


class ImportedName(msgspec.Struct, frozen=True, gc=False):
    """One thing imported: its name as written, where, and the node of the local name that it binds, if any.

    Where one statement binds several names of one target, the target stands in the first and is empty in the others.
    `is_module` says that all of the target is a module's, where another statement could make the same target of a name.
    `module_file` is the file that Rust's `#[path]` gives such a module.
    """

    target: str
    node: Node
    bound: Node | None
    is_module: bool = False
    module_file: str = ""


ImportsOf = Callable[["Node", bytes], list[ImportedName]]


def node_text(node: Node, utf8: bytes) -> str:
    """A name as written, without the whitespace that some grammars allow inside."""
    return b"".join(utf8[node.start_byte : node.end_byte].split()).decode("utf-8", "replace")


def literal_text(node: Node, utf8: bytes) -> str:
    """What is between a literal's quotes or brackets."""
    return utf8[node.start_byte + 1 : node.end_byte - 1].decode("utf-8", "replace")
