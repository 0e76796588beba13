"""package.json: the packages of the tree by name, and the files that names in them mean."""

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
    """A directory with a package.json, and the content of this file."""

    directory: str
    document: Document

    @property
    def name(self) -> str:
        """The name of the package, or an empty text."""
        return string(self.document.get("name")) or ""

    def targets(self, subpath: str, *, is_typed: bool) -> list[str]:
        """Return the paths that an import of `subpath` in this package can mean, most likely first.

        An empty subpath means the package itself.
        """
        exports = self.document.get("exports")
        if exports is not None:
            return self._in_package(self._exported(exports, f"./{subpath}" if subpath else "."))
        if subpath:
            return self._in_package([subpath])
        fields = (string(self.document.get(field)) for field in _MAIN_FIELDS[is_typed])
        return self._in_package([target for target in fields if target is not None])

    def imported(self, name: str) -> list[str]:
        """Return the targets of `#name` in the package's `imports`: first paths in the tree, then names of packages."""
        targets = _match_targets(mapping(self.document.get("imports")), name)
        return [
            *self._in_package([target for target in targets if target.startswith(".")]),
            *(target for target in targets if target[0] not in "./"),
        ]

    @property
    def has_exports(self) -> bool:
        """Whether the package lists the files that others can import."""
        return self.document.get("exports") is not None

    def depends_locally_on(self, name: str) -> bool:
        """Return whether the package has a dependency on `name` that must be in the same tree, such as `workspace:`."""
        return any(self._version(section, name).startswith(_LOCAL) for section in _DEPENDENCIES)

    def depends_on(self, name: str) -> bool:
        """Return whether the package declares a dependency on `name`."""
        return any(self._version(section, name) for section in _DEPENDENCIES)

    def _version(self, section: str, name: str) -> str:
        return string(mapping(self.document.get(section)).get(name)) or ""

    def _exported(self, exports: object, key: str) -> list[str]:
        is_by_subpath = isinstance(exports, dict) and all(subpath.startswith(".") for subpath in exports)
        if is_by_subpath:
            return _match_targets(mapping(exports), key)
        return list(_leaves(exports)) if key == "." else []

    def _in_package(self, written: Sequence[str]) -> list[str]:
        return [place for target in written if (place := relative_to(self.directory, target)) is not None]


def _match_targets(table: Document, key: str) -> list[str]:
    match = best_match(bounded(table), key)
    if match is None:
        return []
    pattern, star = match
    return (
        [leaf.replace("*", star) for leaf in _leaves(table[pattern])] if "*" in pattern else [*_leaves(table[pattern])]
    )


def _leaves(value: object) -> Iterator[str]:
    """Yield the targets in a table of conditions, in text order."""
    pending = [(value, 0)]
    count = 0
    while pending and count < _TARGETS_MAX:
        node, depth = pending.pop()
        if isinstance(node, str) and node:
            count += 1
            yield node
        elif depth < _CONDITIONS_DEPTH_MAX:
            inner = list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else []
            pending.extend((child, depth + 1) for child in reversed(inner))


class NpmPackages:
    """The packages of a tree. Packages below `node_modules` are not found by name, only by path."""

    def __init__(self, tree: PathTree) -> None:
        self._tree = tree
        self._read: dict[str, NpmPackage] = {}
        self._workspaces: dict[str, list[tuple[bool, re.Pattern[str]]]] = {}

    def package_in(self, directory: str) -> NpmPackage | None:
        """Return the package whose package.json is in a directory, or None."""
        file = join(directory, PACKAGE)
        if file not in self._tree.paths:
            return None
        if directory not in self._read:
            self._read[directory] = NpmPackage(directory, read_json(self._tree, file))
        return self._read[directory]

    def enclosing_package(self, directory: str) -> NpmPackage | None:
        """Return the package whose directory is the nearest at or above a directory, or None."""
        file = self._tree.nearest_file(directory, PACKAGE)
        return None if file is None else self.package_in(parent(file))

    def packages_named(self, name: str) -> Sequence[NpmPackage]:
        """Return the packages of the tree that have a name, sorted by directory."""
        return self._by_name.get(name, ())

    @cached_property
    def _by_name(self) -> dict[str, list[NpmPackage]]:
        packages: dict[str, list[NpmPackage]] = {}
        files = [file for file in self._tree.all_named(PACKAGE) if "node_modules" not in file.split("/")]
        for file in files[:_PACKAGES_MAX]:
            package = self.package_in(parent(file))
            if package is not None and package.name:
                packages.setdefault(package.name, []).append(package)
        return packages

    def is_linked(self, user: NpmPackage | None, package: NpmPackage) -> bool:
        """Return whether a package manager would link `package` from the tree into `user`, and not download it."""
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
        for is_included, pattern in self._workspaces[root]:
            if pattern.fullmatch(below):
                is_in = is_included
        return is_in

    def _read_workspaces(self, root: str) -> list[tuple[bool, re.Pattern[str]]]:
        package = self.package_in(root)
        if package is None:
            return []
        workspaces = package.document.get("workspaces")
        globs = strings(workspaces if isinstance(workspaces, list) else mapping(workspaces).get("packages"))
        return [(not glob.startswith("!"), _glob(glob.lstrip("!"))) for glob in globs[:_TARGETS_MAX]]


def _glob(pattern: str) -> re.Pattern[str]:
    """Compile a glob. `*` matches within a component, `**` matches any number of components.

    Only the first star of a component counts. A pattern with more than two `**` matches nothing, because each further
    one multiplies the matching time.
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
    joined = "".join(parts)
    return re.compile(joined[:-1] if joined.endswith("/") else f"{joined}[^/]+")
