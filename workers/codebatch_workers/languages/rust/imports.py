"""Rust: module paths from the root of their crate, and other crates by Cargo.toml.

A path such as `crate::a::B` resolves to the file of the deepest module on it. The rest of the path names members of
this module. Results are `exact` if module rules and manifests determine them. If a crate has no manifest, it is found
only by the name of its directory.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from functools import cached_property

from codebatch.model.record import Edge
from codebatch_workers.languages.rust.cargo import CargoPackage, CargoPackages
from codebatch_workers.languages.rust.modules import ModuleTable
from codebatch_workers.resolution.import_rule import ImportContext, ImportRule
from codebatch_workers.resolution.tree import (
    EXTERNAL_IMPORT,
    ResolvedImport,
    exact_import,
    fitting_import,
    iter_ancestors,
    join_path,
    parent_directory,
    relative_to,
)

_CRATE_ROOT_NAMES = ("lib.rs", "main.rs")
_STANDARD_CRATES = frozenset({"alloc", "core", "proc_macro", "std", "test"})


class RustImports(ImportRule):
    """The resolution of `crate::a::B`, `self::…`, `super::…`, `a::b`, and of the file that a `#[path]` names.

    `declared_modules` has the modules that each file declares without a body. It must be complete before the first
    import is resolved.
    """

    depends_on_file = True

    def __init__(self, context: ImportContext) -> None:
        super().__init__(context)
        self._packages = CargoPackages(context.tree)
        self._roots_of: dict[str, tuple[str, list[str]]] = {}
        self.declared_modules: dict[str, list[Edge]] = {}

    @cached_property
    def _modules(self) -> ModuleTable:
        return ModuleTable(self._tree, self.declared_modules, self._module_directory)

    def resolve(self, path: str, target: str) -> ResolvedImport:
        """Resolve `target`, an import in the file `path`."""
        if target.endswith(".rs"):
            place = relative_to(parent_directory(path), target)
            return exact_import(place if place in self._tree.paths else None)
        is_absolute = target.startswith("::")
        parts = [part.removeprefix("r#") for part in target.split("::") if part not in ("", "*")]
        if not parts or parts[0] in _STANDARD_CRATES:
            return EXTERNAL_IMPORT
        package = self._packages.enclosing_package(parent_directory(path))
        directory, roots = self._crate_of_file(path, package)
        if parts[0] == "crate":
            return self._resolve_in_crate(directory, roots, parts[1:])
        if parts[0] in ("self", "super"):
            return self._resolve_from_module(path, directory, roots, parts)
        if not is_absolute or (package is not None and package.is_2015):
            module_path = self._declared_module_file(path, directory, package, parts)
            if module_path is not None:
                return exact_import(module_path)
        return self._resolve_in_other_crate(package, parts)

    def resolve_module(self, path: str, target: str) -> ResolvedImport:
        """Resolve a module that the file `path` declares.

        With conditional compilation, the result can be several files.
        """
        parts = [part.removeprefix("r#") for part in target.split("::")[1:]]
        files = self._modules.files_of_module(join_path(self._modules.module_of_file(path), "/".join(parts)))
        return ResolvedImport("exact", tuple(sorted(files))) if files and files != (path,) else EXTERNAL_IMPORT

    def resolve_in_crate_named(self, path: str, target: str) -> ResolvedImport:
        """Resolve a path in the file `path` whose first name is the name of a crate."""
        parts = target.split("::")
        if parts[0] in _STANDARD_CRATES:
            return EXTERNAL_IMPORT
        return self._resolve_in_other_crate(self._packages.enclosing_package(parent_directory(path)), parts)

    def crate_directory(self, path: str) -> str:
        """Return the directory of the crate to which a file belongs."""
        return self._crate_of_file(path, self._packages.enclosing_package(parent_directory(path)))[0]

    def _resolve_from_module(
        self, path: str, directory: str, roots: Sequence[str], parts: Sequence[str]
    ) -> ResolvedImport:
        module = self._modules.module_of_file(path)
        file = ResolvedImport("exact", (path,))
        remaining = list(parts)
        while remaining and remaining[0] in ("self", "super"):
            if remaining.pop(0) == "super":
                if module == directory and len(roots) != 1:
                    return EXTERNAL_IMPORT
                module = parent_directory(module)
                enclosing_file_module = module
                while self._modules.is_inline(enclosing_file_module):
                    enclosing_file_module = parent_directory(enclosing_file_module)
                file = (
                    self._resolve_in_crate(directory, roots, [])
                    if enclosing_file_module == directory
                    else exact_import(self._first_module_file(enclosing_file_module))
                )
        file_of_module = self._deepest_module_file(module, remaining)
        return exact_import(file_of_module) if file_of_module is not None else file

    def _declared_module_file(
        self, path: str, directory: str, package: CargoPackage | None, parts: Sequence[str]
    ) -> str | None:
        """Return the file to which a path leads that begins with a module declared in the file `path`, or None.

        In the edition of 2015, the path begins at the crate root instead.
        """
        is_2015 = package is not None and package.is_2015
        return self._deepest_module_file(directory if is_2015 else self._modules.module_of_file(path), parts)

    def _resolve_in_other_crate(self, package: CargoPackage | None, parts: Sequence[str]) -> ResolvedImport:
        name = parts[0]
        if package is not None:
            # A dependency can have the same name as the package's own library. Within the library, this name means the
            # dependency, so dependencies are searched first.
            place = package.dependencies.get(name)
            other = self._packages.package_in(place) if place is not None else None
            if other is not None and other.library is not None:
                return self._resolve_in_library(other, parts[1:])
            if name not in package.dependencies:
                return self._resolve_in_library(package, parts[1:]) if name == package.name else EXTERNAL_IMPORT
        packages = self._packages.by_name.get(name, ())
        candidates = [
            path
            for package_or_crate in packages
            for path in self._resolve_in_library(package_or_crate, parts[1:]).paths
        ]
        if not candidates and package is None:
            directories = {
                package_or_crate
                for spelling in {name, name.replace("_", "-")}
                for package_or_crate in self._conventional_crates(spelling)
            }
            candidates = [
                path
                for package_or_crate in directories
                for path in self._resolve_in_crate(*package_or_crate, parts[1:]).paths
            ]
        return fitting_import(candidates)

    def _conventional_crates(self, name: str) -> list[tuple[str, tuple[str]]]:
        """Return the crates without a manifest whose directory has this name: their `src` directory and root file."""
        libraries = self._tree.files_ending_with(f"{name}/src/lib.rs")
        return [(parent_directory(path), (path,)) for path in libraries]

    def _resolve_in_library(self, package: CargoPackage, parts: Sequence[str]) -> ResolvedImport:
        if package.library is None:
            return EXTERNAL_IMPORT
        return self._resolve_in_crate(parent_directory(package.library), [package.library], parts)

    # -- Modules -------------------------------------------------------------------------------------------------------

    def _resolve_in_crate(self, directory: str, roots: Sequence[str], parts: Sequence[str]) -> ResolvedImport:
        file = self._deepest_module_file(directory, parts)
        if file is not None:
            return exact_import(file)
        return exact_import(roots[0]) if len(roots) == 1 else fitting_import(roots)

    def _deepest_module_file(self, directory: str, parts: Sequence[str]) -> str | None:
        """Return the file of the deepest module to which `parts` lead, starting from the module `directory`.

        Return None if the first part is not a module.
        """
        last_module = None
        for part in parts:
            directory = join_path(directory, part)
            deeper = self._first_module_file(directory)
            if deeper is not None:
                last_module = deeper
            elif not self._modules.is_inline(directory):
                break
        return last_module

    def _first_module_file(self, directory: str) -> str | None:
        """Return the first file of the module with this name, or None."""
        return next(iter(self._modules.files_of_module(directory)), None)

    def _module_directory(self, path: str) -> str:
        """Return the name of the module in a file by the file's path: `src/a` for `src/a.rs` and for `src/a/mod.rs`.

        A module's name is a path: the directory in which its submodules are searched. The result applies only to a file
        that no `#[path]` moves.
        """
        directory, name = posixpath.split(path)
        _, roots = self._crate_of_file(path, self._packages.enclosing_package(directory))
        if path in roots or name == "mod.rs":
            return directory
        return join_path(directory, name.removesuffix(".rs"))

    # -- Crates --------------------------------------------------------------------------------------------------------

    def _crate_of_file(self, path: str, package: CargoPackage | None) -> tuple[str, list[str]]:
        """Return the directory of the crate to which a file belongs, and the crate's possible root files."""
        if package is None:
            return self._conventional_crate(path)
        if path in package.roots:
            return parent_directory(path), [path]
        module = path.removesuffix("/mod.rs").removesuffix(".rs")
        if module not in self._roots_of:
            self._roots_of[module] = self._find_roots(module, package)
        return self._roots_of[module]

    def _find_roots(self, module: str, package: CargoPackage) -> tuple[str, list[str]]:
        for above in iter_ancestors(parent_directory(module)):
            roots = package.roots_in.get(above)
            if roots is not None:
                first = module[len(above) :].lstrip("/").partition("/")[0]
                declaring = [root for root in roots if len(roots) > 1 and self._packages.declares_module(root, first)]
                return above, declaring or list(roots)
            if above == package.directory:
                break
        return parent_directory(module), []

    def _conventional_crate(self, path: str) -> tuple[str, list[str]]:
        for above in iter_ancestors(parent_directory(path)):
            roots = [root for name in _CRATE_ROOT_NAMES if (root := join_path(above, name)) in self._tree.paths]
            if roots:
                return above, [path] if path in roots else roots
        return parent_directory(path), []


IMPORTS = {"rust": RustImports}
