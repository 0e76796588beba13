"""Definitions and names of Java, Kotlin and Scala."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.symbols.language_symbols import LanguageSymbols

SYMBOLS: Mapping[str, LanguageSymbols] = {
    "java": LanguageSymbols(),
    "kotlin": LanguageSymbols(),
    "scala": LanguageSymbols(),
}
