"""Definitions and names of Python."""

from __future__ import annotations

import re
from collections.abc import Mapping

from codebatch.model.record import SymbolType, Visibility
from codebatch_workers.languages.python.imported_names import read_imports
from codebatch_workers.languages.python.load_time import is_for_main_program, is_for_type_checker
from codebatch_workers.symbols.language_symbols import LanguageSymbols, LoadTime, ParameterRules


def _is_init(name: str, _class_name: str) -> bool:
    return name == "__init__"


def _visibility_by_underscore(name: str, symbol_type: SymbolType, _around: str) -> Visibility:
    return "private" if name[0] == "_" and symbol_type != "import" and not name.endswith("__") else "public"


SYMBOLS: Mapping[str, LanguageSymbols] = {
    "python": LanguageSymbols(
        is_constructor=_is_init,
        parameters=ParameterRules(leading_name=re.compile(rb"\*{0,2}[\w\x80-\xff]+")),
        visibility=_visibility_by_underscore,
        rejects_reserved_names=True,
        capitals_are_constants=True,
        trailing_marks=b";\\",
        imports=read_imports,
        has_imports_without_calls=True,
        load_time=LoadTime(
            function_nodes=frozenset({"function_definition"}),
            is_deferred=is_for_main_program,
            is_type_only=is_for_type_checker,
            declaration_endings=(b".pyi",),
        ),
    ),
}
