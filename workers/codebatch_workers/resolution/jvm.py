"""Java, Kotlin, Scala: packages are directories below source roots.

`exact` is what stands below the same root as the importing file, or below that of the main sources beside its tests
(`src/test/java` and `src/main/java`). Java names a file after its class; the others need not, so that there a package
may be all that is found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from codebatch_workers.resolution.tree import EXTERNAL, FITS_MAX, Resolved, Tree, fitting, nearest, parent

_PLATFORM = frozenset({"java", "javax", "jdk", "sun"})
_SOURCE_SET = re.compile(r"(.*/|)src/[^/]+/(?:java|kotlin|scala)\Z")


class JvmImports:
    """Resolves `a.b.C`, `a.b.C.member`, `a.b.*`."""

    def __init__(self, tree: Tree, endings: Sequence[str]) -> None:
        """`endings` are those of the files that a class may stand in, the likeliest first."""
        self._tree = tree
        self._endings = tuple(endings)

    def resolve(self, path: str, target: str) -> Resolved:
        """Where the target leads from a file; a star, to all files of a package."""
        parts = target.split(".")
        directory = parent(path)
        is_star = parts[-1] in ("*", "_")
        if is_star:
            parts.pop()
            found = self._package(directory, parts)
            if found.paths:
                return found
        # A nested class or a static member stands in its outermost class's file.
        for count in range(len(parts), 1, -1):
            named = "/".join(parts[:count])
            files = [file for ending in self._endings for file in self._tree.ending_with(named + ending)]
            if files:
                return self._chosen(directory, [(file, [file]) for file in files], len(named), parts[0])
        if is_star or self._endings[0] == ".java":
            return EXTERNAL
        found = self._package(directory, parts[:-1])
        return Resolved("name", found.paths) if found.paths else EXTERNAL

    def _package(self, directory: str, parts: Sequence[str]) -> Resolved:
        if not parts:
            return EXTERNAL
        named = "/".join(parts)
        places = [
            (each, files)
            for each in self._tree.directories_ending_with(named)
            if (files := [file for file in self._tree.files_in(each) if file.endswith(self._endings)])
        ]
        return self._chosen(directory, places, len(named), parts[0])

    def _chosen(self, directory: str, places: Sequence[tuple[str, list[str]]], length: int, first: str) -> Resolved:
        """Of places that end alike: those of the file's own root, of the main sources beside it, or the nearest."""
        if not places or len(places) > FITS_MAX:
            return EXTERNAL
        roots: dict[str, list[str]] = {}
        for place, files in places:
            stem = place if place not in files else place[: place.rindex(".")]
            roots.setdefault(stem[: len(stem) - length].rstrip("/"), []).extend(files)
        own = [root for root in roots if root == directory or directory.startswith(f"{root}/" if root else "")]
        if own:
            return Resolved("exact", tuple(sorted(roots[max(own, key=len)])))
        if first in _PLATFORM:
            return EXTERNAL
        beside = [root for root in roots if _is_same_module(directory, root)]
        if len(beside) == 1:
            return Resolved("exact", tuple(sorted(roots[beside[0]])))
        chosen = nearest(directory, sorted(roots))
        files = [file for root in chosen for file in roots[root]]
        return fitting(files) if len(chosen) > 1 or len(files) == 1 else Resolved("file", tuple(sorted(files)))


def _is_same_module(directory: str, root: str) -> bool:
    """Whether a root is another source set of the module that a directory is in."""
    match = _SOURCE_SET.match(root)
    return match is not None and directory.startswith(f"{match[1]}src/")
