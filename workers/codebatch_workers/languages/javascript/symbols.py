"""Definitions and names of JavaScript and TypeScript."""

from __future__ import annotations

import re

from tree_sitter import Node

from codebatch.model.record import SymbolType, Visibility
from codebatch_workers.languages.javascript.file_exports import file_exports
from codebatch_workers.languages.javascript.load_time import is_deferred, is_erasable, is_flow_type_only, is_type_only
from codebatch_workers.symbols.imported_names import ImportedName, node_text
from codebatch_workers.symbols.language_symbols import LanguageSymbols, LoadTime, MarkRules, ParameterRules


def _read_imports(node: Node, utf8: bytes) -> list[ImportedName]:
    """Return the target and bound name of `import a = b.c`. The query itself captures all other imports."""
    if node.type != "import_alias":
        return []
    names = node.named_children
    return [ImportedName(node_text(names[1], utf8), names[1], names[0])] if len(names) > 1 else []


def _visibility_by_hash(name: str, _symbol_type: SymbolType, _around: str) -> Visibility:
    return "private" if name[0] == "#" else "public"


_PARAMETERS = ParameterRules(
    leading_name=re.compile(
        rb"(?:(?:@[\w.]+(?:\([^()]*\))?|public|private|protected|readonly|override)\s+)*"
        rb"((?:\.\.\.)?[\w$\x80-\xff]+|[{\[])"
    ),
    have_decorators=True,
)
# Marks that only describe a definition.
_DESCRIPTIONS = frozenset(b"deprecated override".split())
_TYPESCRIPT = LanguageSymbols(
    marks=MarkRules(descriptions=_DESCRIPTIONS),
    parameters=_PARAMETERS,
    visibility=_visibility_by_hash,
    imports=_read_imports,
    exports=file_exports,
    load_time=LoadTime(
        is_deferred=is_deferred,
        is_type_only=is_type_only,
        is_erasable=is_erasable,
        declaration_endings=(b".d.ts", b".d.mts", b".d.cts"),
    ),
)
SYMBOLS = {
    "javascript": LanguageSymbols(
        marks=MarkRules(descriptions=_DESCRIPTIONS),
        parameters=_PARAMETERS,
        visibility=_visibility_by_hash,
        imports=_read_imports,
        exports=file_exports,
        load_time=LoadTime(is_deferred=is_deferred, is_type_only=is_flow_type_only),
    ),
    "tsx": _TYPESCRIPT,
    "typescript": _TYPESCRIPT,
}
