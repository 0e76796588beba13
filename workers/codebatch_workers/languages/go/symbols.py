"""Definitions and names of Go."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from codebatch.model.record import SymbolType, Visibility
from codebatch_workers.languages.go.names import read_names
from codebatch_workers.symbols.imported_names import ImportedName, literal_text
from codebatch_workers.symbols.language_symbols import LanguageSymbols, MarkRules, ParameterRules

_DIRECTIVE = re.compile(rb"//(?:export|go:linkname)\b")


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


def _visibility_by_capital(name: str, symbol_type: SymbolType, _around: str) -> Visibility:
    return "public" if name[0].isupper() or symbol_type in ("import", "module") else "private"


def _read_directive(node: Node) -> Iterator[str]:
    """Yield the directive of a comment that makes a function known to code in other languages and packages."""
    text = node.text or b""
    if _DIRECTIVE.match(text):
        yield text.decode("utf-8", "replace").partition(" ")[0]


SYMBOLS = {
    "go": LanguageSymbols(
        parameters=ParameterRules(leading_name=re.compile(rb"[\w\x80-\xff]+")),
        visibility=_visibility_by_capital,
        has_unnamed_types=True,
        imports=_read_imports,
        has_imports_without_calls=True,
        marks=MarkRules(read_before=_read_directive),
        used_names=read_names,
    ),
}
