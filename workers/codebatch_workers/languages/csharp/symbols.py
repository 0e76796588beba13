"""Definitions and names of C#."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.languages.csharp.imported_names import read_imports
from codebatch_workers.languages.csharp.names import read_names
from codebatch_workers.languages.csharp.type_declarations import type_declarations
from codebatch_workers.symbols.language_symbols import LanguageSymbols
from codebatch_workers.symbols.occurrences.inner_names import is_marked_name

SYMBOLS: Mapping[str, LanguageSymbols] = {
    "csharp": LanguageSymbols(
        type_declarations=type_declarations,
        imports=read_imports,
        inner_names={"identifier": is_marked_name},
        used_names=read_names,
    ),
}
