"""Facts about the definitions of a language that outlines, imports, calls and occurrences need."""

from __future__ import annotations

from typing import ClassVar

from codebatch_workers.syntax.language.parts import LanguagePart, language_part


class LanguageSymbols(LanguagePart, frozen=True, kw_only=True):
    """The definitions of a language, and the names in its code."""

    MODULE: ClassVar[str] = "symbols"


def language_symbols(language: str) -> LanguageSymbols:
    """Return the facts about the definitions of a language."""
    return language_part(language, LanguageSymbols)
