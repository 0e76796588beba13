"""To which files of a snapshot an import leads: a pure function of the paths, by each language's rules.

What no path can tell is left out: module names of Go, `paths` of TypeScript, include directories, `sys.path`. There a
target is found by how a path ends, and the resolution says how sure that is:

    exact      the language's rule names this file and no other
    file       one file of the snapshot fits
    name       several fit
    external   none fits
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Resolution = Literal["exact", "file", "name", "external"]

_SCRIPT_ENDINGS = (
    "", ".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".json",
    "/index.ts", "/index.tsx", "/index.d.ts", "/index.js", "/index.jsx", "/index.mjs", "/index.cjs",
)  # fmt: skip
# TypeScript names what the compiler will have made: `./a.js` is `a.ts`.
_COMPILED_ENDINGS = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
_CRATE_ROOTS = ("lib.rs", "main.rs")


@dataclass(frozen=True, slots=True)
class Resolved:
    """Where an import leads. `paths` is empty where it is external."""

    resolution: Resolution
    paths: tuple[str, ...] = ()


EXTERNAL = Resolved("external")


def _found(paths: Sequence[str]) -> Resolved:
    return Resolved("file" if len(paths) == 1 else "name", tuple(paths)) if paths else EXTERNAL


class Resolver:
    """Resolves the imports of one snapshot, of which it is given all paths."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)
        self._by_name: dict[str, list[str]] = {}
        self._directories: dict[str, list[str]] = {}
        for path in sorted(self._paths):
            directory, name = posixpath.split(path)
            self._by_name.setdefault(name, []).append(path)
            self._directories.setdefault(directory, []).append(path)
        self._directories_by_name: dict[str, list[str]] = {}
        for directory in self._directories:
            self._directories_by_name.setdefault(posixpath.basename(directory), []).append(directory)
        self._rules: dict[str, Callable[[str, str], Resolved]] = {
            "bash": self._relative,
            "c": self._include,
            "cpp": self._include,
            "go": self._go,
            "java": self._java,
            "javascript": self._script,
            "python": self._python,
            "rust": self._rust,
            "tsx": self._script,
            "typescript": self._script,
            "zsh": self._relative,
        }

    def resolve(self, path: str, language: str, target: str) -> Resolved:
        """Where an import of `target`, as written in `path`, leads."""
        rule = self._rules.get(language)
        return EXTERNAL if rule is None else rule(path, target)

    def _ending_with(self, ending: str) -> list[str]:
        """The paths whose last components are these."""
        known = self._by_name.get(posixpath.basename(ending), [])
        return [path for path in known if path == ending or path.endswith(f"/{ending}")]

    def _relative(self, path: str, target: str) -> Resolved:
        named = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        return Resolved("exact", (named,)) if named in self._paths else EXTERNAL

    def _include(self, path: str, target: str) -> Resolved:
        beside = self._relative(path, target)
        return beside if beside.paths else _found(self._ending_with(posixpath.normpath(target).lstrip("./")))

    def _script(self, path: str, target: str) -> Resolved:
        if not target.startswith("."):
            return EXTERNAL
        named = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        stem, ending = posixpath.splitext(named)
        candidates = [named + each for each in _SCRIPT_ENDINGS]
        candidates += [stem + each for each in _COMPILED_ENDINGS.get(ending, ())]
        return next((Resolved("exact", (each,)) for each in candidates if each in self._paths), EXTERNAL)

    # -- Python -------------------------------------------------------------------------------------------------------

    def _python(self, path: str, target: str) -> Resolved:
        relative = target.lstrip(".")
        level = len(target) - len(relative)
        parts = [part for part in relative.split(".") if part and part != "*"]
        directory = posixpath.dirname(path)
        if level:
            for _ in range(level - 1):
                directory = posixpath.dirname(directory)
            module = self._module(directory, parts) or self._package(directory)
            return Resolved("exact", (module,)) if module else EXTERNAL
        roots = [root for root in self._roots(parts[0]) if not self._package(root)] if parts else []
        around = [root for root in roots if root in ("", directory) or directory.startswith(f"{root}/")]
        if around:
            module = self._module(max(around, key=len), parts)
            return Resolved("exact", (module,)) if module else EXTERNAL
        return _found([module for root in roots if (module := self._module(root, parts))])

    def _package(self, directory: str) -> str | None:
        path = posixpath.join(directory, "__init__.py")
        return path if path in self._paths else None

    def _roots(self, name: str) -> list[str]:
        """The directories from which a top-level module can be imported."""
        modules = self._by_name.get(f"{name}.py", []) + self._by_name.get(f"{name}.pyi", [])
        packages = self._directories_by_name.get(name, [])
        return sorted({posixpath.dirname(path) for path in (*modules, *filter(self._package, packages))})

    def _module(self, directory: str, parts: Sequence[str]) -> str | None:
        """The file of the longest beginning of a dotted name that has one: the rest are names in it."""
        for count in range(len(parts), 0, -1):
            named = posixpath.join(directory, *parts[:count])
            for path in (f"{named}/__init__.py", f"{named}.py", f"{named}.pyi"):
                if path in self._paths:
                    return path
        return None

    # -- Go, Java -----------------------------------------------------------------------------------------------------

    def _go(self, _path: str, target: str) -> Resolved:
        """All files of the package: of the directory that shares most of the import's end, two components or more."""
        parts = target.split("/")
        for start in range(len(parts) - 1):
            ending = "/".join(parts[start:])
            directories = [
                each
                for each in self._directories_by_name.get(parts[-1], ())
                if each == ending or each.endswith(f"/{ending}")
            ]
            files = [path for each in directories for path in self._directories[each] if _is_go_package_file(path)]
            if files:
                return Resolved("file" if len(directories) == 1 else "name", tuple(files))
        return EXTERNAL

    def _java(self, _path: str, target: str) -> Resolved:
        parts = target.split(".")
        if parts[-1] == "*":
            ending = "/".join(parts[:-1])
            directories = [each for each in self._directories if each == ending or each.endswith(f"/{ending}")]
            files = [path for each in directories for path in self._directories[each] if path.endswith(".java")]
            if files:
                return Resolved("file" if len(directories) == 1 else "name", tuple(files))
            parts.pop()
        # A nested class or a static member stands in its outermost class's file.
        for count in range(len(parts), 1, -1):
            found = self._ending_with("/".join(parts[:count]) + ".java")
            if found:
                return _found(found)
        return EXTERNAL

    # -- Rust ---------------------------------------------------------------------------------------------------------

    def _rust(self, path: str, target: str) -> Resolved:
        parts = [part for part in target.split("::") if part != "*"]
        here = _module_directory(path)
        if not parts:
            return EXTERNAL
        if parts[0] == "crate":
            root = self._crate(path)
            if root is None:
                return EXTERNAL
            module = self._rust_module(root, parts[1:])
            return module if module.paths else Resolved("exact", (self._crate_root(root),))
        if parts[0] in ("self", "super"):
            while parts and parts[0] in ("self", "super"):
                here = posixpath.dirname(here) if parts.pop(0) == "super" else here
            return self._rust_module(here, parts)
        local = self._rust_module(here, parts)
        if local.paths:
            return local
        crates = [
            f"{directory}/src/lib.rs"
            for name in {parts[0], parts[0].replace("_", "-")}
            for directory in self._directories_by_name_or_parent(name)
        ]
        return _found(sorted(path for path in crates if path in self._paths))

    def _directories_by_name_or_parent(self, name: str) -> Iterator[str]:
        """Directories of a name, of which only `src` may hold files."""
        for directory in self._directories_by_name.get("src", ()):
            parent = posixpath.dirname(directory)
            if posixpath.basename(parent) == name:
                yield parent

    def _crate_root(self, directory: str) -> str:
        return next(path for name in _CRATE_ROOTS if (path := posixpath.join(directory, name)) in self._paths)

    def _crate(self, path: str) -> str | None:
        directory = posixpath.dirname(path)
        while True:
            if any(posixpath.join(directory, name) in self._paths for name in _CRATE_ROOTS):
                return directory
            if not directory:
                return None
            directory = posixpath.dirname(directory)

    def _rust_module(self, directory: str, parts: Sequence[str]) -> Resolved:
        for count in range(len(parts), 0, -1):
            named = posixpath.join(directory, *parts[:count])
            for path in (f"{named}.rs", f"{named}/mod.rs"):
                if path in self._paths:
                    return Resolved("exact", (path,))
        return EXTERNAL


def _is_go_package_file(path: str) -> bool:
    return path.endswith(".go") and not path.endswith("_test.go")


def _module_directory(path: str) -> str:
    """Where the modules stand that a Rust file declares."""
    directory, name = posixpath.split(path)
    return directory if name in (*_CRATE_ROOTS, "mod.rs") else posixpath.join(directory, name.removesuffix(".rs"))
