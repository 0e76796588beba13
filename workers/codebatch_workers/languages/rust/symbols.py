"""Definitions and names of Rust."""

from __future__ import annotations

import re
from collections.abc import Mapping

from codebatch.model.record import SymbolType, Visibility
from codebatch_workers.languages.rust.imported_names import read_imports
from codebatch_workers.languages.rust.names import read_names
from codebatch_workers.symbols.language_symbols import LanguageSymbols, ParameterRules


def _visibility(_name: str, symbol_type: SymbolType, around: str) -> Visibility:
    is_public = symbol_type in ("enum_member", "macro", "import") or around in ("trait", "enum")
    return "public" if is_public else "private"


SYMBOLS: Mapping[str, LanguageSymbols] = {
    "rust": LanguageSymbols(
        scope_separator="::",
        parameters=ParameterRules(
            leading_name=re.compile(rb"(?:&\s*)?(?:'\w+\s+)?(?:mut\s+)?((?:ref\s+)?[\w\x80-\xff]+)")
        ),
        visibility=_visibility,
        imports=read_imports,
        used_names=read_names,
    ),
}
