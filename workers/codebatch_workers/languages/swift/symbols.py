"""Definitions and names of Swift."""

from __future__ import annotations

from tree_sitter import Node

from codebatch_workers.languages.swift.names import read_names
from codebatch_workers.symbols.imported_names import ImportedName, node_text
from codebatch_workers.symbols.language_symbols import LanguageSymbols, MarkRules
from codebatch_workers.symbols.occurrences.inner_names import is_marked_name


def _read_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the module of a Swift import, or the definition in it: `import struct A.B` has the target `A.B`."""
    name = next((child for child in node.named_children if child.type == "identifier"), None)
    return [] if name is None else [ImportedName(node_text(name, utf8), name, None)]


# Marks that only describe a definition.
_DESCRIPTIONS = frozenset(b"available discardableresult frozen inlinable mainactor usablefrominline".split())
SYMBOLS = {
    "swift": LanguageSymbols(
        marks=MarkRules(descriptions=_DESCRIPTIONS),
        imports=_read_imports,
        inner_names={"simple_identifier": is_marked_name},
        used_names=read_names,
    ),
}
