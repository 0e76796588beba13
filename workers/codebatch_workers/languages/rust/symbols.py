"""Definitions and names of Rust."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tree_sitter import Node

from codebatch.model.record import SymbolType, Visibility
from codebatch_workers.languages.rust.imported_names import read_imports
from codebatch_workers.languages.rust.inner_names import is_in_format
from codebatch_workers.languages.rust.names import read_names
from codebatch_workers.languages.rust.unmarked_calls import unmarked_calls
from codebatch_workers.symbols.language_symbols import LanguageSymbols, MarkRules, ParameterRules
from codebatch_workers.symbols.occurrences.inner_names import is_marked_name


def _visibility(_name: str, symbol_type: SymbolType, around: str) -> Visibility:
    is_public = symbol_type in ("enum_member", "macro", "import") or around in ("trait", "enum")
    return "public" if is_public else "private"


def _read_trait(node: Node) -> Iterator[str]:
    """Yield `impl A` for a node in the implementation of a trait."""
    body = node.parent if node.parent is not None and node.parent.type == "declaration_list" else None
    trait = body.parent.child_by_field_name("trait") if body is not None and body.parent is not None else None
    if trait is not None:
        yield f"impl {(trait.text or b'').decode('utf-8', 'replace')}"


SYMBOLS: Mapping[str, LanguageSymbols] = {
    "rust": LanguageSymbols(
        scope_separator="::",
        parameters=ParameterRules(
            leading_name=re.compile(rb"(?:&\s*)?(?:'\w+\s+)?(?:mut\s+)?((?:ref\s+)?[\w\x80-\xff]+)")
        ),
        visibility=_visibility,
        imports=read_imports,
        inner_names={"identifier": is_marked_name, "string_content": is_in_format},
        marks=MarkRules(read_around=_read_trait),
        unmarked_calls=unmarked_calls,
        used_names=read_names,
    ),
}
