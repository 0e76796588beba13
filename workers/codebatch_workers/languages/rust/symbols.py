"""Definitions and names of Rust."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.languages.rust.imported_names import read_imports
from codebatch_workers.languages.rust.names import read_names
from codebatch_workers.symbols.language_symbols import LanguageSymbols

SYMBOLS: Mapping[str, LanguageSymbols] = {
    "rust": LanguageSymbols(imports=read_imports, used_names=read_names),
}
