"""The files that the cache key of a custom task covers (workers/TASKS.md "Custom tasks")."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib.machinery import all_suffixes
from importlib.metadata import distribution

from codebatch.model.task import CustomTaskLocation
from codebatch.plugins.entry_points import normalized_distribution, packages_covered_by_key, providing_distributions
from codebatch.plugins.input_audit import is_below_directory
from codebatch.plugins.user_tasks import CustomTaskSource

_SITE_DIRECTORIES = ("site-packages", "dist-packages")
_METADATA_DIRECTORY = re.compile(r"(.+)-[^-]+\.(?:dist|egg)-info\Z")


class KeyCoverage:
    """The files that the key of a custom task covers, by their content or by the version of their distribution.

    The minor version of the interpreter covers the standard library. /dev/null is covered, because it has no content.
    """

    def __init__(
        self,
        source: CustomTaskSource,
        place: CustomTaskLocation,
        tools: Iterable[str],
        *,
        own_package_directories: Iterable[str],
    ) -> None:
        """Collect the covered files. `tools` are the distributions whose versions are in the key.

        `own_package_directories` are the directories of codebatch's own packages.
        """
        python = place.python.rpartition(":")[0]
        self._project = os.path.realpath(place.project)
        self._files = {os.devnull}
        self._bytecode_files: list[str] = []
        for file in (python, *place.files.values()):
            self._add_file(os.path.realpath(file))
        self._covered_directories = [*map(os.path.realpath, own_package_directories)]
        for package in packages_covered_by_key(source):
            self._add_package(package)
        self._tools = {normalized_distribution(tool) for tool in tools} - {"python"}

    def has(self, path: str) -> bool:
        """Return whether the key covers the content of a file or directory."""
        if path in self._files or (path.endswith(".pyc") and path.startswith(tuple(self._bytecode_files))):
            return True
        if any(is_below_directory(path, tree) for tree in self._covered_directories) or _belongs_to_interpreter(path):
            return True
        return any(self._belongs_to_tool(first) for first in _first_names(path, self._site_directories))

    def displayed_path(self, path: str) -> str:
        """Return a path for people.

        It is relative to the project, or the name of an installed module, or the last component of the path.
        """
        if path.endswith(".pyc"):
            with contextlib.suppress(ValueError):
                path = importlib.util.source_from_cache(path)
        if is_below_directory(path, self._project):
            return os.path.relpath(path, self._project)
        site = max(
            (directory for directory in map(os.path.realpath, sys.path) if is_below_directory(path, directory)),
            key=len,
            default="",
        )
        first = next(_first_names(path, [site]), "")
        return f"{first} (installed)" if first else f"…/{os.path.basename(path)}"

    def _add_package(self, name: str) -> None:
        """Add all files of a package, or the file of a module, to the covered files."""
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            return
        file = os.path.realpath(spec.origin)
        if spec.submodule_search_locations:
            self._covered_directories.append(os.path.dirname(file))
        else:
            self._add_file(file)

    def _add_file(self, file: str) -> None:
        """Add a file and its bytecode to the covered files."""
        self._files.add(file)
        directory, name = os.path.split(file)
        if name.endswith(".py"):
            self._bytecode_files.append(os.path.join(directory, "__pycache__", name.removesuffix("py")))

    @cached_property
    def _site_directories(self) -> list[str]:
        """The site directories in which the distributions of the key are installed."""
        return sorted({os.path.realpath(str(distribution(tool).locate_file(""))) for tool in self._tools})

    def _belongs_to_tool(self, first: str) -> bool:
        """Return whether a top-level name in a site directory is provided only by distributions that the key covers."""
        metadata = _METADATA_DIRECTORY.match(first)
        owners = (metadata[1],) if metadata else providing_distributions(first)
        return bool(owners) and self._tools.issuperset(map(normalized_distribution, owners))


@functools.cache
def _standard_library_paths() -> tuple[str, ...]:
    """Return the paths of the standard library: two directories and an archive."""
    compiled = os.path.join(sys.base_exec_prefix, sys.platlibdir, "python{}.{}".format(*sys.version_info))
    archive = os.path.join(sys.base_prefix, sys.platlibdir, "python{}{}.zip".format(*sys.version_info))
    return os.path.realpath(os.path.dirname(os.__file__)), os.path.realpath(compiled), os.path.realpath(archive)


def _belongs_to_interpreter(path: str) -> bool:
    library = next((directory for directory in _standard_library_paths() if is_below_directory(path, directory)), None)
    return library is not None and path[len(library) + 1 :].partition(os.sep)[0] not in _SITE_DIRECTORIES


def _first_names(path: str, sites: Iterable[str]) -> Iterator[str]:
    """Yield, for each of the site directories that contain a path, the first component of the path below it.

    The suffix of a module is removed: the result for `SITE/a/b.py` is `a`, and for `SITE/c.py` it is `c`.
    """
    for site in sites:
        if site and path.startswith(site + os.sep):
            first, *components = path[len(site) + 1 :].split(os.sep)
            if first == "__pycache__" and components:
                first = components[0].partition(".")[0]
            suffix = next(
                (ending for ending in sorted(all_suffixes(), key=len, reverse=True) if first.endswith(ending)), ""
            )
            yield first.removesuffix(suffix)
