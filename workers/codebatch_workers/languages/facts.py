"""Facts about all languages, also about those without a folder."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from codebatch.model.analysis.language_facts import LanguageFacts
from codebatch_workers.syntax.language.languages import UNKNOWN_LANGUAGE, code_endings, family_of, path_language

__all__ = ["call_each_other", "code_endings", "language_facts", "language_family", "path_facts"]

_PLAIN = LanguageFacts(mentions="plain")
_PLAIN_WITH_HASHES = LanguageFacts(mentions="plain", has_hash_comments=True)
_WITHOUT_FOLDER: Mapping[LanguageFacts, str] = {
    LanguageFacts(mentions="none"): "diff gettext gitattributes gitignore roff rst tex",
    LanguageFacts(has_hash_comments=True): "elixir perl r",
    _PLAIN: "astro batch blade ejs erb gradle handlebars ini jinja less liquid meson mustache ninja properties sass "
    "scss svelte svg text twig vue xml",
    _PLAIN_WITH_HASHES: "bazel cmake dockerfile fish make powershell",
}


@cache
def language_facts(language: str) -> LanguageFacts:
    """Return the facts about a language. All have their defaults if nothing is known of it."""
    family = language_family(language)
    if family != language or family_of(language):
        facts: Mapping[str, LanguageFacts] = import_module(f"{__package__}.{family}").FACTS
        return facts[language]
    return next((facts for facts, names in _WITHOUT_FOLDER.items() if language in names.split()), LanguageFacts())


def path_facts(path: bytes) -> LanguageFacts:
    """Return the facts about the language that the path of a file shows."""
    return language_facts(path_language(path) or UNKNOWN_LANGUAGE)


def call_each_other(language: str, other: str) -> bool:
    """Return whether code in two languages can call each other by name."""
    is_native = language_facts(language).is_native or language_facts(other).is_native
    return is_native or language_family(language) == language_family(other)


def language_family(language: str) -> str:
    """Return the family of a language. A language without a folder is its own family."""
    return family_of(language) or language
