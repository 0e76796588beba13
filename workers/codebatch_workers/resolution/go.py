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
from codebatch_workers.resolution.tree import (
    EXTERNAL,
    FITS_MAX,
    PathTree,
    Resolved,
    join,
    nearest,
    parent,
    relative_to,
)

_MODULE, _WORKSPACE = "go.mod", "go.work"
_PLACES_MAX = 1_000


class _Module(msgspec.Struct, frozen=True, kw_only=True):
    """A go.mod or go.work file. `places` are pairs: the path of another module, and its directory in the tree.

    The pairs with the longest paths are first.
    """

    directory: str
    path: str
    places: tuple[tuple[str, str], ...]


class GoImports:
    """The resolution of import paths in Go."""

    def __init__(self, tree: PathTree) -> None:
        self._tree = tree
        self._modules: dict[str, _Module] = {}

    def resolve(self, path: str, target: str) -> Resolved:
        """Resolve `target`, an import path in the file `path`, to all files of a package."""
        directory = parent(path)
        if target.startswith("."):
            place = relative_to(directory, target)
            return EXTERNAL if place is None else self._package("exact", [place])
        file = self._tree.nearest_file(directory, _MODULE)
        if file is None:
            return EXTERNAL if self._directories else self._resolve_by_ending(directory, target)
        module = self._module(file)
        vendored = join(module.directory, f"vendor/{target}")
        for candidate in (*self._directories_in_module(module, target), vendored):
            resolved = self._package("exact", [candidate])
            if resolved.paths:
                return resolved
        if "." not in target.partition("/")[0]:
            return EXTERNAL
        work = self._tree.nearest_file(directory, _WORKSPACE)
        if work is not None:
            place = next(_places(self._module(work).places, target), None)
            if place is not None:
                return self._package("exact", [place])
        return self._package("file", nearest(directory, self._directories_in_other_modules(target)))

    @cached_property
    def _directories(self) -> dict[str, list[str]]:
        """Map each module path to the directories of the tree that contain a module with this path."""
        directories: dict[str, list[str]] = {}
        for file in self._tree.all_named(_MODULE):
            module = self._module(file)
            directories.setdefault(module.path, []).append(module.directory)
        return directories

    def _directories_in_module(self, module: _Module, target: str) -> Iterator[str]:
        """Yield the directories that the import `target` can mean in a file of `module`.

        First are those by the module's `replace` directives, then those below the module's own path.
        """
        yield from _places(module.places, target)
        # If a directory has its own go.mod, or one between it and this module, it belongs to another module.
        candidates = _places([(module.path, module.directory)], target)
        yield from (place for place in candidates if self._owner(place) == module.directory)
        if module.path == "std":
            yield join(module.directory, target)

    def _directories_in_other_modules(self, target: str) -> list[str]:
        parts = target.split("/")
        for count in range(len(parts), 0, -1):
            directories = self._directories.get("/".join(parts[:count]), ())
            subdirectory = "/".join(parts[count:])
            matches = [candidate for root in directories if self._owner(candidate := join(root, subdirectory)) == root]
            if matches:
                return matches
        return []

    def _owner(self, directory: str) -> str | None:
        """Return the directory of the module that contains `directory`, or None."""
        file = self._tree.nearest_file(directory, _MODULE)
        return None if file is None else parent(file)

    def _resolve_by_ending(self, directory: str, target: str) -> Resolved:
        parts = target.split("/")
        if "." not in parts[0]:
            return EXTERNAL
        for start in range(len(parts) - 1):
            candidates = self._tree.directories_ending_with("/".join(parts[start:]))
            resolved = self._package(
                "file", nearest(directory, [candidate for candidate in candidates if self._files(candidate)])
            )
            if resolved.paths:
                return resolved
        return EXTERNAL

    def _package(self, resolution: Resolution, directories: list[str]) -> Resolved:
        files = sorted({path for directory in directories for path in self._files(directory)})
        if not files or len(directories) > FITS_MAX:
            return EXTERNAL
        return Resolved(resolution if len(directories) == 1 else "name", tuple(files))

    def _files(self, directory: str) -> list[str]:
        return [path for path in self._tree.files_in(directory) if _is_package_file(path)]

    def _module(self, file: str) -> _Module:
        if file not in self._modules:
            self._modules[file] = self._read_module(file)
        return self._modules[file]

    def _read_module(self, file: str) -> _Module:
        directory = parent(file)
        path = ""
        places: list[tuple[str, str]] = []
        for verb, words in _directives(read_text(self._tree, file)):
            if verb == "module" and words:
                path = words[0]
            elif verb == "replace" and "=>" in words:
                place = relative_to(directory, words[-1]) if words[-1].startswith(".") else None
                if place is not None:
                    places.append((words[0], place))
            elif verb == "use" and words:
                place = relative_to(directory, words[0])
                used = None if place is None else self._tree.first([join(place, _MODULE)])
                if place is not None and used is not None:
                    places.append((self._module(used).path, place))
        places.sort(key=lambda place: (-len(place[0]), place))
        return _Module(directory=directory, path=path, places=tuple(places[:_PLACES_MAX]))


def _directives(text: str) -> Iterator[tuple[str, list[str]]]:
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


def _places(places: Sequence[tuple[str, str]], target: str) -> Iterator[str]:
    """Yield the directories that the import `target` can mean. `places` are pairs of module path and directory."""
    for path, directory in places:
        if _is_below(target, path):
            yield join(directory, target[len(path) + 1 :])


def _is_below(target: str, path: str) -> bool:
    return bool(path) and (target == path or target.startswith(f"{path}/"))


def _is_package_file(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.endswith(".go") and not name.endswith("_test.go") and name[0] not in "._"
