"""JavaScript and TypeScript: relative paths, `paths` in tsconfig.json, and the packages of the tree.

A result is `exact` if Node.js or the TypeScript compiler would find the file, given only the files of the tree. A
result is `file` for a package that no workspace declares, and for the guessed source of a built file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial

from codebatch_workers.languages.javascript.packages import NpmPackage, NpmPackages
from codebatch_workers.languages.javascript.tsconfig import CompilerConfigurations, CompilerOptions, best_match
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

_TYPESCRIPT_ENDINGS = (".ts", ".tsx", ".d.ts", ".mts", ".cts", ".d.mts", ".d.cts")
_JAVASCRIPT_ENDINGS = (".js", ".jsx", ".mjs", ".cjs", ".json")
# Extensions of source files, by the extension of the file that a build makes of them: `./a.js` can mean `a.ts`.
_SOURCE_ENDINGS = {
    ".js": (".ts", ".tsx", ".d.ts"),
    ".jsx": (".tsx", ".ts", ".d.ts"),
    ".mjs": (".mts", ".d.mts"),
    ".cjs": (".cts", ".d.cts"),
}
_ALL_ENDINGS = (".d.ts", ".d.mts", ".d.cts", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".mts", ".cts")
_CACHED_RESULTS_MAX = 65_536
_BUILD_DIRECTORY_NAMES = "dist build lib out output es esm cjs umd types typings module commonjs dist-types legacy"
_BUILD_DIRECTORIES = frozenset(_BUILD_DIRECTORY_NAMES.split())

# Built-in modules of Node.js. They take precedence over packages of the same name.
_BUILT_IN_MODULE_NAMES = """
assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns domain events
fs http http2 https inspector module net os path perf_hooks process punycode querystring readline repl stream
string_decoder sys timers tls trace_events tty url util v8 vm wasi worker_threads zlib
"""
BUILT_IN_MODULES = frozenset(_BUILT_IN_MODULE_NAMES.split())


class JavaScriptFiles:
    """Packages and compiler configurations of a tree, shared by the rules for JavaScript and TypeScript."""

    def __init__(self, context: ImportContext) -> None:
        tree = self.tree = context.tree
        self.packages = NpmPackages(tree)
        self.configurations = CompilerConfigurations(tree, self._package_directory)

    def _package_directory(self, name: str) -> str | None:
        named = self.packages.packages_named(name)
        if named:
            return named[0].directory
        place = f"node_modules/{name}"
        return place if place in self.tree.directories else None


class JavaScriptImports(ImportRule):
    """The resolution of import specifiers such as `./a` and `@a/b`.

    If `is_typed` is true, TypeScript files are preferred.
    """

    def __init__(self, context: ImportContext, *, is_typed: bool = False) -> None:
        super().__init__(context)
        files = context.shared(JavaScriptFiles)
        self._packages = files.packages
        self._configurations = files.configurations
        self._is_typed = is_typed
        self._endings = (
            (*_TYPESCRIPT_ENDINGS, *_JAVASCRIPT_ENDINGS) if is_typed else (*_JAVASCRIPT_ENDINGS, *_TYPESCRIPT_ENDINGS)
        )
        self._cached_file = lru_cache(_CACHED_RESULTS_MAX)(self._find_file)

    def resolve(self, path: str, target: str) -> ResolvedImport:
        """Resolve `target`, an import in the file `path`."""
        directory = parent_directory(path)
        # Text after `?` is an instruction to the bundler: `./a.svg?raw`.
        resolved = self._resolve_target(directory, target)
        return (
            resolved
            if resolved.paths or "?" not in target
            else self._resolve_target(directory, target.partition("?")[0])
        )

    def erases_imports(self, path: str) -> bool:
        return self._configurations.nearest_options(parent_directory(path)).erases_imports

    def _resolve_target(self, directory: str, target: str) -> ResolvedImport:
        if target in (".", "..") or target.startswith(("./", "../")):
            place = relative_to(directory, target)
            return (
                EXTERNAL_IMPORT
                if place is None
                else exact_import(self._resolve_relative(directory, place, target.endswith(("/", "."))))
            )
        if not target or target.startswith(("/", "node:")) or "://" in target:
            return EXTERNAL_IMPORT
        configuration = self._configurations.nearest_options(directory)
        by_path = self._find_by_paths(configuration, target)
        if by_path is not None:
            return exact_import(by_path)
        if target.startswith("#"):
            return self._resolve_imported(directory, target)
        if target.partition("/")[0] in BUILT_IN_MODULES:
            return EXTERNAL_IMPORT
        for above in iter_ancestors(directory):
            file = self._resolve_below(join_path(above, "node_modules"), target)
            if file is not None:
                return exact_import(file)
        return self._resolve_package(directory, target)

    # -- Files ---------------------------------------------------------------------------------------------------------

    def _resolve_relative(self, directory: str, place: str, is_directory: bool) -> str | None:
        file = (None if is_directory else self._cached_file(place)) or self._resolve_directory(place)
        if file is not None:
            return file
        root_dirs = self._configurations.nearest_options(directory).root_dirs
        matching_roots = [root for root in root_dirs if place == root or place.startswith(f"{root}/" if root else "")]
        if matching_roots:
            relative_path = place[len(max(matching_roots, key=len)) :].lstrip("/")
            for root in root_dirs:
                file = self._cached_file(join_path(root, relative_path)) or self._resolve_directory(
                    join_path(root, relative_path)
                )
                if file is not None:
                    return file
        return None

    def _find_file(self, path: str) -> str | None:
        """Return the file that `path` means, or None. `path` may lack an extension."""
        return self._tree.first_existing(self._candidate_paths(path)) if path else None

    def _candidate_paths(self, path: str) -> Iterator[str]:
        dot = path.rfind(".")
        sources = _SOURCE_ENDINGS.get(path[dot:], ()) if dot > path.rfind("/") else ()
        if self._is_typed:
            yield from (path[:dot] + ending for ending in sources)
        yield path
        yield from (path + ending for ending in self._endings)
        if not self._is_typed:
            yield from (path[:dot] + ending for ending in sources)

    def _resolve_directory(self, place: str) -> str | None:
        if place not in self._tree.directories:
            return None
        package = self._packages.package_in(place)
        if package is not None:
            for target in package.export_targets("", is_typed=self._is_typed) if not package.has_exports else ():
                file = self._cached_file(target) or self._cached_file(join_path(target, "index"))
                if file is not None:
                    return file
        return self._cached_file(join_path(place, "index"))

    def _find_by_paths(self, configuration: CompilerOptions, target: str) -> str | None:
        match = best_match(configuration.paths, target)
        if match is not None:
            pattern, star = match
            for place in configuration.paths[pattern]:
                path = place.replace("*", star, 1)
                file = self._cached_file(path) or self._resolve_directory(path)
                if file is not None:
                    return file
        if configuration.base_url is None:
            return None
        path = join_path(configuration.base_url, target)
        return self._cached_file(path) or self._resolve_directory(path)

    # -- Packages ------------------------------------------------------------------------------------------------------

    def _resolve_imported(self, directory: str, target: str) -> ResolvedImport:
        package = self._packages.enclosing_package(directory)
        for place in package.import_targets(target) if package is not None else ():
            file = self._cached_file(place)
            if file is not None:
                return exact_import(file)
            source = self._source_of_built(package, place) if package is not None else None
            if source is not None:
                return fitting_import([source])
        return EXTERNAL_IMPORT

    def _resolve_below(self, modules: str, target: str) -> str | None:
        """Return the file to which `target` leads in the `node_modules` directory `modules`, or None."""
        if modules not in self._tree.directories:
            return None
        name, subpath = _split_package_name(target)
        package = self._packages.package_in(join_path(modules, name))
        for place in package.export_targets(subpath, is_typed=self._is_typed) if package is not None else ():
            file = self._cached_file(place) or self._resolve_directory(place)
            if file is not None:
                return file
        if package is not None and package.has_exports:
            return None
        path = join_path(modules, target)
        return (self._cached_file(path) if subpath else None) or self._resolve_directory(path)

    def _resolve_package(self, directory: str, target: str) -> ResolvedImport:
        """Resolve the name of a package to a file of a package in the tree, for an importing file in `directory`."""
        name, subpath = _split_package_name(target)
        candidates = self._packages.packages_named(name)
        user = self._packages.enclosing_package(directory)
        if len(candidates) > 1 and user is not None:
            own_packages = [package for package in candidates if package.directory == user.directory]
            linked = [package for package in candidates if self._packages.is_linked(user, package)]
            candidates = own_packages or linked or candidates
        entries = [place for package in candidates if (place := self._package_entry(package, subpath)) is not None]
        if len(entries) != 1:
            return fitting_import(path for path, _ in entries)
        path, is_plain = entries[0]
        (package,) = [package for package in candidates if self._package_entry(package, subpath) is not None]
        is_declared = user is not None and (user.directory == package.directory or user.depends_on(name))
        if is_plain and is_declared and self._packages.is_linked(user, package):
            return exact_import(path)
        return fitting_import([path])

    def _package_entry(self, package: NpmPackage, subpath: str) -> tuple[str, bool] | None:
        """Return the file for a subpath of a package, and whether package.json leads to exactly this file.

        If package.json leads to a built file that is not in the tree, the returned file is a guess of its source.
        Return None if no file fits.
        """
        targets = package.export_targets(subpath, is_typed=self._is_typed)
        for place in targets:
            file = self._cached_file(place) or (None if package.has_exports else self._resolve_directory(place))
            if file is not None:
                return file, True
        if not subpath and not package.has_exports and not targets:
            file = self._cached_file(join_path(package.directory, "index"))
            if file is not None:
                return file, True
        for place in targets or [join_path(package.directory, subpath or "index")]:
            file = self._source_of_built(package, place)
            if file is not None:
                return file, False
        return None

    def _source_of_built(self, package: NpmPackage, built: str) -> str | None:
        """Return the source from which a file is built, or None.

        For example, `src/a.ts` can be the source of `dist/esm/a.d.ts`.
        """
        ending = next((known_ending for known_ending in _ALL_ENDINGS if built.endswith(known_ending)), "")
        stem = built[: len(built) - len(ending)]
        configuration = self._configurations.nearest_options(package.directory)
        out, root = configuration.out_dir, configuration.root_dir
        if out and root is not None and stem.startswith(f"{out}/"):
            file = self._cached_file(join_path(root, stem[len(out) + 1 :]))
            if file is not None:
                return file
        below = stem[len(package.directory) :].lstrip("/").split("/")
        while below and below[0] in _BUILD_DIRECTORIES:
            below.pop(0)
        subpath = "/".join(below) or "index"
        places: Sequence[str] = (
            join_path("src", subpath),
            subpath,
            join_path("source", subpath),
            join_path("lib", subpath),
        )
        return next(
            (file for place in places if (file := self._cached_file(join_path(package.directory, place))) is not None),
            None,
        )


def _split_package_name(target: str) -> tuple[str, str]:
    """Split an import into the name of a package and the path within it: `@a/b/c` → `@a/b` and `c`."""
    parts = target.split("/")
    count = 2 if target.startswith("@") else 1
    return "/".join(parts[:count]), "/".join(parts[count:])


_TYPESCRIPT = partial(JavaScriptImports, is_typed=True)
IMPORTS = {"javascript": JavaScriptImports, "tsx": _TYPESCRIPT, "typescript": _TYPESCRIPT}
