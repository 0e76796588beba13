"""Definitions and names of Lua."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.languages.lua.imported_names import read_imports
from codebatch_workers.symbols.language_symbols import LanguageSymbols, LoadTime

SYMBOLS: Mapping[str, LanguageSymbols] = {
    "lua": LanguageSymbols(
        imports=read_imports,
        load_time=LoadTime(function_nodes=frozenset({"function_declaration", "function_definition"})),
    ),
}
