"""Java, Kotlin, Scala: packages, by what their files declare and define.

A name leads to the file that defines it in the package that it is imported from. Where several do, `exact` is what is
below the same source root as the importing file, or below that of the main sources beside its tests (`src/test/java`
and `src/main/java`). Files of which it is not known what they define are found by their paths: packages are directories
below source roots, Java names a file after its class, and of the others a package may be all that is found.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache

import msgspec

from codebatch_workers.resolution.tree import (
    EXTERNAL,
    FITS_MAX,
    PathTree,
    Resolved,
    fitting,
    is_secondary,
    nearest,
    parent,
)

_TARGETS_KEPT = 65_536
_PLATFORM = frozenset({"java", "javax", "jdk", "sun"})
_BELOW_SOURCE_SET = re.compile(r"((?:.*/|)src/([^/]+)/(?:java|kotlin|scala))(?:/|\Z)")
_TEST_SET = re.compile(r"(?i)test|\A(?:it|jmh)\Z")
_SOURCE_SET = re.compile(r"(.*/|)src/[^/]+/(?:java|kotlin|scala)\Z")


class JvmDefinitions(msgspec.Struct, frozen=True):
    """What a file says that it defines: its package, and the names of its outermost scope.

    `is_partial`: the file was not understood as a whole, and may define more.
    """

    package: str
    names: frozenset[str]
    is_partial: bool = False


class _NameMatch(msgspec.Struct, frozen=True):
    """What fits a name: files by the source root that they are below. `is_guess`: a package, for a name in it."""

    roots: Mapping[str, tuple[str, ...]]
    is_guess: bool = False


class JvmImports:
    """Resolves `a.b.C`, `a.b.C.member`, `a.b.*`."""

    def __init__(self, tree: PathTree, endings: Sequence[str], definitions: Mapping[str, JvmDefinitions]) -> None:
        """`endings` are those of the files that a class may stand in, the likeliest first.

        `definitions` has what files define, by path.
        """
        self._tree = tree
        self._endings = tuple(endings)
        self._definitions = definitions
        self._find = lru_cache(_TARGETS_KEPT)(self._search)

    def resolve(self, path: str, target: str) -> Resolved:
        """Where the target leads from a file; a star, to all files of a package."""
        defined = self._defined(path, target)
        if defined:
            return self._nearest(path, defined, is_package=_is_star(target))
        found = self._find(target)
        if not found.roots or len(found.roots) > FITS_MAX:
            return EXTERNAL
        usable = {root: files for root, each in found.roots.items() if (files := tuple(_reachable(path, each)))}
        resolved = self._chosen(parent(path), usable, target.partition(".")[0])
        return Resolved("name", resolved.paths) if found.is_guess and resolved.paths else resolved

    def _search(self, target: str) -> _NameMatch:
        parts = target.split(".")
        is_star = parts[-1] in ("*", "_")
        if is_star:
            parts.pop()
            package = self._package(parts)
            if package:
                return _NameMatch(package)
        # A nested class or a static member stands in its outermost class's file.
        for count in range(len(parts), 1, -1):
            named, declared = "/".join(parts[:count]), ".".join(parts[: count - 1])
            roots: dict[str, tuple[str, ...]] = {}
            for ending in self._endings:
                for file in self._tree.ending_with(named + ending):
                    known = self._definitions.get(file)
                    if known is not None and known.package not in ("", declared):
                        continue
                    root = file[: len(file) - len(named) - len(ending)].rstrip("/")
                    roots[root] = (*roots.get(root, ()), file)
            if roots:
                return _NameMatch(roots)
        if is_star or self._endings[0] == ".java":
            return _NameMatch({})
        return _NameMatch(self._package(parts[:-1]), is_guess=True)

    def _package(self, parts: Sequence[str]) -> dict[str, tuple[str, ...]]:
        named = "/".join(parts)
        roots = {}
        for place in self._tree.directories_ending_with(named) if named else ():
            files = tuple(
                file for file in self._tree.files_in(place) if file.endswith(self._endings) and self._is_unknown(file)
            )
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

    # -- By what files define -----------------------------------------------------------------------------------------

    def _is_unknown(self, file: str) -> bool:
        """Return whether a file may define more than is known."""
        known = self._definitions.get(file)
        return known is None or known.is_partial

    @cached_property
    def _by_name(self) -> Mapping[str, list[str]]:
        """The files that define a name, by that name with its package, and the files of each package."""
        found: dict[str, list[str]] = {}
        for file, defined in sorted(self._definitions.items()):
            if defined.package:
                for name in (*defined.names, "*"):
                    found.setdefault(f"{defined.package}.{name}", []).append(file)
                if file.endswith(".kt"):
                    # What Java calls the class that holds the functions of a file.
                    stem = posixpath.basename(file).removesuffix(".kt")
                    found.setdefault(f"{defined.package}.{stem[:1].upper()}{stem[1:]}Kt", []).append(file)
        return found

    def _defined(self, path: str, target: str) -> Sequence[str]:
        """Return the files that define what a target names, its outermost class, or all of a package."""
        own = self._definitions.get(path)
        prefixes = [""]
        if own is not None and path.endswith(".scala"):
            # An import may begin in a package around it.
            parts = own.package.split(".")
            prefixes = [f"{'.'.join(parts[:count])}." for count in range(len(parts), 0, -1)] + prefixes
        is_star = _is_star(target)
        names = target.split(".")[: -1 if is_star else None]
        for prefix in prefixes:
            if is_star and (files := self._by_name.get(f"{prefix}{'.'.join(names)}.*")):
                return files
            for count in range(len(names), 0, -1):
                if files := self._by_name.get(prefix + ".".join(names[:count])):
                    return files
        return ()

    def _nearest(self, path: str, files: Sequence[str], *, is_package: bool) -> Resolved:
        """Return the files below the importing file's root, those beside it in its module, or the nearest ones.

        A package may be spread over the source sets of a module.
        """
        own = self._root(path)
        found = _reachable(path, files)
        if not found:
            return EXTERNAL
        of_root = [file for file in found if self._root(file) == own]
        if not of_root and self._definitions[found[0]].package.partition(".")[0] in _PLATFORM:
            return EXTERNAL
        of_module = [file for file in found if _is_same_module(parent(path), self._root(file))]
        chosen = (of_module if is_package else []) or of_root or of_module or found
        if of_root or of_module or len({self._root(file) for file in found}) == 1:
            return Resolved("exact", tuple(sorted(chosen)))
        return fitting(nearest(parent(path), chosen))

    def _root(self, path: str) -> str:
        """Return the source root that a file is below, its directory if it is not where its package says."""
        directory = parent(path)
        source_set = _BELOW_SOURCE_SET.match(directory)
        if source_set is not None:
            return source_set[1]
        known = self._definitions.get(path)
        package = "" if known is None else known.package.replace(".", "/")
        return f"/{directory}".removesuffix(f"/{package}").lstrip("/") if package else directory


def _is_star(target: str) -> bool:
    return target.endswith((".*", "._"))


def _reachable(path: str, files: Iterable[str]) -> list[str]:
    """Return those of some files that a file may use: the main sources use no tests."""
    return list(files) if _is_test(path) else [file for file in files if not _is_test(file)]


def _is_test(path: str) -> bool:
    """Return whether a file belongs to tests: as the source set that it is in says, if it is in any."""
    source_set = _BELOW_SOURCE_SET.match(parent(path))
    return is_secondary(path) if source_set is None else _TEST_SET.search(source_set[2]) is not None


def _is_same_module(directory: str, root: str) -> bool:
    """Whether a root is another source set of the module that a directory is in."""
    match = _SOURCE_SET.match(root)
    return match is not None and directory.startswith(f"{match[1]}src/")
