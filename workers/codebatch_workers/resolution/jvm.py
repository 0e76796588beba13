"""Java, Kotlin, Scala: packages are directories below source roots.

`exact` is what stands below the same root as the importing file, or below that of the main sources beside its tests
(`src/test/java` and `src/main/java`). Java names a file after its class; the others need not, so that there a package
may be all that is found.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

from codebatch_workers.resolution.tree import EXTERNAL, FITS_MAX, Resolved, Tree, fitting, nearest, parent

_TARGETS_KEPT = 65_536
_PLATFORM = frozenset({"java", "javax", "jdk", "sun"})
_SOURCE_SET = re.compile(r"(.*/|)src/[^/]+/(?:java|kotlin|scala)\Z")


class _Found(msgspec.Struct, frozen=True):
    """What fits a name: files by the source root that they are below. `is_guess`: a package, for a name in it."""

    roots: Mapping[str, tuple[str, ...]]
    is_guess: bool = False


class JvmImports:
    """Resolves `a.b.C`, `a.b.C.member`, `a.b.*`."""

    def __init__(self, tree: Tree, endings: Sequence[str]) -> None:
        """`endings` are those of the files that a class may stand in, the likeliest first."""
        self._tree = tree
        self._endings = tuple(endings)
        self._find = lru_cache(_TARGETS_KEPT)(self._search)

    def resolve(self, path: str, target: str) -> Resolved:
        """Where the target leads from a file; a star, to all files of a package."""
        found = self._find(target)
        if not found.roots or len(found.roots) > FITS_MAX:
            return EXTERNAL
        resolved = self._chosen(parent(path), found.roots, target.partition(".")[0])
        return Resolved("name", resolved.paths) if found.is_guess and resolved.paths else resolved

    def _search(self, target: str) -> _Found:
        parts = target.split(".")
        is_star = parts[-1] in ("*", "_")
        if is_star:
            parts.pop()
            package = self._package(parts)
            if package:
                return _Found(package)
        # A nested class or a static member stands in its outermost class's file.
        for count in range(len(parts), 1, -1):
            named = "/".join(parts[:count])
            roots: dict[str, tuple[str, ...]] = {}
            for ending in self._endings:
                for file in self._tree.ending_with(named + ending):
                    root = file[: len(file) - len(named) - len(ending)].rstrip("/")
                    roots[root] = (*roots.get(root, ()), file)
            if roots:
                return _Found(roots)
        if is_star or self._endings[0] == ".java":
            return _Found({})
        return _Found(self._package(parts[:-1]), is_guess=True)

    def _package(self, parts: Sequence[str]) -> dict[str, tuple[str, ...]]:
        named = "/".join(parts)
        roots = {}
        for place in self._tree.directories_ending_with(named) if named else ():
            files = tuple(file for file in self._tree.files_in(place) if file.endswith(self._endings))
            if files:
                roots[place[: len(place) - len(named)].rstrip("/")] = files
        return roots

    def _chosen(self, directory: str, roots: Mapping[str, tuple[str, ...]], first: str) -> Resolved:
        """The files below the importing file's own root, that of the main sources beside it, or the nearest."""
        own = [root for root in roots if root == directory or directory.startswith(f"{root}/" if root else "")]
        if own:
            return Resolved("exact", tuple(sorted(roots[max(own, key=len)])))
        if first in _PLATFORM:
            return EXTERNAL
        beside = [root for root in roots if _is_same_module(directory, root)]
        if len(beside) == 1:
            return Resolved("exact", tuple(sorted(roots[beside[0]])))
        chosen = nearest(directory, sorted(roots))
        if len(chosen) == 1:
            return Resolved("file", tuple(sorted(roots[chosen[0]])))
        return fitting(file for root in chosen for file in roots[root])


def _is_same_module(directory: str, root: str) -> bool:
    """Whether a root is another source set of the module that a directory is in."""
    match = _SOURCE_SET.match(root)
    return match is not None and directory.startswith(f"{match[1]}src/")
