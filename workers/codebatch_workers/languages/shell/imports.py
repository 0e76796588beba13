"""Shells: sourced files are found by path. The working directory is known only at run time."""

from __future__ import annotations

from codebatch_workers.resolution.import_rule import ImportRule
from codebatch_workers.resolution.tree import ResolvedImport, exact_import, parent_directory, relative_to


class ShellSources(ImportRule):
    """The resolution of `source` in shell scripts.

    A shell resolves the path from its working directory. The working directory is unknown here, so the directory of the
    script is used instead.
    """

    def resolve(self, path: str, target: str) -> ResolvedImport:
        """Resolve `target`, an import in the file `path`."""
        place = relative_to(parent_directory(path), target)
        return exact_import(place if place in self._tree.paths else None)


IMPORTS = {"bash": ShellSources, "zsh": ShellSources}
