"""Definitions and names of C#."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.languages.csharp.imported_names import read_imports
from codebatch_workers.languages.csharp.names import read_names
from codebatch_workers.languages.csharp.type_declarations import type_declarations
from codebatch_workers.symbols.language_symbols import LanguageSymbols

SYMBOLS: Mapping[str, LanguageSymbols] = {
    "csharp": LanguageSymbols(type_declarations=type_declarations, imports=read_imports, used_names=read_names),
}
