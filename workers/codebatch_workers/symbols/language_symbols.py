"""Facts about the definitions of a language that outlines, imports, calls and occurrences need."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import msgspec
from tree_sitter import Node

from codebatch.model.record import Names
from codebatch_workers.symbols.file_outline import FileOutline
from codebatch_workers.symbols.imported_names import ImportsReader
from codebatch_workers.syntax.language.parts import LanguagePart, language_part
from codebatch_workers.syntax.source import SourceFile

UsedNamesReader = Callable[[SourceFile, FileOutline], "Names | None"]
"""A function that returns the record with the names that a file uses, or None if there are none."""


class LoadTime(msgspec.Struct, frozen=True, kw_only=True):
    """The time at which imports are executed: when their file is loaded, later, or never.

    - `function_nodes`: nodes whose code runs only when they are called. In a language without them, imports are
      resolved before any code runs.
    - `is_deferred`: an import outside of these nodes is executed later.
    - `is_type_only`: an import is never executed, because its names are only for a type checker.
    - `is_erasable`: a compiler erases the import or export that contains a node, if no option prevents this.
    - `declaration_endings`: endings of the paths of files that are never executed.
    """

    function_nodes: frozenset[str] = frozenset()
    is_deferred: Callable[[Node, bytes], bool] | None = None
    is_type_only: Callable[[Node, bytes], bool] | None = None
    is_erasable: Callable[[SourceFile, Node], bool] | None = None
    declaration_endings: tuple[bytes, ...] = ()


class LanguageSymbols(LanguagePart, frozen=True, kw_only=True):
    """The definitions of a language, and the names in its code.

    - `imports`: a function that returns the imported names of an import statement.
    - `load_time`: the time at which imports are executed.
    - `used_names`: a function that returns the names that a file uses without an import. The file has a tree.
    """

    MODULE: ClassVar[str] = "symbols"

    imports: ImportsReader | None = None
    load_time: LoadTime = LoadTime()
    used_names: UsedNamesReader | None = None


def language_symbols(language: str) -> LanguageSymbols:
    """Return the facts about the definitions of a language."""
    return language_part(language, LanguageSymbols)
