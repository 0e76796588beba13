"""The families of languages. A part of a family is imported when a file of one of its languages needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codebatch.model.record import Names
    from codebatch_workers.resolution.implicit_rule import ImplicitImportRule
    from codebatch_workers.resolution.import_rule import ImportContext, ImportRule
    from codebatch_workers.symbols.outline import FileOutline
    from codebatch_workers.symbols.used_names import UsedNamesReader
    from codebatch_workers.syntax.source import SourceFile
    from codebatch_workers.uses.language_resolver import LanguageUses

_LANGUAGES_BY_FAMILY: Mapping[str, str] = {
    "c": "c cpp",
    "csharp": "csharp",
    "go": "go",
    "javascript": "javascript tsx typescript",
    "jvm": "java kotlin scala",
    "lua": "lua",
    "php": "php",
    "python": "python",
    "ruby": "ruby",
    "rust": "rust",
    "shell": "bash zsh",
    "swift": "swift",
}
_FAMILY_BY_LANGUAGE = {
    language: family for family, languages in _LANGUAGES_BY_FAMILY.items() for language in languages.split()
}


def family_of(language: str) -> str | None:
    """Return the family of a language, or None if the language has no folder."""
    return _FAMILY_BY_LANGUAGE.get(language)


def import_rule(language: str) -> Callable[[ImportContext], ImportRule] | None:
    """Return the rule of a language for imports, or None if its imports are not resolved."""
    module = _part(language, "imports")
    rules: Mapping[str, Callable[[ImportContext], ImportRule]] = {} if module is None else module.IMPORT_RULES
    return rules.get(language)


def implicit_import_rule(language: str) -> type[ImplicitImportRule] | None:
    """Return the rule of a language for names that are used without an import, or None if it has none."""
    module = _part(language, "implicit")
    rules: Mapping[str, type[ImplicitImportRule]] = {} if module is None else module.IMPLICIT_RULES
    return rules.get(language)


def language_uses(language: str) -> LanguageUses | None:
    """Return how the uses of names are resolved in a language, or None if they are not."""
    module = _part(language, "uses")
    uses: Mapping[str, LanguageUses] = {} if module is None else module.USES
    return uses.get(language)


def used_names(file: SourceFile, outline: FileOutline) -> Names | None:
    """Return the record with the names that a file uses without an import, or None if there are none."""
    module = None if file.tree is None else _part(file.language, "names")
    readers: Mapping[str, UsedNamesReader] = {} if module is None else module.USED_NAMES
    return readers[file.language](file, outline) if file.language in readers else None


@cache
def _part(language: str, part: str) -> ModuleType | None:
    """Return a module of the family of a language, or None if the family has none with this name."""
    family = family_of(language)
    module = f"{__package__}.{family}.{part}"
    return None if family is None or find_spec(module) is None else import_module(module)
