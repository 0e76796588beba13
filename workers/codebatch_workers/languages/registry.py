"""The families of languages. A part of a family is imported when a file of one of its languages needs it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import cast

from codebatch_workers.uses.language_resolver import LanguageUses

_LANGUAGES_BY_FAMILY: Mapping[str, str] = {
    "c": "c cpp",
    "csharp": "csharp",
    "go": "go",
    "javascript": "javascript tsx typescript",
    "jvm": "java kotlin scala",
    "php": "php",
    "python": "python",
    "ruby": "ruby",
    "rust": "rust",
    "swift": "swift",
}
_FAMILY_BY_LANGUAGE = {
    language: family for family, languages in _LANGUAGES_BY_FAMILY.items() for language in languages.split()
}


def language_uses(language: str) -> LanguageUses | None:
    """Return how the uses of names are resolved in a language, or None if they are not."""
    module = _part(language, "uses")
    return None if module is None else cast("Mapping[str, LanguageUses]", module.USES).get(language)


def _part(language: str, part: str) -> ModuleType | None:
    """Return a module of the family of a language, or None if the family has none with this name."""
    family = _FAMILY_BY_LANGUAGE.get(language)
    module = f"{__package__}.{family}.{part}"
    return None if family is None or find_spec(module) is None else import_module(module)
