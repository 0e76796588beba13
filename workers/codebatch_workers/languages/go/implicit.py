"""Go: files of a package use each other's names. A package is a directory; its tests may form a second package."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from codebatch.model.record import Edge, File, Record, Symbol
from codebatch_workers.resolution.implicit_rule import ImplicitImport, ImplicitImportRule, found_in
from codebatch_workers.resolution.import_rule import ImportContext
from codebatch_workers.resolution.tree import parent_directory

_PACKAGE_SYMBOLS = frozenset({"constant", "function", "interface", "struct", "type", "variable"})


class GoPackageNames(ImplicitImportRule):
    """The names that the files of each Go package define at their outermost level."""

    definitions_text = '"scope":""'

    def __init__(self, context: ImportContext) -> None:
        self._packages: dict[str, tuple[str, str]] = {}
        self._definitions: dict[tuple[str, str], dict[str, set[str]]] = {}

    @classmethod
    def definitions_key(cls, file: File, records: Sequence[Record]) -> Hashable:
        symbols = (record for record in records if isinstance(record, Symbol) and record.symbol_type != "import")
        return frozenset((symbol.name, symbol.symbol_type) for symbol in symbols if not symbol.scope)

    def add_definitions(self, path: str, language: str, symbols: Sequence[Symbol], *, is_partial: bool) -> None:
        package = next((symbol.name for symbol in symbols if symbol.symbol_type == "module"), "")
        key = self._packages[path] = (parent_directory(path), package)
        names = self._definitions.setdefault(key, {})
        for symbol in symbols:
            if symbol.symbol_type in _PACKAGE_SYMBOLS and not symbol.scope:
                names.setdefault(symbol.name, set()).add(path)

    def resolve(
        self, path: str, language: str, name: str, scope: str, imports: Sequence[Edge]
    ) -> ImplicitImport | None:
        key = self._packages.get(path)
        if key is None:
            return None
        # Files for different systems may define the same name. Only one of them is compiled.
        return found_in(tuple(sorted(self._definitions[key].get(name, set()) - {path})), name)


IMPLICIT = {"go": GoPackageNames}
