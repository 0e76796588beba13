"""Rust: paths outside `use`, and macros that other files of the crate define."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from codebatch.model.record import Edge, File, Record, Symbol
from codebatch_workers.languages.rust.imports import RustImports
from codebatch_workers.resolution.implicit_rule import ImplicitImport, ImplicitImportRule, found_in
from codebatch_workers.resolution.import_rule import ImportContext
from codebatch_workers.resolution.tree import ResolvedImport


class RustPaths(ImplicitImportRule):
    """The resolution of paths outside `use`, by the rules for `use`, and the macros that each crate defines.

    A macro has the name `path::name!`. If it is called without a path, it is found by its name in the crate of the
    file, because `#[macro_use]` and the order of modules are not taken into account.
    """

    definitions_text = '"symbol_type":"macro"'
    relations_text = '"is_module":true'

    def __init__(self, context: ImportContext) -> None:
        self._imports = context.shared(RustImports)
        self._macros: dict[tuple[str, str], set[str]] = {}

    @classmethod
    def definitions_key(cls, file: File, records: Sequence[Record]) -> Hashable:
        symbols = (record for record in records if isinstance(record, Symbol))
        modules = [(edge.target, edge.module_file) for edge in records if isinstance(edge, Edge) and edge.is_module]
        return frozenset(symbol.name for symbol in symbols if symbol.symbol_type == "macro"), tuple(modules)

    def add_definitions(self, path: str, language: str, symbols: Sequence[Symbol], *, is_partial: bool) -> None:
        for symbol in symbols:
            if symbol.symbol_type == "macro":
                key = (self._imports.crate_directory(path), symbol.name)
                self._macros.setdefault(key, set()).add(path)

    def add_relations(self, path: str, edges: Sequence[Edge]) -> None:
        self._imports.declared_modules[path] = [edge for edge in edges if edge.is_module]

    def resolve(
        self, path: str, language: str, name: str, scope: str, imports: Sequence[Edge]
    ) -> ImplicitImport | None:
        first, _, rest = name.partition("::")
        targets = list(
            dict.fromkeys(edge.target for edge in imports if edge.target.rpartition("::")[2] == first.rstrip("!"))
        )
        if name.endswith("!"):
            return self._resolve_macro(path, name, targets)
        if first in ("crate", "self", "super"):
            return _implicit(self._imports.resolve(path, name), path, name)
        if not targets:
            resolved = self._imports.resolve_in_crate_named(path, name)
            if resolved.resolution in ("exact", "file"):
                return _implicit(resolved, path, name)
            return self._resolve_through_globs(path, name, imports)
        paths: set[str] = set()
        for target in targets:
            paths.update(set(self._imports.resolve(path, f"{target}::{rest}").paths))
            paths.difference_update(self._imports.resolve(path, target).paths)
        return found_in(tuple(sorted(paths - {path})), name)

    def _resolve_through_globs(self, path: str, name: str, imports: Sequence[Edge]) -> ImplicitImport | None:
        """Resolve a path whose first name is a module in a module that the file imports with `*`."""
        found: set[str] = set()
        for target in {edge.target for edge in imports if edge.target.endswith("::*")}:
            module = target.removesuffix("::*")
            paths = set(self._imports.resolve(path, f"{module}::{name}").paths)
            found |= paths - set(self._imports.resolve(path, module).paths)
        return found_in(tuple(sorted(found - {path})), name, is_certain=False)

    def _resolve_macro(self, path: str, name: str, targets: Sequence[str]) -> ImplicitImport | None:
        crate_path, _, macro = name.removesuffix("!").rpartition("::")
        if crate_path:
            targets = [crate_path]
        if not targets:
            key = (self._imports.crate_directory(path), macro)
            return found_in(tuple(sorted(self._macros.get(key, set()) - {path})), name, is_certain=False)
        files = {
            file
            for target in targets
            for root in self._imports.resolve(path, target.partition("::")[0]).paths
            for file in self._macros.get((self._imports.crate_directory(root), macro), ())
        }
        return found_in(tuple(sorted(files - {path})), name)


def _implicit(resolved: ResolvedImport, path: str, name: str) -> ImplicitImport | None:
    paths = tuple(other for other in resolved.paths if other != path)
    return ImplicitImport(resolved.resolution, paths, name) if paths else None


IMPLICIT = {"rust": RustPaths}
