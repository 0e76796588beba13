"""Cargo.toml: the packages of a tree, the root files of their crates, and their dependencies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from codebatch_workers.resolution.configuration_files import declared_modules
from codebatch_workers.resolution.documents import (
    JsonObject,
    as_mapping,
    as_nonempty_string,
    read_text,
    read_toml,
    table_at,
)
from codebatch_workers.resolution.tree import PathTree, iter_ancestors, join_path, parent_directory, relative_to

CARGO_MANIFEST = "Cargo.toml"
# In these directories, Cargo finds crates that the manifest does not list. Each file is the root of a crate, and so is
# the main.rs of each subdirectory.
_TARGET_DIRECTORIES = ("src/bin", "examples", "tests", "benches")
_TARGET_SECTIONS = ("bin", "example", "test", "bench")
_DEPENDENCY_SECTIONS = ("dependencies", "dev-dependencies", "build-dependencies")


class CargoPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A package of Cargo. `library` is the root file of its library. `roots` are the root files of all its crates.

    `roots_in` maps each directory that contains root files to these files, sorted. `dependencies` maps the name of each
    dependency in source code to the directory of its package. The directory is None if the package is not in the source
    tree.
    """

    directory: str
    name: str
    library: str | None
    roots: frozenset[str]
    roots_in: Mapping[str, Sequence[str]]
    dependencies: Mapping[str, str | None]
    is_2015: bool


