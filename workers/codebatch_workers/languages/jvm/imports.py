"""Java, Kotlin and Scala: imported names, by the packages and definitions of files.

A name resolves to the file that defines the name in its package. If several files define it, those below the source
root of the importing file are an `exact` result. For a test, the main source root of the same module counts too:
`src/main/java` for `src/test/java`.

If the definitions of a file are unknown, the file is found by its path: packages are directories below source roots,
and a Java file has the name of its class. In Kotlin and Scala, the result can be all files of a package.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache, partial

import msgspec

from codebatch_workers.resolution.import_rule import ImportContext, ImportRule, PackageDefinitions
from codebatch_workers.resolution.tree import (
    EXTERNAL_IMPORT,
    FITTING_FILES_MAX,
    ResolvedImport,
    fitting_import,
    is_test_or_example,
    nearest_paths,
    parent_directory,
)

_CACHED_TARGETS_MAX = 65_536
_PLATFORM_PACKAGES = frozenset({"java", "javax", "jdk", "sun"})
_FILE_IN_SOURCE_SET = re.compile(r"((?:.*/|)src/([^/]+)/(?:java|kotlin|scala))(?:/|\Z)")
_TEST_SOURCE_SET = re.compile(r"(?i)test|\A(?:it|jmh)\Z")
_SOURCE_SET_DIRECTORY = re.compile(r"(.*/|)src/[^/]+/(?:java|kotlin|scala)\Z")


class _NameMatch(msgspec.Struct, frozen=True):
    """The files that match a name, by the source root that contains them.

    If `is_guess` is true, they are all files of a package that can contain the name.
    """

    roots: Mapping[str, tuple[str, ...]]
    is_guess: bool = False


class JvmImports(ImportRule):
    """The resolution of imports such as `a.b.C`, `a.b.C.member` and `a.b.*`."""

    def __init__(
        self,
        context: ImportContext,
        endings: Sequence[str],
        definitions: Mapping[str, PackageDefinitions] | None = None,
    ) -> None:
        """`endings` are the extensions of files that can contain a class, most likely first.

        `definitions` maps the paths of files to their definitions. By default, they are those of the context.
        """
        super().__init__(context)
        self._endings = tuple(endings)
        self._definitions = context.definitions() if definitions is None else definitions
        self._cached_matches = lru_cache(_CACHED_TARGETS_MAX)(self._find_matches)
        self._source_root = lru_cache(_CACHED_TARGETS_MAX)(self._find_source_root)

    def resolve(self, path: str, target: str) -> ResolvedImport:
        """Resolve `target`, an import in the file `path`.

        If `target` ends with a star, it resolves to all files of a package.
        """
        defined = self._defining_files(path, target)
        if defined:
            return self.nearest_definitions(path, defined, is_package=_is_star_import(target))
        match = self._cached_matches(target)
        if not match.roots or len(match.roots) > FITTING_FILES_MAX:
            return EXTERNAL_IMPORT
        usable = {
            root: files
            for root, files_of_root in match.roots.items()
            if (files := tuple(_usable_files(path, files_of_root)))
        }
        resolved = self._resolve_in_roots(parent_directory(path), usable, target.partition(".")[0])
        return ResolvedImport("name", resolved.paths) if match.is_guess and resolved.paths else resolved

    def _find_matches(self, target: str) -> _NameMatch:
        parts = target.split(".")
        is_star = parts[-1] in ("*", "_")
        if is_star:
            parts.pop()
            package = self._package_files(parts)
            if package:
                return _NameMatch(package)
        # A nested class or a static member is in the file of its outermost class.
        for count in range(len(parts), 1, -1):
            suffix, package_name = "/".join(parts[:count]), ".".join(parts[: count - 1])
            roots: dict[str, tuple[str, ...]] = {}
            for ending in self._endings:
                for file in self._tree.files_ending_with(suffix + ending):
                    known = self._definitions.get(file)
                    if known is not None and known.package not in ("", package_name):
                        continue
                    root = file[: len(file) - len(suffix) - len(ending)].rstrip("/")
                    roots[root] = (*roots.get(root, ()), file)
            if roots:
                return _NameMatch(roots)
        if is_star or self._endings[0] == ".java":
            return _NameMatch({})
        return _NameMatch(self._package_files(parts[:-1]), is_guess=True)

    def _package_files(self, parts: Sequence[str]) -> dict[str, tuple[str, ...]]:
        suffix = "/".join(parts)
        roots = {}
        for place in self._tree.directories_ending_with(suffix) if suffix else ():
            files = tuple(
                file for file in self._tree.files_in(place) if file.endswith(self._endings) and self._is_unknown(file)
            )
            if files:
                roots[place[: len(place) - len(suffix)].rstrip("/")] = files
        return roots

    def _resolve_in_roots(self, directory: str, roots: Mapping[str, tuple[str, ...]], first: str) -> ResolvedImport:
        """Resolve a name to files below one of the source roots `roots`, for an importing file in `directory`.

        These are tried in order: the root that contains the importing file, the main source root of its module, the
        nearest roots. `first` is the first component of the name.
        """
        own_roots = [root for root in roots if root == directory or directory.startswith(f"{root}/" if root else "")]
        if own_roots:
            return ResolvedImport("exact", tuple(sorted(roots[max(own_roots, key=len)])))
        if first in _PLATFORM_PACKAGES:
            return EXTERNAL_IMPORT
        sibling_roots = [root for root in roots if _is_same_module(directory, root)]
        if len(sibling_roots) == 1:
            return ResolvedImport("exact", tuple(sorted(roots[sibling_roots[0]])))
        chosen = nearest_paths(directory, sorted(roots))
        if len(chosen) == 1:
            return ResolvedImport("file", tuple(sorted(roots[chosen[0]])))
        return fitting_import(file for root in chosen for file in roots[root])

    # -- By definitions ------------------------------------------------------------------------------------------------

    def _is_unknown(self, file: str) -> bool:
        """Return whether a file can define names that `definitions` does not contain."""
        known = self._definitions.get(file)
        return known is None or known.is_partial

    @cached_property
    def _by_name(self) -> Mapping[str, list[str]]:
        """Map each qualified name to the files that define it, and each `package.*` to the files of the package."""
        files_by_name: dict[str, list[str]] = {}
        for file, defined in sorted(self._definitions.items()):
            if defined.package:
                for name in (*defined.names, "*"):
                    files_by_name.setdefault(f"{defined.package}.{name}", []).append(file)
                if file.endswith(".kt"):
                    # In Java, a class of this name has the top-level functions of the Kotlin file.
                    stem = posixpath.basename(file).removesuffix(".kt")
                    files_by_name.setdefault(f"{defined.package}.{stem[:1].upper()}{stem[1:]}Kt", []).append(file)
        return files_by_name

    def _defining_files(self, path: str, target: str) -> Sequence[str]:
        """Return the files that define `target`, for an import in the file `path`.

        If no file defines it, return the files that define its longest possible prefix: `a.B` for `a.B.member`. If
        `target` ends with a star, return all files of the package.
        """
        own_definitions = self._definitions.get(path)
        prefixes = [""]
        if own_definitions is not None and path.endswith(".scala"):
            # In Scala, imports can be relative to an enclosing package.
            parts = own_definitions.package.split(".")
            prefixes = [f"{'.'.join(parts[:count])}." for count in range(len(parts), 0, -1)] + prefixes
        is_star = _is_star_import(target)
        names = target.split(".")[: -1 if is_star else None]
        for prefix in prefixes:
            if is_star and (files := self._by_name.get(f"{prefix}{'.'.join(names)}.*")):
                return files
            for count in range(len(names), 0, -1):
                if files := self._by_name.get(prefix + ".".join(names[:count])):
                    return files
        return ()

    def nearest_definitions(self, path: str, files: Sequence[str], *, is_package: bool = False) -> ResolvedImport:
        """Choose among `files`, all of which define the name that the file `path` uses.

        The first of these groups with files is chosen: files below the source root of `path`, other files of its
        module, the nearest files. If `is_package` is set, the name is a package, which several source roots of a module
        can contain. Then all files of the module are chosen first.
        """
        own_root = self._source_root(path)
        candidates = _usable_files(path, files)
        if not candidates:
            return EXTERNAL_IMPORT
        of_root = [file for file in candidates if self._source_root(file) == own_root]
        if not of_root and self._definitions[candidates[0]].package.partition(".")[0] in _PLATFORM_PACKAGES:
            return EXTERNAL_IMPORT
        of_module = [file for file in candidates if _is_same_module(parent_directory(path), self._source_root(file))]
        chosen = (of_module if is_package else []) or of_root or of_module or candidates
        if of_root or of_module or len({self._source_root(file) for file in candidates}) == 1:
            return ResolvedImport("exact", tuple(sorted(chosen)))
        return fitting_import(nearest_paths(parent_directory(path), chosen))

    def is_in_module(self, path: str, file: str) -> bool:
        """Return whether `file` is below the source root of `path`, or in another source set of its module."""
        root = self._source_root(file)
        return root == self._source_root(path) or _is_same_module(parent_directory(path), root)

    def _find_source_root(self, path: str) -> str:
        """Return the source root of a file. If its directory does not end with its package, return the directory."""
        directory = parent_directory(path)
        source_set = _FILE_IN_SOURCE_SET.match(directory)
        if source_set is not None:
            return source_set[1]
        known = self._definitions.get(path)
        package = "" if known is None else known.package.replace(".", "/")
        return f"/{directory}".removesuffix(f"/{package}").lstrip("/") if package else directory


def _is_star_import(target: str) -> bool:
    return target.endswith((".*", "._"))


def _usable_files(path: str, files: Iterable[str]) -> list[str]:
    """Return those of `files` that code in `path` can use. Main sources cannot use tests."""
    return list(files) if _is_test_file(path) else [file for file in files if not _is_test_file(file)]


def _is_test_file(path: str) -> bool:
    """Return whether a file belongs to tests.

    If the file is in a source set, the set's name decides, otherwise its path.
    """
    source_set = _FILE_IN_SOURCE_SET.match(parent_directory(path))
    return is_test_or_example(path) if source_set is None else _TEST_SOURCE_SET.search(source_set[2]) is not None


def _is_same_module(directory: str, root: str) -> bool:
    """Return whether the source root `root` belongs to the same module as `directory`."""
    match = _SOURCE_SET_DIRECTORY.match(root)
    return match is not None and directory.startswith(f"{match[1]}src/")


class _ScalaImports(JvmImports):
    """Imports can be relative to a package that encloses them."""

    depends_on_file = True


IMPORTS = {
    "java": partial(JvmImports, endings=(".java", ".kt", ".scala")),
    "kotlin": partial(JvmImports, endings=(".kt", ".java")),
    "scala": partial(_ScalaImports, endings=(".scala", ".java")),
}
