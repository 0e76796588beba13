"""The time at which an import is executed: when its file is loaded, later, or never."""

from __future__ import annotations

from collections.abc import Collection

from tree_sitter import Node

from codebatch_workers.symbols.language_symbols import LoadTime
from codebatch_workers.syntax.nodes import ancestors


def is_deferred_import(node: Node, rules: LoadTime, utf8: bytes) -> bool:
    """Return whether an import is not yet executed when its file is loaded."""
    return is_within(node, rules.function_nodes) or (rules.is_deferred is not None and rules.is_deferred(node, utf8))


def is_type_only_import(node: Node, rules: LoadTime, path: bytes, utf8: bytes) -> bool:
    """Return whether an import is never executed, because its names are only for a type checker."""
    is_declared = path.endswith(rules.declaration_endings)
    return is_declared or (rules.is_type_only is not None and rules.is_type_only(node, utf8))


def is_within(node: Node, node_types: Collection[str]) -> bool:
    """Return whether a node is in a node of one of some types."""
    return bool(node_types) and any(above.type in node_types for above in ancestors(node))
