"""Go: files of a package use each other's names. A package is a directory; its tests may form a second package."""

from __future__ import annotations

from collections.abc import Sequence

from codebatch.model.record import Edge, Symbol
from codebatch_workers.resolution.implicit.implicit_import import ImplicitImport, found_in
from codebatch_workers.resolution.tree import PathTree, parent_directory

_PACKAGE_SYMBOLS = frozenset({"constant", "function", "interface", "struct", "type", "variable"})


class GoPackageNames:
    """The names that the files of each Go package define at their outermost level."""

    definitions_text = '"scope":""'

    def __init__(self, _tree: PathTree) -> None:
        self._packages: dict[str, tuple[str, str]] = {}
        self._definitions: dict[tuple[str, str], dict[str, set[str]]] = {}

    def add_definitions(self, path: str, _language: str, symbols: Sequence[Symbol], *, is_partial: bool) -> None:
        package = next((symbol.name for symbol in symbols if symbol.symbol_type == "module"), "")
        key = self._packages[path] = (parent_directory(path), package)
        names = self._definitions.setdefault(key, {})
        for symbol in symbols:
            if symbol.symbol_type in _PACKAGE_SYMBOLS and not symbol.scope:
                names.setdefault(symbol.name, set()).add(path)

    def resolve(self, path: str, _language: str, name: str, imports: Sequence[Edge]) -> ImplicitImport | None:
        key = self._packages.get(path)
        if key is None:
            return None
        # Files for different systems may define the same name. Only one of them is compiled.
        return found_in(tuple(sorted(self._definitions[key].get(name, set()) - {path})), name)
