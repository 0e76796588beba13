"""Definitions and names of Bash and Zsh."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.symbols.language_symbols import LanguageSymbols, LoadTime

_SHELL = LanguageSymbols(
    capitals_are_constants=True, load_time=LoadTime(function_nodes=frozenset({"function_definition"}))
)
SYMBOLS: Mapping[str, LanguageSymbols] = {"bash": _SHELL, "zsh": _SHELL}