class CargoPackages:
    """The packages of a tree. Each manifest is read on first use, and cached."""

    def __init__(self, tree: PathTree) -> None:
        self._tree = tree
        self._documents: dict[str, JsonObject] = {}
        self._cached_packages: dict[str, CargoPackage] = {}
        self._declared_modules: dict[str, frozenset[str]] = {}

    def enclosing_package(self, directory: str) -> CargoPackage | None:
        """Return the package in `directory`, or else in the nearest directory above it that has a package, or None."""
        return next(
            (package for above in iter_ancestors(directory) if (package := self.package_in(above)) is not None), None
        )

    def package_in(self, directory: str) -> CargoPackage | None:
        """Return the package whose manifest is in `directory`, or None.

        A manifest that only defines a workspace has no package.
        """
        if "package" not in self._manifest(directory):
            return None
        if directory not in self._cached_packages:
            self._cached_packages[directory] = self._read_package(directory)
        return self._cached_packages[directory]

    @cached_property
    def by_name(self) -> Mapping[str, list[CargoPackage]]:
        """The packages that have a library, by the name that source code uses for this library."""
        packages: dict[str, list[CargoPackage]] = {}
        for file in self._tree.files_named(CARGO_MANIFEST):
            package = self.package_in(parent_directory(file))
            if package is not None and package.library is not None:
                packages.setdefault(package.name, []).append(package)
        return packages

    def _manifest(self, directory: str) -> JsonObject:
        file = join_path(directory, CARGO_MANIFEST)
        if file not in self._tree.paths:
            return {}
        if directory not in self._documents:
            self._documents[directory] = read_toml(self._tree, file)
        return self._documents[directory]

    def _read_package(self, directory: str) -> CargoPackage:
        document = self._manifest(directory)
        about = table_at(document, "package")
        library = table_at(document, "lib")
        name = as_nonempty_string(library.get("name")) or as_nonempty_string(about.get("name")) or ""
        file = relative_to(directory, as_nonempty_string(library.get("path")) or "src/lib.rs")
        edition = about.get("edition", "2015")
        if isinstance(edition, dict):
            edition = table_at(self._nearest_workspace(directory)[1], "package").get("edition", "2015")
        roots = frozenset(self._crate_roots(directory, document, file))
        roots_in: dict[str, list[str]] = {}
        for root in sorted(roots):
            roots_in.setdefault(parent_directory(root), []).append(root)
        return CargoPackage(
            directory=directory,
            name=_as_identifier(name),
            library=file if file in self._tree.paths else None,
            roots=roots,
            roots_in=roots_in,
            dependencies=dict(self._package_dependencies(directory, document)),
            is_2015=edition == "2015",
        )

    def _crate_roots(self, directory: str, document: JsonObject, library: str | None) -> Iterator[str]:
        tree = self._tree
        build = as_nonempty_string(table_at(document, "package").get("build")) or "build.rs"
        candidates = [library, join_path(directory, "src/main.rs"), relative_to(directory, build)]
        for kind in _TARGET_SECTIONS:
            tables = document.get(kind)
            for table in tables if isinstance(tables, list) else ():
                path = as_nonempty_string(as_mapping(table).get("path"))
                candidates.append(None if path is None else relative_to(directory, path))
        yield from (path for path in candidates if path is not None and path in tree.paths)
        for place in _TARGET_DIRECTORIES:
            below = join_path(directory, place)
            yield from (path for path in tree.files_in(below) if path.endswith(".rs"))
        mains = {f"{place}/" for place in _TARGET_DIRECTORIES}
        prefix = f"{directory}/" if directory else ""
        for path in self._main_files:
            if path.startswith(prefix):
                above = parent_directory(parent_directory(path))[len(prefix) :]
                if f"{above}/" in mains:
                    yield path

    @cached_property
    def _main_files(self) -> tuple[str, ...]:
        return tuple(
            path
            for path in self._tree.files_named("main.rs")
            if parent_directory(parent_directory(path)).endswith(("bin", *_TARGET_DIRECTORIES[1:]))
        )

    # -- Dependencies --------------------------------------------------------------------------------------------------

    def _package_dependencies(self, directory: str, document: JsonObject) -> Iterator[tuple[str, str | None]]:
        tables = [document, *(as_mapping(platform) for platform in table_at(document, "target").values())]
        root, workspace = self._nearest_workspace(directory)
        patches = self._patched_paths(root)
        for table in tables:
            for section in _DEPENDENCY_SECTIONS:
                for name, written in as_mapping(table.get(section)).items():
                    about, base = as_mapping(written), directory
                    if about.get("workspace") is True:
                        about, base = as_mapping(table_at(workspace, "dependencies").get(name)), root
                    package = as_nonempty_string(about.get("package")) or name
                    path = as_nonempty_string(about.get("path"))
                    place = patches.get(package) if path is None else relative_to(base, path)
                    yield self._dependency_name(name, package, place), place

    def _dependency_name(self, name: str, package: str, place: str | None) -> str:
        """Return the name that source code uses for a dependency.

        It is the name of the dependency's library. If the manifest renames the dependency, it is the new name.
        """
        if place is None or name != package:
            return _as_identifier(name)
        return _as_identifier(as_nonempty_string(table_at(self._manifest(place), "lib").get("name")) or name)

    def _patched_paths(self, root: str) -> Mapping[str, str | None]:
        patched = table_at(self._manifest(root), "patch", "crates-io")
        return {
            name: relative_to(root, path)
            for name, about in patched.items()
            if (path := as_nonempty_string(as_mapping(about).get("path"))) is not None
        }

    def _nearest_workspace(self, directory: str) -> tuple[str, JsonObject]:
        """Return the directory and the `workspace` table of the nearest workspace, in `directory` or above it.

        Without a workspace, return `directory` and an empty table.
        """
        for above in iter_ancestors(directory):
            document = self._manifest(above)
            if "workspace" in document:
                return above, table_at(document, "workspace")
        return directory, {}

    def declares_module(self, file: str, module: str) -> bool:
        """Return whether a Rust file contains the declaration `mod name;`, with `module` as the name."""
        if file not in self._declared_modules:
            self._declared_modules[file] = declared_modules(read_text(self._tree, file))
        return module in self._declared_modules[file]


def _as_identifier(name: str) -> str:
    return name.replace("-", "_")
