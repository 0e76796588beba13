"""Definitions and names of PHP."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.symbols.language_symbols import LanguageSymbols

SYMBOLS: Mapping[str, LanguageSymbols] = {
    "php": LanguageSymbols(),
}
