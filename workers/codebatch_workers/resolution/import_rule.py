"""The interface through which a language takes part in the resolution of imports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeVar, cast

import msgspec

from codebatch_workers.resolution.tree import EXTERNAL_IMPORT, PathTree, ResolvedImport

_Made = TypeVar("_Made")


class PackageDefinitions(msgspec.Struct, frozen=True):
    """The definitions of a file: its package, and the names in its outermost scope.

    If `is_partial` is true, the file was not completely parsed, so it can define further names.
    """

    package: str
    names: frozenset[str]
    is_partial: bool = False


class ImportContext:
    """The tree in which imports are resolved, and facts about its files.

    `definitions` returns the definitions of the files whose imports name definitions of packages, by path. It is called
    when such an import is first resolved, and only once.
    """

    def __init__(self, tree: PathTree, definitions: Callable[[], Mapping[str, PackageDefinitions]] = dict) -> None:
        self.tree = tree
        self.definitions = cache(definitions)
        self._made: dict[object, object] = {}

    def shared(self, make: Callable[[ImportContext], _Made]) -> _Made:
        """Return the object that `make` builds from this context. It is built once, for all rules that need it."""
        if make not in self._made:
            self._made[make] = make(self)
        return cast("_Made", self._made[make])


class ImportRule:
    """The rule of a language for imports. By default, no import leads to a file.

    - `depends_on_file`: the result depends on the importing file, not only on its directory.
    """

    depends_on_file = False

    def __init__(self, context: ImportContext) -> None:
        self._tree = context.tree

    def resolve(self, path: str, target: str) -> ResolvedImport:
        """Resolve `target`, the target of an import in the file `path`."""
        return EXTERNAL_IMPORT

    def resolve_module(self, path: str, target: str) -> ResolvedImport:
        """Like `resolve`, for a target that certainly is a module."""
        return self.resolve(path, target)

    def erases_imports(self, path: str) -> bool:
        """Return whether the compiler of a file erases imports whose names are used only as types."""
        return False
