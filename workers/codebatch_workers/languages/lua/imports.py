"""Lua: required modules are found by path. The search path is known only at run time."""

from __future__ import annotations

from collections.abc import Iterator

from codebatch_workers.resolution.import_rule import ImportRule
from codebatch_workers.resolution.tree import (
    EXTERNAL_IMPORT,
    ResolvedImport,
    iter_ancestors,
    join_path,
    likely_import,
    parent_directory,
)

_LUA_ROOT_NAMES = ("", "lua", "src", "lib")


class LuaRequires(ImportRule):
    """The resolution of Lua's `a.b` to the nearest `a/b.lua` or `a/b/init.lua`.

    A name of one component is mostly an installed library. So it is searched only in the directories above the
    importing file, and in their usual subdirectories. If a rockspec marks the root of a project, directories above this
    root are also searched, but directories below it are not.
    """

    def resolve(self, path: str, target: str) -> ResolvedImport:
        """Resolve `target`, an import in the file `path`."""
        named = target.replace(".", "/").strip("/")
        if not named:
            return EXTERNAL_IMPORT
        for root in self._search_directories(parent_directory(path)):
            file = self._tree.first_existing((f"{join_path(root, named)}.lua", f"{join_path(root, named)}/init.lua"))
            if file is not None:
                return likely_import(path, [file])
        if "/" not in named:
            return EXTERNAL_IMPORT
        return likely_import(
            path, self._tree.files_ending_with(f"{named}.lua") or self._tree.files_ending_with(f"{named}/init.lua")
        )

    def _search_directories(self, directory: str) -> Iterator[str]:
        """Yield the directories in which a module is searched, nearest first.

        They are the directories above `directory`, from the nearest one with a rockspec on, and usual subdirectories of
        each.
        """
        above = list(iter_ancestors(directory))
        projects = [directory_above for directory_above in above if self._has_rockspec(directory_above)]
        for directory_above in above[above.index(projects[0]) :] if projects else above:
            yield from (join_path(directory_above, below) for below in _LUA_ROOT_NAMES)

    def _has_rockspec(self, directory: str) -> bool:
        return any(file.endswith(".rockspec") for file in self._tree.files_in(directory))


IMPORTS = {"lua": LuaRequires}
