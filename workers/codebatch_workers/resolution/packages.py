"""package.json: the tree's own packages by name, and the files that a name in them stands for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

import msgspec

from codebatch_workers.resolution.documents import Document, mapping, read_json, string, strings
from codebatch_workers.resolution.tree import PathTree, ancestors, join, parent, relative_to
from codebatch_workers.resolution.tsconfig import best_match, bounded

PACKAGE = "package.json"
_PACKAGES_MAX = 20_000
_CONDITIONS_DEPTH_MAX = 16
_TARGETS_MAX = 64
_DEPENDENCIES = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
_LOCAL = ("workspace:", "file:", "link:", "portal:")
_MAIN_FIELDS = {True: ("types", "typings", "main", "module", "source"), False: ("main", "module", "source", "types")}


class NpmPackage(msgspec.Struct, frozen=True):
    """A directory with a package.json."""

    directory: str
    document: Document

    @property
    def name(self) -> str:
        """The package's name, empty where it has none."""
        return string(self.document.get("name")) or ""

    def targets(self, subpath: str, *, is_typed: bool) -> list[str]:
        """The paths that importing a subpath (empty: the package itself) may mean, the likeliest first."""
        exports = self.document.get("exports")
        if exports is not None:
            return self._below(self._exported(exports, f"./{subpath}" if subpath else "."))
        if subpath:
            return self._below([subpath])
        fields = (string(self.document.get(field)) for field in _MAIN_FIELDS[is_typed])
        return self._below([each for each in fields if each is not None])

    def imported(self, name: str) -> list[str]:
        """What `#name` stands for: paths of the tree and names of packages, the latter as they are."""
        found = _matched(mapping(self.document.get("imports")), name)
        return [*self._below([each for each in found if each.startswith(".")]), *(e for e in found if e[0] not in "./")]

    @property
    def has_exports(self) -> bool:
        """Whether the package says which of its files others may import."""
        return self.document.get("exports") is not None

    def depends_locally_on(self, name: str) -> bool:
        """Whether it says that a package it depends on lies in the same tree."""
        return any(self._version(section, name).startswith(_LOCAL) for section in _DEPENDENCIES)

    def depends_on(self, name: str) -> bool:
        """Whether it says that it depends on a package."""
        return any(self._version(section, name) for section in _DEPENDENCIES)

    def _version(self, section: str, name: str) -> str:
        return string(mapping(self.document.get(section)).get(name)) or ""

    def _exported(self, exports: object, key: str) -> list[str]:
        is_by_subpath = isinstance(exports, dict) and all(each.startswith(".") for each in exports)
        if is_by_subpath:
            return _matched(mapping(exports), key)
        return list(_leaves(exports)) if key == "." else []

    def _below(self, written: Sequence[str]) -> list[str]:
        return [place for each in written if (place := relative_to(self.directory, each)) is not None]


def _matched(table: Document, key: str) -> list[str]:
    match = best_match(bounded(table), key)
    if match is None:
        return []
    pattern, star = match
    return (
        [leaf.replace("*", star) for leaf in _leaves(table[pattern])] if "*" in pattern else [*_leaves(table[pattern])]
    )


def _leaves(value: object) -> Iterator[str]:
    """The targets below any conditions, in the order in which they stand."""
    pending = [(value, 0)]
    count = 0
    while pending and count < _TARGETS_MAX:
        each, depth = pending.pop()
        if isinstance(each, str) and each:
            count += 1
            yield each
        elif depth < _CONDITIONS_DEPTH_MAX:
            inner = list(each.values()) if isinstance(each, dict) else each if isinstance(each, list) else []
            pending.extend((one, depth + 1) for one in reversed(inner))


class NpmPackages:
    """The packages of a tree. Those below `node_modules` are found by their place alone."""

    def __init__(self, tree: PathTree) -> None:
        self._tree = tree
        self._read: dict[str, NpmPackage] = {}
        self._workspaces: dict[str, list[tuple[bool, re.Pattern[str]]]] = {}

    def at(self, directory: str) -> NpmPackage | None:
        """The package whose package.json stands in a directory."""
        file = join(directory, PACKAGE)
        if file not in self._tree.paths:
            return None
        if directory not in self._read:
            self._read[directory] = NpmPackage(directory, read_json(self._tree, file))
        return self._read[directory]

    def around(self, directory: str) -> NpmPackage | None:
        """The package that a directory belongs to."""
        file = self._tree.nearest_file(directory, PACKAGE)
        return None if file is None else self.at(parent(file))

    def named(self, name: str) -> Sequence[NpmPackage]:
        """The packages of the tree that have a name, by directory."""
        return self._by_name.get(name, ())

    @cached_property
    def _by_name(self) -> dict[str, list[NpmPackage]]:
        found: dict[str, list[NpmPackage]] = {}
        files = [file for file in self._tree.all_named(PACKAGE) if "node_modules" not in file.split("/")]
        for file in files[:_PACKAGES_MAX]:
            package = self.at(parent(file))
            if package is not None and package.name:
                found.setdefault(package.name, []).append(package)
        return found

    def is_linked(self, user: NpmPackage | None, package: NpmPackage) -> bool:
        """Whether a package manager would link one package of the tree to another, rather than fetch it."""
        if user is None:
            return False
        if user.directory == package.directory:
            return package.has_exports
        if user.depends_locally_on(package.name):
            return True
        return any(self._is_workspace(above, package.directory) for above in ancestors(user.directory))

    def _is_workspace(self, root: str, directory: str) -> bool:
        if root not in self._workspaces:
            self._workspaces[root] = self._read_workspaces(root)
        if root and not directory.startswith(f"{root}/"):
            return False
        below = directory[len(root) :].lstrip("/")
        is_in = False
        for wanted, pattern in self._workspaces[root]:
            if pattern.fullmatch(below):
                is_in = wanted
        return is_in

    def _read_workspaces(self, root: str) -> list[tuple[bool, re.Pattern[str]]]:
        package = self.at(root)
        if package is None:
            return []
        workspaces = package.document.get("workspaces")
        globs = strings(workspaces if isinstance(workspaces, list) else mapping(workspaces).get("packages"))
        return [(not glob.startswith("!"), _glob(glob.lstrip("!"))) for glob in globs[:_TARGETS_MAX]]


def _glob(pattern: str) -> re.Pattern[str]:
    """`*` is one component, `**` any number of them; of more than one star in a component the first counts.

    A pattern with more than two `**` matches nothing: each more would make the time to match it a power higher.
    """
    parts: list[str] = []
    if pattern.count("**") > 2:
        return re.compile(r"(?!)")
    for part in pattern.removeprefix("./").strip("/").split("/"):
        if part == "**":
            parts.append("(?:[^/]+/)*")
        else:
            before, star, after = part.partition("*")
            parts.append(f"{re.escape(before)}{'[^/]*' if star else ''}{re.escape(after)}/")
    whole = "".join(parts)
    return re.compile(whole[:-1] if whole.endswith("/") else f"{whole}[^/]+")
