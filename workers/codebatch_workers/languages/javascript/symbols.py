"""Definitions and names of JavaScript and TypeScript."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
_BODIES = frozenset({"ambient_declaration", "class_body", "interface_body", "program", "statement_block"})
_MODULE_STATEMENTS = frozenset({"export_statement", "import_statement"})


def _read_users(node: Node) -> Iterator[str]:
    """Yield the users that a definition has by its place: code that gets an object, or that merges declarations."""
    if node.type == "method_definition" and node.parent is not None and node.parent.type == "object":
        yield "code with the object"
    around = node.parent if node.parent is not None and node.parent.type in _BODIES else None
    while around is not None:
        name = around.child_by_field_name("name") if around.type == "module" else None
        if name is not None and name.type == "string":
            yield f"the module {(name.text or b'').decode('utf-8', 'replace')[1:-1]}"
        elif around.type == "ambient_declaration" and any(child.type == "global" for child in around.children):
            yield "global code"
        elif around.type == "program" and node.type == "interface_declaration":
            yield from () if any(child.type in _MODULE_STATEMENTS for child in around.children) else ("global code",)
        around = around.parent


# Marks that only describe a definition.
_DESCRIPTIONS = frozenset(b"deprecated override".split())
_MARKS = MarkRules(descriptions=_DESCRIPTIONS, read_around=_read_users)
_TYPESCRIPT = LanguageSymbols(
    marks=_MARKS,
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
        marks=_MARKS,
        parameters=_PARAMETERS,
        visibility=_visibility_by_hash,
        imports=_read_imports,
        exports=file_exports,
        load_time=LoadTime(is_deferred=is_deferred, is_type_only=is_flow_type_only),
    ),
    "tsx": _TYPESCRIPT,
    "typescript": _TYPESCRIPT,
}
