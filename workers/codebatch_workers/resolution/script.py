"""JavaScript and TypeScript: relative names, tsconfig's paths, the tree's packages.

`exact` is what node or the TypeScript compiler would find by the files of the tree alone. A package of the tree that no
workspace declares, and a source from which a built file is guessed, are `file`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from codebatch_workers.resolution.packages import NpmPackage, NpmPackages
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
from codebatch_workers.resolution.tsconfig import CompilerConfigurations, CompilerOptions, best_match

_TYPED = (".ts", ".tsx", ".d.ts", ".mts", ".cts", ".d.mts", ".d.cts")
_PLAIN = (".js", ".jsx", ".mjs", ".cjs", ".json")
# What the compiler makes of what: `./a.js` may be `a.ts`.
_SOURCES = {
    ".js": (".ts", ".tsx", ".d.ts"),
    ".jsx": (".tsx", ".ts", ".d.ts"),
    ".mjs": (".mts", ".d.mts"),
    ".cjs": (".cts", ".d.cts"),
}
_ENDINGS = (".d.ts", ".d.mts", ".d.cts", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".mts", ".cts")
_ANSWERS_KEPT = 65_536
_BUILT_NAMES = "dist build lib out output es esm cjs umd types typings module commonjs dist-types legacy"
_BUILT = frozenset(_BUILT_NAMES.split())

# Modules that node brings along; they come before any package.
_BUILTIN_NAMES = """
assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns domain events
fs http http2 https inspector module net os path perf_hooks process punycode querystring readline repl stream
string_decoder sys timers tls trace_events tty url util v8 vm wasi worker_threads zlib
"""
BUILTIN = frozenset(_BUILTIN_NAMES.split())


class ScriptFiles:
    """What both languages ask of a tree."""

    def __init__(self, tree: PathTree) -> None:
        self.tree = tree
        self.packages = NpmPackages(tree)
        self.configurations = CompilerConfigurations(tree, self._directory_of_package)

    def _directory_of_package(self, name: str) -> str | None:
        named = self.packages.named(name)
        if named:
            return named[0].directory
        place = f"node_modules/{name}"
        return place if place in self.tree.directories else None


class ScriptImports:
    """Resolves the specifier of an import. `is_typed`: for a file in TypeScript, which has its own files first."""

    def __init__(self, files: ScriptFiles, *, is_typed: bool) -> None:
        self._tree = files.tree
        self._packages = files.packages
        self._configurations = files.configurations
        self._is_typed = is_typed
        self._endings = (*_TYPED, *_PLAIN) if is_typed else (*_PLAIN, *_TYPED)
        self._file = lru_cache(_ANSWERS_KEPT)(self._find_file)

    def resolve(self, path: str, target: str) -> Resolved:
        """Where the target leads from a file."""
        directory = parent(path)
        # What a bundler is told about a file stands behind a `?`.
        found = self._resolve(directory, target)
        return found if found.paths or "?" not in target else self._resolve(directory, target.partition("?")[0])

    def _resolve(self, directory: str, target: str) -> Resolved:
        if target in (".", "..") or target.startswith(("./", "../")):
            place = relative_to(directory, target)
            return EXTERNAL if place is None else exact(self._relative(directory, place, target.endswith(("/", "."))))
        if not target or target.startswith(("/", "node:")) or "://" in target:
            return EXTERNAL
        configuration = self._configurations.of(directory)
        by_path = self._by_paths(configuration, target)
        if by_path is not None:
            return exact(by_path)
        if target.startswith("#"):
            return self._imported(directory, target)
        if target.partition("/")[0] in BUILTIN:
            return EXTERNAL
        for above in ancestors(directory):
            found = self._below(join(above, "node_modules"), target)
            if found is not None:
                return exact(found)
        return self._of_package(directory, target)

    # -- Files --------------------------------------------------------------------------------------------------------

    def _relative(self, directory: str, place: str, is_directory: bool) -> str | None:
        found = (None if is_directory else self._file(place)) or self._directory(place)
        if found is not None:
            return found
        root_dirs = self._configurations.of(directory).root_dirs
        own = [root for root in root_dirs if place == root or place.startswith(f"{root}/" if root else "")]
        if own:
            rest = place[len(max(own, key=len)) :].lstrip("/")
            for root in root_dirs:
                found = self._file(join(root, rest)) or self._directory(join(root, rest))
                if found is not None:
                    return found
        return None

    def _find_file(self, named: str) -> str | None:
        """The file that a name without or with an ending stands for."""
        return self._tree.first(self._candidates(named)) if named else None

    def _candidates(self, named: str) -> Iterator[str]:
        dot = named.rfind(".")
        sources = _SOURCES.get(named[dot:], ()) if dot > named.rfind("/") else ()
        if self._is_typed:
            yield from (named[:dot] + each for each in sources)
        yield named
        yield from (named + each for each in self._endings)
        if not self._is_typed:
            yield from (named[:dot] + each for each in sources)

    def _directory(self, place: str) -> str | None:
        if place not in self._tree.directories:
            return None
        package = self._packages.at(place)
        if package is not None:
            for target in package.targets("", is_typed=self._is_typed) if not package.has_exports else ():
                found = self._file(target) or self._file(join(target, "index"))
                if found is not None:
                    return found
        return self._file(join(place, "index"))

    def _by_paths(self, configuration: CompilerOptions, target: str) -> str | None:
        match = best_match(configuration.paths, target)
        if match is not None:
            pattern, star = match
            for place in configuration.paths[pattern]:
                named = place.replace("*", star, 1)
                found = self._file(named) or self._directory(named)
                if found is not None:
                    return found
        if configuration.base_url is None:
            return None
        named = join(configuration.base_url, target)
        return self._file(named) or self._directory(named)

    # -- Packages -----------------------------------------------------------------------------------------------------

    def _imported(self, directory: str, target: str) -> Resolved:
        package = self._packages.around(directory)
        for place in package.imported(target) if package is not None else ():
            found = self._file(place)
            if found is not None:
                return exact(found)
            source = self._source(package, place) if package is not None else None
            if source is not None:
                return fitting([source])
        return EXTERNAL

    def _below(self, modules: str, target: str) -> str | None:
        """A package that stands in a `node_modules` of the tree."""
        if modules not in self._tree.directories:
            return None
        name, subpath = _split(target)
        package = self._packages.at(join(modules, name))
        for place in package.targets(subpath, is_typed=self._is_typed) if package is not None else ():
            found = self._file(place) or self._directory(place)
            if found is not None:
                return found
        if package is not None and package.has_exports:
            return None
        named = join(modules, target)
        return (self._file(named) if subpath else None) or self._directory(named)

    def _of_package(self, directory: str, target: str) -> Resolved:
        """A package of the tree by its name."""
        name, subpath = _split(target)
        named = self._packages.named(name)
        user = self._packages.around(directory)
        if len(named) > 1 and user is not None:
            own = [package for package in named if package.directory == user.directory]
            linked = [package for package in named if self._packages.is_linked(user, package)]
            named = own or linked or named
        found = [place for package in named if (place := self._entry(package, subpath)) is not None]
        if len(found) != 1:
            return fitting(path for path, _ in found)
        path, is_plain = found[0]
        (package,) = [package for package in named if self._entry(package, subpath) is not None]
        is_declared = user is not None and (user.directory == package.directory or user.depends_on(name))
        if is_plain and is_declared and self._packages.is_linked(user, package):
            return exact(path)
        return fitting([path])

    def _entry(self, package: NpmPackage, subpath: str) -> tuple[str, bool] | None:
        """The file that a name in a package means, and whether the package says so itself."""
        targets = package.targets(subpath, is_typed=self._is_typed)
        for place in targets:
            found = self._file(place) or (None if package.has_exports else self._directory(place))
            if found is not None:
                return found, True
        if not subpath and not package.has_exports and not targets:
            found = self._file(join(package.directory, "index"))
            if found is not None:
                return found, True
        for place in targets or [join(package.directory, subpath or "index")]:
            found = self._source(package, place)
            if found is not None:
                return found, False
        return None

    def _source(self, package: NpmPackage, built: str) -> str | None:
        """The source of a file that a build would make: `dist/esm/a.d.ts` is `src/a.ts`."""
        ending = next((each for each in _ENDINGS if built.endswith(each)), "")
        stem = built[: len(built) - len(ending)]
        configuration = self._configurations.of(package.directory)
        out, root = configuration.out_dir, configuration.root_dir
        if out and root is not None and stem.startswith(f"{out}/"):
            found = self._file(join(root, stem[len(out) + 1 :]))
            if found is not None:
                return found
        below = stem[len(package.directory) :].lstrip("/").split("/")
        while below and below[0] in _BUILT:
            below.pop(0)
        rest = "/".join(below) or "index"
        places: Sequence[str] = (join("src", rest), rest, join("source", rest), join("lib", rest))
        return next(
            (found for place in places if (found := self._file(join(package.directory, place))) is not None), None
        )


def _split(target: str) -> tuple[str, str]:
    """The name of a package, and what follows it."""
    parts = target.split("/")
    count = 2 if target.startswith("@") else 1
    return "/".join(parts[:count]), "/".join(parts[count:])
