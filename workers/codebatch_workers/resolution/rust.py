"""Rust: paths of modules from the root of their crate, and crates by Cargo.toml.

A path leads to the file of its deepest module; what follows are names in it. `exact` is what the rules of modules and
the manifests say; a crate that no manifest names is found by its name alone.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from codebatch_workers.resolution.cargo import CargoPackage, CargoPackages
from codebatch_workers.resolution.modules import Declared, Modules
from codebatch_workers.resolution.tree import (
    EXTERNAL,
    PathTree,
    Resolved,
    ancestors,
    exact,
    fitting,
    join,
    parent,
    relative_to,
)

_ROOT_NAMES = ("lib.rs", "main.rs")
_STANDARD = frozenset({"alloc", "core", "proc_macro", "std", "test"})


class RustImports:
    """Resolves `crate::a::B`, `self::…`, `super::…`, `a::b`, and the file that a `#[path]` names."""

    def __init__(self, tree: PathTree, declared: Mapping[str, Sequence[Declared]]) -> None:
        """`declared` has the modules that files declare, by path."""
        self._tree = tree
        self._packages = CargoPackages(tree)
        self._roots_of: dict[str, tuple[str, list[str]]] = {}
        self._modules = Modules(tree, declared, self._module_directory)

    def resolve(self, path: str, target: str) -> Resolved:
        """Where the target leads from a file."""
        if target.endswith(".rs"):
            place = relative_to(parent(path), target)
            return exact(place if place in self._tree.paths else None)
        is_absolute = target.startswith("::")
        parts = [part.removeprefix("r#") for part in target.split("::") if part not in ("", "*")]
        if not parts or parts[0] in _STANDARD:
            return EXTERNAL
        package = self._packages.around(parent(path))
        directory, roots = self._crate(path, package)
        if parts[0] == "crate":
            return self._in_crate(directory, roots, parts[1:])
        if parts[0] in ("self", "super"):
            return self._from_module(path, directory, roots, parts)
        if not is_absolute or (package is not None and package.is_2015):
            found = self._child(path, directory, package, parts)
            if found is not None:
                return exact(found)
        return self._of_other_crate(package, parts)

    def resolve_module(self, path: str, target: str) -> Resolved:
        """Return the file of a module that another file declares: several if conditions choose among them."""
        parts = [part.removeprefix("r#") for part in target.split("::")[1:]]
        files = self._modules.files(join(self._modules.name(path), "/".join(parts)))
        return Resolved("exact", tuple(sorted(files))) if files and files != (path,) else EXTERNAL

    def _from_module(self, path: str, directory: str, roots: Sequence[str], parts: Sequence[str]) -> Resolved:
        here = self._modules.name(path)
        file = Resolved("exact", (path,))
        rest = list(parts)
        while rest and rest[0] in ("self", "super"):
            if rest.pop(0) == "super":
                if here == directory and len(roots) != 1:
                    return EXTERNAL
                here = parent(here)
                holder = here
                while self._modules.is_inline(holder):
                    holder = parent(holder)
                file = self._in_crate(directory, roots, []) if holder == directory else exact(self._module(holder))
        found = self._descend(here, rest)
        return exact(found) if found is not None else file

    def _child(self, path: str, directory: str, package: CargoPackage | None, parts: Sequence[str]) -> str | None:
        """A module that is declared in this file; before the edition of 2018, in the crate's root."""
        is_2015 = package is not None and package.is_2015
        return self._descend(directory if is_2015 else self._modules.name(path), parts)

    def _of_other_crate(self, package: CargoPackage | None, parts: Sequence[str]) -> Resolved:
        name = parts[0]
        if package is not None:
            # A dependency may have the name of the library itself, which is no name inside of it.
            place = package.dependencies.get(name)
            other = self._packages.at(place) if place is not None else None
            if other is not None and other.library is not None:
                return self._in_library(other, parts[1:])
            if name not in package.dependencies:
                return self._in_library(package, parts[1:]) if name == package.name else EXTERNAL
        named = self._packages.by_name.get(name, ())
        found = [path for each in named for path in self._in_library(each, parts[1:]).paths]
        if not found and package is None:
            directories = {each for one in {name, name.replace("_", "-")} for each in self._conventional(one)}
            found = [path for each in directories for path in self._in_crate(*each, parts[1:]).paths]
        return fitting(found)

    def _conventional(self, name: str) -> list[tuple[str, tuple[str]]]:
        """The crates that stand in directories of a name, where no manifest says it."""
        libraries = self._tree.ending_with(f"{name}/src/lib.rs")
        return [(parent(path), (path,)) for path in libraries]

    def _in_library(self, package: CargoPackage, parts: Sequence[str]) -> Resolved:
        if package.library is None:
            return EXTERNAL
        return self._in_crate(parent(package.library), [package.library], parts)

    # -- Modules ------------------------------------------------------------------------------------------------------

    def _in_crate(self, directory: str, roots: Sequence[str], parts: Sequence[str]) -> Resolved:
        found = self._descend(directory, parts)
        if found is not None:
            return exact(found)
        return exact(roots[0]) if len(roots) == 1 else fitting(roots)

    def _descend(self, directory: str, parts: Sequence[str]) -> str | None:
        """The file of the deepest module that a path names below a module's directory."""
        found = None
        for part in parts:
            directory = join(directory, part)
            deeper = self._module(directory)
            if deeper is not None:
                found = deeper
            elif not self._modules.is_inline(directory):
                break
        return found

    def _module(self, directory: str) -> str | None:
        """The file of the module that a directory names."""
        return next(iter(self._modules.files(directory)), None)

    def _module_directory(self, path: str) -> str:
        """Where the modules stand that a file declares which no `#[path]` moves."""
        directory, name = posixpath.split(path)
        _, roots = self._crate(path, self._packages.around(directory))
        if path in roots or name == "mod.rs":
            return directory
        return join(directory, name.removesuffix(".rs"))

    # -- Crates -------------------------------------------------------------------------------------------------------

    def _crate(self, path: str, package: CargoPackage | None) -> tuple[str, list[str]]:
        """The directory of the root of a file's crate, and the root; several where no rule tells."""
        if package is None:
            return self._conventional_crate(path)
        if path in package.roots:
            return parent(path), [path]
        module = path.removesuffix("/mod.rs").removesuffix(".rs")
        if module not in self._roots_of:
            self._roots_of[module] = self._find_roots(module, package)
        return self._roots_of[module]

    def _find_roots(self, module: str, package: CargoPackage) -> tuple[str, list[str]]:
        for above in ancestors(parent(module)):
            roots = package.roots_in.get(above)
            if roots is not None:
                first = module[len(above) :].lstrip("/").partition("/")[0]
                declaring = [root for root in roots if len(roots) > 1 and self._packages.declares(root, first)]
                return above, declaring or list(roots)
            if above == package.directory:
                break
        return parent(module), []

    def _conventional_crate(self, path: str) -> tuple[str, list[str]]:
        for above in ancestors(parent(path)):
            roots = [root for name in _ROOT_NAMES if (root := join(above, name)) in self._tree.paths]
            if roots:
                return above, [path] if path in roots else roots
        return parent(path), []
