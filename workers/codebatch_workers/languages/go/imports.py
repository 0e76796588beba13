"""Go: packages by the module paths in go.mod and go.work, and vendored packages.

An import resolves to all files of a package, except for its tests. If a tree has no go.mod, an import resolves to a
directory whose path ends with the last components of the import path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import msgspec

from codebatch.model.record import Resolution
from codebatch_workers.resolution.documents import read_text
from codebatch_workers.resolution.import_rule import ImportContext, ImportRule
from codebatch_workers.resolution.tree import (
    EXTERNAL_IMPORT,
    FITTING_FILES_MAX,
    ResolvedImport,
    join_path,
    nearest_paths,
    parent_directory,
    relative_to,
)

_MODULE, _WORKSPACE = "go.mod", "go.work"
_MODULE_PATHS_MAX = 1_000


class _GoModule(msgspec.Struct, frozen=True, kw_only=True):
    """A go.mod or go.work file. `places` are pairs: the path of another module, and its directory in the tree.

    The pairs with the longest paths are first.
    """

    directory: str
    path: str
    places: tuple[tuple[str, str], ...]


class GoImports(ImportRule):
    """The resolution of import paths in Go."""

    def __init__(self, context: ImportContext) -> None:
        super().__init__(context)
        self._modules: dict[str, _GoModule] = {}

    def resolve(self, path: str, target: str) -> ResolvedImport:
        """Resolve `target`, an import path in the file `path`, to all files of a package."""
        directory = parent_directory(path)
        if target.startswith("."):
            place = relative_to(directory, target)
            return EXTERNAL_IMPORT if place is None else self._resolve_package("exact", [place])
        file = self._tree.nearest_file(directory, _MODULE)
        if file is None:
            return EXTERNAL_IMPORT if self._directories_by_module else self._resolve_by_ending(directory, target)
        module = self._cached_module(file)
        vendored = join_path(module.directory, f"vendor/{target}")
        for candidate in (*self._directories_in_module(module, target), vendored):
            resolved = self._resolve_package("exact", [candidate])
            if resolved.paths:
                return resolved
        if "." not in target.partition("/")[0]:
            return EXTERNAL_IMPORT
        work = self._tree.nearest_file(directory, _WORKSPACE)
        if work is not None:
            place = next(_package_directories(self._cached_module(work).places, target), None)
            if place is not None:
                return self._resolve_package("exact", [place])
        return self._resolve_package("file", nearest_paths(directory, self._directories_in_other_modules(target)))

    @cached_property
    def _directories_by_module(self) -> dict[str, list[str]]:
        """Map each module path to the directories of the tree that contain a module with this path."""
        directories: dict[str, list[str]] = {}
        for file in self._tree.files_named(_MODULE):
            module = self._cached_module(file)
            directories.setdefault(module.path, []).append(module.directory)
        return directories

    def _directories_in_module(self, module: _GoModule, target: str) -> Iterator[str]:
        """Yield the directories that the import `target` can mean in a file of `module`.

        First are those by the module's `replace` directives, then those below the module's own path.
        """
        yield from _package_directories(module.places, target)
        # If a directory has its own go.mod, or one between it and this module, it belongs to another module.
        candidates = _package_directories([(module.path, module.directory)], target)
        yield from (place for place in candidates if self._module_directory(place) == module.directory)
        if module.path == "std":
            yield join_path(module.directory, target)

    def _directories_in_other_modules(self, target: str) -> list[str]:
        parts = target.split("/")
        for count in range(len(parts), 0, -1):
            directories = self._directories_by_module.get("/".join(parts[:count]), ())
            subdirectory = "/".join(parts[count:])
            matches = [
                candidate
                for root in directories
                if self._module_directory(candidate := join_path(root, subdirectory)) == root
            ]
            if matches:
                return matches
        return []

    def _module_directory(self, directory: str) -> str | None:
        """Return the directory of the module that contains `directory`, or None."""
        file = self._tree.nearest_file(directory, _MODULE)
        return None if file is None else parent_directory(file)

    def _resolve_by_ending(self, directory: str, target: str) -> ResolvedImport:
        parts = target.split("/")
        if "." not in parts[0]:
            return EXTERNAL_IMPORT
        for start in range(len(parts) - 1):
            candidates = self._tree.directories_ending_with("/".join(parts[start:]))
            resolved = self._resolve_package(
                "file",
                nearest_paths(directory, [candidate for candidate in candidates if self._package_files(candidate)]),
            )
            if resolved.paths:
                return resolved
        return EXTERNAL_IMPORT

    def _resolve_package(self, resolution: Resolution, directories: list[str]) -> ResolvedImport:
        files = sorted({path for directory in directories for path in self._package_files(directory)})
        if not files or len(directories) > FITTING_FILES_MAX:
            return EXTERNAL_IMPORT
        return ResolvedImport(resolution if len(directories) == 1 else "name", tuple(files))

    def _package_files(self, directory: str) -> list[str]:
        return [path for path in self._tree.files_in(directory) if _is_package_file(path)]

    def _cached_module(self, file: str) -> _GoModule:
        if file not in self._modules:
            self._modules[file] = self._read_module(file)
        return self._modules[file]

    def _read_module(self, file: str) -> _GoModule:
        directory = parent_directory(file)
        path = ""
        places: list[tuple[str, str]] = []
        for verb, words in _iter_directives(read_text(self._tree, file)):
            if verb == "module" and words:
                path = words[0]
            elif verb == "replace" and "=>" in words:
                place = relative_to(directory, words[-1]) if words[-1].startswith(".") else None
                if place is not None:
                    places.append((words[0], place))
            elif verb == "use" and words:
                place = relative_to(directory, words[0])
                used = None if place is None else self._tree.first_existing([join_path(place, _MODULE)])
                if place is not None and used is not None:
                    places.append((self._cached_module(used).path, place))
        places.sort(key=lambda place: (-len(place[0]), place))
        return _GoModule(directory=directory, path=path, places=tuple(places[:_MODULE_PATHS_MAX]))


def _iter_directives(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the keyword of each directive in a go.mod or go.work, and the words after it.

    Each line in a block `replace ( … )` is yielded like a directive of its own. The grammar is at
    go.dev/ref/mod#go-mod-file-grammar.
    """
    block = ""
    for line in text.splitlines():
        words = [word.strip('"`') for word in line.partition("//")[0].split()]
        if not words:
            continue
        if block:
            if words[0] == ")":
                block = ""
            else:
                yield block, words
        elif words[-1] == "(":
            block = words[0]
        else:
            yield words[0], words[1:]


def _package_directories(places: Sequence[tuple[str, str]], target: str) -> Iterator[str]:
    """Yield the directories that the import `target` can mean. `places` are pairs of module path and directory."""
    for path, directory in places:
        if _is_in_module(target, path):
            yield join_path(directory, target[len(path) + 1 :])


def _is_in_module(target: str, path: str) -> bool:
    return bool(path) and (target == path or target.startswith(f"{path}/"))


def _is_package_file(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.endswith(".go") and not name.endswith("_test.go") and name[0] not in "._"


IMPORTS = {"go": GoImports}
