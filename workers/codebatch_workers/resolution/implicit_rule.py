"""The interface through which a language takes part in the resolution of implicit imports.

An implicit import is the use of a name that another file defines, without an import. `resolution` of a result is
`exact` if scope, imports and the language's rules leave only this file, `file` if one file fits, and `name` if several
fit.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

import msgspec

from codebatch.model.record import Edge, File, Names, Record, Resolution, Symbol
from codebatch_workers.resolution.import_rule import ImportContext, PackageDefinitions
from codebatch_workers.resolution.tree import ResolvedImport


class ImplicitImport(msgspec.Struct, frozen=True):
    """The files that define a name which another file uses without an import.

    `name` is the leading part of the name as written that names the definition: `Price` of `Price.of`.
    """

    resolution: Resolution
    paths: tuple[str, ...]
    name: str


def found_in(paths: tuple[str, ...], name: str, *, is_certain: bool = True) -> ImplicitImport | None:
    """Return the implicit import of a name that the files `paths` define, or None if there are none.

    One file is `exact` if `is_certain` is set, and otherwise `file`. Several files are `name`.
    """
    if not paths:
        return None
    return ImplicitImport("name" if len(paths) > 1 else "exact" if is_certain else "file", paths, name)


class ImplicitImportRule:
    """The rule of one language, or of several that use names of each other. They share one object.

    It is given the definitions of every file of its languages. Then it finds the file that defines a name which another
    file uses.

    - `definitions_text`: a text that the lines of all needed symbol records contain, to decode no others. Empty if all
      are needed.
    - `relations_text`: the same for the edges that `add_relations` needs. Empty if it needs none.
    - `imports_modules`: an import names a module, which has no file of its own.
    - `needs_declarations`: whether `add_declarations` is called.
    """

    definitions_text = ""
    imports_modules = False
    relations_text = ""
    needs_declarations = False

    def __init__(self, context: ImportContext) -> None:
        """Start without definitions."""

    def add_definitions(self, path: str, language: str, symbols: Sequence[Symbol], *, is_partial: bool) -> None:
        """Add the symbols of a file. They include its imports. `is_partial` is set if it is only partly parsed."""

    def add_relations(self, path: str, edges: Sequence[Edge]) -> None:
        """Add edges of a file, among them all that contain `relations_text`, after the definitions of all files."""

    def add_declarations(self, path: str, functions: Iterable[str]) -> None:
        """Add the functions that a file declares without defining them."""

    def resolve(
        self, path: str, language: str, name: str, scope: str, imports: Sequence[Edge]
    ) -> ImplicitImport | None:
        """Return the files that define a name which the file `path` uses, or None if no file of the tree does.

        `scope` is as in `names` records. `imports` are the `imports` edges of the file.
        """
        return None

    def resolve_import(self, path: str, target: str) -> ResolvedImport | None:
        """Resolve the target of an import in the file `path`, if imports name definitions and not files.

        Return None if no file of the tree defines it. A result that is not external and has no paths is a namespace of
        the tree. It leads to no file.
        """
        return None

    def select_used(self, path: str, target: str, paths: Sequence[str], names: Names) -> Sequence[str]:
        """Return the files of an import on which the file `path` depends. `names` are those that it uses."""
        return paths

    @property
    def definitions(self) -> Mapping[str, PackageDefinitions]:
        """The definitions of each file that imports can name, by path."""
        return {}

    @classmethod
    def definitions_key(cls, file: File, records: Sequence[Record]) -> Hashable:
        """Return the part of a file's symbols and edges on which the links of other files can depend."""
        symbols = [record for record in records if isinstance(record, Symbol) and record.symbol_type != "import"]
        return visible_definitions(symbols), frozenset(
            record.declared for record in records if isinstance(record, Names)
        )


def visible_definitions(symbols: Iterable[Symbol]) -> Hashable:
    """Return the names, types and visibilities of definitions."""
    return frozenset((symbol.qualified, symbol.symbol_type, symbol.visibility) for symbol in symbols)
