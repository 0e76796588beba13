"""Definitions and names of Go."""

from __future__ import annotations

from collections.abc import Mapping

from tree_sitter import Node

from codebatch_workers.languages.go.names import read_names
from codebatch_workers.symbols.imported_names import ImportedName, literal_text
from codebatch_workers.symbols.language_symbols import LanguageSymbols


def _read_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the path of an import in Go.

    A name is bound only if the import sets one. Otherwise, the package's own name is bound, which is unknown here.
    """
    path = node.child_by_field_name("path")
    if path is None:
        return []
    name = node.child_by_field_name("name")
    return [
        ImportedName(
            literal_text(path, utf8), path, name if name is not None and name.type == "package_identifier" else None
        )
    ]


SYMBOLS: Mapping[str, LanguageSymbols] = {
    "go": LanguageSymbols(imports=_read_imports, used_names=read_names),
}
