"""The rules for implicit imports by language, and their common interface.

A rule is given the definitions of every file of its languages. Then it finds the file that defines a name which another
file uses. `resolution` is `exact` if scope, imports and the language's rules leave only this file, `file` if one file
fits, and `name` if several fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from codebatch.model.record import Edge, Symbol
from codebatch_workers.resolution.implicit.c import CExternalNames
from codebatch_workers.resolution.implicit.csharp import CSharpNames
from codebatch_workers.resolution.implicit.go import GoPackageNames
from codebatch_workers.resolution.implicit.implicit_import import ImplicitImport
from codebatch_workers.resolution.implicit.jvm import JvmPackageNames
from codebatch_workers.resolution.implicit.php import PhpNames
from codebatch_workers.resolution.implicit.ruby import RubyConstants
from codebatch_workers.resolution.implicit.swift import SwiftModuleNames
from codebatch_workers.resolution.tree import PathTree, ResolvedImport


class ImplicitImportRule(Protocol):
    """A rule that finds the files which define the names that other files use without an import."""

    definitions_text: str
    """A text that the lines of all needed symbol records contain, to decode no others. Empty if all are needed."""

    def add_definitions(self, path: str, language: str, symbols: Sequence[Symbol], *, is_partial: bool) -> None:
        """Add the symbols of a file. They include its imports. `is_partial` is set if it is only partly parsed."""

    def resolve(self, path: str, language: str, name: str, imports: Sequence[Edge]) -> ImplicitImport | None:
        """Return the files that define a name which the file `path` uses, or None if no file of the tree does.

        `imports` are the `imports` edges of the file.
        """


@runtime_checkable
class RuleWithRelations(Protocol):
    """A rule that also needs the imports and bases of all files."""

    def add_relations(self, path: str, edges: Sequence[Edge]) -> None:
        """Add edges of a file, among them all `imports` and `inherits`, after the definitions of all files."""


@runtime_checkable
class DefinedImportRule(Protocol):
    """A rule that also resolves imports, because they name definitions and not files."""

    def resolve_import(self, path: str, target: str) -> ResolvedImport | None:
        """Resolve the target of an import in the file `path`, or return None if no file of the tree defines it.

        A result that is not external and has no paths is a namespace of the tree. It leads to no file.
        """


IMPLICIT_IMPORT_RULES: Mapping[str, Callable[[PathTree], ImplicitImportRule]] = {
    "c": CExternalNames,
    "cpp": CExternalNames,
    "csharp": CSharpNames,
    "go": GoPackageNames,
    "java": JvmPackageNames,
    "kotlin": JvmPackageNames,
    "php": PhpNames,
    "ruby": RubyConstants,
    "scala": JvmPackageNames,
    "swift": SwiftModuleNames,
}
"""The rules by language. Languages that use names of each other have the same rule, and share one object of it."""
