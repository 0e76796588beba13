"""The rules of languages for links between files and for uses of names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from codebatch_workers.syntax.language.parts import find_value

if TYPE_CHECKING:
    from codebatch_workers.resolution.implicit_rule import ImplicitImportRule
    from codebatch_workers.resolution.import_rule import ImportContext, ImportRule
    from codebatch_workers.uses.language_resolver import LanguageUses


def import_rule(language: str) -> Callable[[ImportContext], ImportRule] | None:
    """Return the rule of a language for imports, or None if its imports are not resolved."""
    return cast("Callable[[ImportContext], ImportRule] | None", find_value(language, "imports"))


def implicit_import_rule(language: str) -> type[ImplicitImportRule] | None:
    """Return the rule of a language for names that are used without an import, or None if it has none."""
    return cast("type[ImplicitImportRule] | None", find_value(language, "implicit"))


def language_uses(language: str) -> LanguageUses | None:
    """Return how the uses of names are resolved in a language, or None if they are not."""
    return cast("LanguageUses | None", find_value(language, "uses"))
