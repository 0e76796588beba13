"""Definitions and names of C and C++."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.languages.c.imported_names import read_imports
from codebatch_workers.languages.c.names import read_names
from codebatch_workers.symbols.language_symbols import LanguageSymbols

SYMBOLS: Mapping[str, LanguageSymbols] = {
    "c": LanguageSymbols(imports=read_imports, used_names=read_names),
    "cpp": LanguageSymbols(imports=read_imports, used_names=read_names),
}
