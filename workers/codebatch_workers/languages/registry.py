"""The rules of the families of languages for links between files and for uses of names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from codebatch_workers.symbols.language_symbols import language_symbols
from codebatch_workers.syntax.language.parts import part_module

if TYPE_CHECKING:
    from codebatch.model.record import Names
    from codebatch_workers.resolution.implicit_rule import ImplicitImportRule
    from codebatch_workers.resolution.import_rule import ImportContext, ImportRule
    from codebatch_workers.symbols.file_outline import FileOutline
    from codebatch_workers.syntax.source import SourceFile
    from codebatch_workers.uses.language_resolver import LanguageUses


def import_rule(language: str) -> Callable[[ImportContext], ImportRule] | None:
    """Return the rule of a language for imports, or None if its imports are not resolved."""
    module = part_module(language, "imports")
    rules: Mapping[str, Callable[[ImportContext], ImportRule]] = {} if module is None else module.IMPORT_RULES
    return rules.get(language)


def implicit_import_rule(language: str) -> type[ImplicitImportRule] | None:
    """Return the rule of a language for names that are used without an import, or None if it has none."""
    module = part_module(language, "implicit")
    rules: Mapping[str, type[ImplicitImportRule]] = {} if module is None else module.IMPLICIT_RULES
    return rules.get(language)


def language_uses(language: str) -> LanguageUses | None:
    """Return how the uses of names are resolved in a language, or None if they are not."""
    module = part_module(language, "uses")
    uses: Mapping[str, LanguageUses] = {} if module is None else module.USES
    return uses.get(language)


def used_names(file: SourceFile, outline: FileOutline) -> Names | None:
    """Return the record with the names that a file uses without an import, or None if there are none."""
    reader = None if file.tree is None else language_symbols(file.language).used_names
    return None if reader is None else reader(file, outline)
