"""Swift: files of a module use each other's names, and the names of modules that they import.

In a package, Package.swift and the directories below it determine the module of a file. Otherwise, all files below the
directory of an Xcode project are treated as one module. An import names a module, so it leads to no file by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

import msgspec

from codebatch.model.record import Edge, Symbol
from codebatch_workers.resolution.configuration_files import decode_text
from codebatch_workers.resolution.implicit_rule import ImplicitImport, ImplicitImportRule, found_in
from codebatch_workers.resolution.import_rule import ImportContext
from codebatch_workers.resolution.tree import (
    FITTING_FILES_MAX,
    is_test_or_example,
    iter_ancestors,
    join_path,
    parent_directory,
    relative_to,
)

_PACKAGE_FILE = "Package.swift"
_PROJECT_ENDINGS = (".xcodeproj", ".xcworkspace")
_TYPE_SYMBOLS = frozenset({"class", "enum", "interface", "struct", "type"})
_VALUE_SYMBOLS = frozenset({"constant", "function", "variable"})
# Names of associated types in the standard library. An extension of a type of the system can use them.
_ASSOCIATED_TYPES = frozenset(
    {
        "Body", "Bound", "Content", "Element", "Failure", "ID", "Index", "Indices", "Input", "Iterator", "Key",
        "Output", "RawValue", "SubSequence", "Success", "Value", "Wrapped",
    }
)  # fmt: skip
_TARGET = re.compile(r'\.\w*[tT]arget\(\s*name:\s*"([^"]+)"')
_TARGET_PATH = re.compile(r'\bpath:\s*"([^"]+)"')
_TARGETS_DIRECTORIES = frozenset({"Benchmarks", "Examples", "Plugins", "Source", "Sources", "Tests", "src", "srcs"})


class _SwiftModule(msgspec.Struct, frozen=True):
    """A module: its name, the directory of its package, and whether it certainly contains exactly its files."""

    name: str
    package: str
    is_certain: bool


class SwiftModuleNames(ImplicitImportRule):
    """The names that the files of each Swift module define."""

    imports_modules = True

    def __init__(self, context: ImportContext) -> None:
        self._tree = context.tree
        self._modules: dict[str, _SwiftModule] = {}
        self._definitions: dict[_SwiftModule, dict[str, list[str]]] = {}
        # The names of nested and associated types, which can hide names of the outermost level.
        self._unsafe_names: set[str] = set(_ASSOCIATED_TYPES)
        self._method_names: set[str] = set()
        self._value_names: set[str] = set()
        self._own_names: dict[str, set[str]] = {}
        self._defined_names: set[str] = set()
        # The groups of modules that are visible in the file of which names are resolved.
        self._visible: tuple[str, list[tuple[list[_SwiftModule], bool]]] | None = None
        self._is_test = cache(is_test_or_example)
        self._modules_by_name: dict[str, list[_SwiftModule]] = {}
        self._module_at = cache(self._find_module)
        self._targets = cache(self._read_targets)

    def add_definitions(self, path: str, language: str, symbols: Sequence[Symbol], *, is_partial: bool) -> None:
        module = self._modules[path] = self._module_at(parent_directory(path))
        if module not in self._definitions:
            self._definitions[module] = {}
            self._modules_by_name.setdefault(module.name, []).append(module)
        names = self._definitions[module]
        self._own_names[path] = {symbol.qualified for symbol in symbols}
        for symbol in symbols:
            is_type = symbol.symbol_type in _TYPE_SYMBOLS
            if symbol.scope and not is_type:
                self._method_names.add(symbol.name)
            elif symbol.visibility != "private" and (is_type or symbol.symbol_type in _VALUE_SYMBOLS):
                if symbol.scope:
                    self._unsafe_names.add(symbol.name)
                elif not is_type:
                    self._value_names.add(symbol.name)
                self._defined_names.add(symbol.qualified.partition(".")[0])
                paths = names.setdefault(symbol.qualified, [])
                if path not in paths:
                    paths.append(path)

    def resolve(
        self, path: str, language: str, name: str, scope: str, imports: Sequence[Edge]
    ) -> ImplicitImport | None:
        own = self._modules.get(path)
        if own is None:
            return None
        parts = name.split(".")
        if not self._defined_names.intersection(parts[:2]):
            return None
        if self._visible is None or self._visible[0] != path:
            self._visible = path, list(self._visible_modules(own, path, imports))
        for modules, is_certain in self._visible[1]:
            for count in range(len(parts), 0, -1):
                written = ".".join(parts[:count])
                if written in self._own_names[path]:
                    return None
                found = self._find(path, modules, written, is_certain=is_certain)
                if found is not None:
                    return found
        if len(parts) > 1 and parts[0] in self._modules_by_name:
            # The name of a module precedes the name, as in `NIOCore.Channel`.
            resolved = self.resolve(path, language, ".".join(parts[1:]), scope, imports)
            return resolved and ImplicitImport(resolved.resolution, resolved.paths, f"{parts[0]}.{resolved.name}")
        return None

    def _find(
        self, path: str, modules: Sequence[_SwiftModule], name: str, *, is_certain: bool
    ) -> ImplicitImport | None:
        paths = {definer for module in modules for definer in self._definitions[module].get(name, ())}
        if not self._is_test(path):
            paths = {definer for definer in paths if self._modules[definer] == self._modules[path]} or paths
        if not paths or len(paths) > FITTING_FILES_MAX:
            return None
        first = name.partition(".")[0]
        if first in self._value_names:
            # A member of the enclosing type hides a function. Another module can overload it.
            is_hidden = first in self._method_names
            return None if is_hidden else found_in(tuple(sorted(paths)), name, is_certain=False)
        return found_in(tuple(sorted(paths)), name, is_certain=is_certain and first not in self._unsafe_names)

    def _visible_modules(
        self, own: _SwiftModule, path: str, imports: Sequence[Edge]
    ) -> Iterator[tuple[list[_SwiftModule], bool]]:
        """Yield groups of modules whose names are visible, the decisive group first, and whether each is certain.

        The last group is the package, because a module can export the modules that it imports.
        """
        yield [own], own.is_certain
        imported_names = {edge.target.partition(".")[0] for edge in imports}
        imported = [module for name in sorted(imported_names) for module in self._modules_by_name.get(name, ())]
        near = [module for module in imported if module.package == own.package] or imported
        # Without `@testable`, only public names are visible, and public names are not known here.
        yield near, own.is_certain and self._is_test(path)
        yield [module for module in self._definitions if module.package == own.package], False

    def _find_module(self, directory: str) -> _SwiftModule:
        for above in iter_ancestors(directory):
            if join_path(above, _PACKAGE_FILE) in self._tree.paths:
                return self._package_module(above, directory)
        for above in iter_ancestors(directory):
            prefix = f"{above}/" if above else ""
            for below in self._tree.directories:
                if below.startswith(prefix) and "/" not in below[len(prefix) :] and below.endswith(_PROJECT_ENDINGS):
                    return _SwiftModule(below[len(prefix) :].partition(".")[0], above, is_certain=False)
        return _SwiftModule("", "", is_certain=False)

    def _package_module(self, package: str, directory: str) -> _SwiftModule:
        targets = self._targets(package)
        for above in iter_ancestors(directory):
            if above in targets:
                return _SwiftModule(targets[above], package, is_certain=True)
        below = directory[len(package) :].strip("/").split("/")
        if below[0] in _TARGETS_DIRECTORIES and len(below) > 1:
            return _SwiftModule(below[1], package, is_certain=True)
        return _SwiftModule(below[0], package, is_certain=False)

    def _read_targets(self, package: str) -> dict[str, str]:
        """Map the directories that Package.swift sets to the names of their targets."""
        text = decode_text(self._tree.read(join_path(package, _PACKAGE_FILE)) or b"")
        matches = list(_TARGET.finditer(text))
        targets: dict[str, str] = {}
        for index, match in enumerate(matches):
            end = matches[index + 1].start() if index + 1 < len(matches) else len(text)
            written = _TARGET_PATH.search(text, match.end(), end)
            directory = relative_to(package, written[1]) if written is not None else None
            if directory:
                targets[directory] = match[1].replace("-", "_")
        return targets


IMPLICIT = {"swift": SwiftModuleNames}
