"""The types of imported names, and the texts of nodes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from tree_sitter import Node

PREFIX_CHARS_MAX = 1024
"""The maximum length of a common prefix in nested imports (`use a::{b::{c}}`).

Longer prefixes occur only in hostile input.
"""


class ImportedName(msgspec.Struct, frozen=True, gc=False):
    """One imported name: its target as written, the target's node, and the node of the local name or None.

    If one statement binds several names of one target, only the first of them has the target. It is empty in the
    others. `is_module` is true if the target certainly is a module, although it looks like a member of a module. In
    Rust, `module_file` is the file that `#[path]` sets for the module.
    """

    target: str
    node: Node
    bound: Node | None
    is_module: bool = False
    module_file: str = ""


class LocalImport(msgspec.Struct, frozen=True):
    """A name that an import binds. `target` is the target of the import as written, as in `imports` edges.

    `local` is empty if all names of the target are imported. It is a chain for Python's `import a.b`. `member` is the
    name that the import takes from the module `target`. It is `*` for the module itself, and empty if the target can be
    a module or a name in a module. In JavaScript, it is a name that the module exports (`file_exports.py`), or
    a chain of names in the same file if there is no target. `start` is the offset of the local name.
    """

    local: str
    target: str
    member: str
    line: int
    start: int = -1


ImportsReader = Callable[["Node", bytes], list[ImportedName]]


def node_text(node: Node, utf8: bytes) -> str:
    """Return the text of a name without white space, which some grammars allow within names."""
    return b"".join(utf8[node.start_byte : node.end_byte].split()).decode("utf-8", "replace")


def literal_text(node: Node, utf8: bytes) -> str:
    """Return the text of a literal without its first and last character, which are quotes or brackets."""
    return utf8[node.start_byte + 1 : node.end_byte - 1].decode("utf-8", "replace")


def call_arguments(node: Node) -> list[Node]:
    """Return the arguments of a call, without comments."""
    arguments = node.child_by_field_name("arguments")
    return [child for child in arguments.named_children if child.type != "comment"] if arguments is not None else []
