"""Definitions and names of Python."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.languages.python.imported_names import read_imports
from codebatch_workers.languages.python.load_time import is_for_main_program, is_for_type_checker
from codebatch_workers.symbols.language_symbols import LanguageSymbols, LoadTime

SYMBOLS: Mapping[str, LanguageSymbols] = {
    "python": LanguageSymbols(
        imports=read_imports,
        load_time=LoadTime(
            function_nodes=frozenset({"function_definition"}),
            is_deferred=is_for_main_program,
            is_type_only=is_for_type_checker,
            declaration_endings=(b".pyi",),
        ),
    ),
}
