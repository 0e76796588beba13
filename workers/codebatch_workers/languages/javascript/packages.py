"""package.json: the packages of the tree by name, and the files that import paths within a package mean."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

import msgspec

from codebatch_workers.languages.javascript.tsconfig import best_match, limit_starred
from codebatch_workers.resolution.documents import JsonObject, as_mapping, as_nonempty_string, as_strings, read_json
from codebatch_workers.resolution.tree import PathTree, iter_ancestors, join_path, parent_directory, relative_to

PACKAGE_FILE = "package.json"
_PACKAGES_MAX = 20_000
_EXPORT_DEPTH_MAX = 16
_EXPORT_TARGETS_MAX = 64
_DEPENDENCY_SECTIONS = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
_LOCAL_VERSION_PREFIXES = ("workspace:", "file:", "link:", "portal:")
_MAIN_FIELDS = {True: ("types", "typings", "main", "module", "source"), False: ("main", "module", "source", "types")}


class NpmPackage(msgspec.Struct, frozen=True):
    """A directory with a package.json, and the content of this file."""

    directory: str
    document: JsonObject

    @property
    def name(self) -> str:
        """The name of the package, or an empty text."""
        return as_nonempty_string(self.document.get("name")) or ""

    def export_targets(self, subpath: str, *, is_typed: bool) -> list[str]:
        """Return the paths in the tree that an import of `subpath` from this package can mean, most likely first.

        An empty subpath means the package itself. If `is_typed` is set, files with type declarations are more likely.
        """
        exports = self.document.get("exports")
        if exports is not None:
            return self._in_package(self._exported_targets(exports, f"./{subpath}" if subpath else "."))
        if subpath:
            return self._in_package([subpath])
        fields = (as_nonempty_string(self.document.get(field)) for field in _MAIN_FIELDS[is_typed])
        return self._in_package([target for target in fields if target is not None])

    def import_targets(self, name: str) -> list[str]:
        """Return the targets of the import `#name` according to `imports` of this package.json.

        Paths in the tree are first, then names of other packages.
        """
        targets = _match_targets(as_mapping(self.document.get("imports")), name)
        return [
            *self._in_package([target for target in targets if target.startswith(".")]),
            *(target for target in targets if target[0] not in "./"),
        ]

    @property
    def has_exports(self) -> bool:
        """Whether package.json has `exports`, the list of files that other packages can import."""
        return self.document.get("exports") is not None

    def depends_locally_on(self, name: str) -> bool:
        """Return whether this package.json requires the package `name` from the same tree, as with `workspace:`."""
        return any(
            self._dependency_version(section, name).startswith(_LOCAL_VERSION_PREFIXES)
            for section in _DEPENDENCY_SECTIONS
        )

    def depends_on(self, name: str) -> bool:
        """Return whether the package declares a dependency on `name`."""
        return any(self._dependency_version(section, name) for section in _DEPENDENCY_SECTIONS)

    def _dependency_version(self, section: str, name: str) -> str:
        return as_nonempty_string(as_mapping(self.document.get(section)).get(name)) or ""

    def _exported_targets(self, exports: object, key: str) -> list[str]:
        is_by_subpath = isinstance(exports, dict) and all(subpath.startswith(".") for subpath in exports)
        if is_by_subpath:
            return _match_targets(as_mapping(exports), key)
        return list(_iter_targets(exports)) if key == "." else []

    def _in_package(self, written: Sequence[str]) -> list[str]:
        return [place for target in written if (place := relative_to(self.directory, target)) is not None]


def _match_targets(table: JsonObject, key: str) -> list[str]:
    match = best_match(limit_starred(table), key)
    if match is None:
        return []
    pattern, star = match
    return (
        [leaf.replace("*", star) for leaf in _iter_targets(table[pattern])]
        if "*" in pattern
        else [*_iter_targets(table[pattern])]
    )


def _iter_targets(value: object) -> Iterator[str]:
    """Yield the texts in a table of conditions, such as `{"import": "./a.mjs", "default": "./a.js"}`, in text order.

    At most _TARGETS_MAX texts are yielded.
    """
    pending = [(value, 0)]
    count = 0
    while pending and count < _EXPORT_TARGETS_MAX:
        node, depth = pending.pop()
        if isinstance(node, str) and node:
            count += 1
            yield node
        elif depth < _EXPORT_DEPTH_MAX:
            inner = list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else []
            pending.extend((child, depth + 1) for child in reversed(inner))


class NpmPackages:
    """The packages of a tree. Packages below `node_modules` are found only by path, not by name."""

    def __init__(self, tree: PathTree) -> None:
        self._tree = tree
        self._read: dict[str, NpmPackage] = {}
        self._workspaces: dict[str, list[tuple[bool, re.Pattern[str]]]] = {}

    def package_in(self, directory: str) -> NpmPackage | None:
        """Return the package whose package.json is in `directory`, or None."""
        file = join_path(directory, PACKAGE_FILE)
        if file not in self._tree.paths:
            return None
        if directory not in self._read:
            self._read[directory] = NpmPackage(directory, read_json(self._tree, file))
        return self._read[directory]

    def enclosing_package(self, directory: str) -> NpmPackage | None:
        """Return the package in `directory`, or else in the nearest directory above it that has a package, or None."""
        file = self._tree.nearest_file(directory, PACKAGE_FILE)
        return None if file is None else self.package_in(parent_directory(file))

    def packages_named(self, name: str) -> Sequence[NpmPackage]:
        """Return the packages of the tree that have a name, sorted by directory."""
        return self._by_name.get(name, ())

    @cached_property
    def _by_name(self) -> dict[str, list[NpmPackage]]:
        packages: dict[str, list[NpmPackage]] = {}
        files = [file for file in self._tree.files_named(PACKAGE_FILE) if "node_modules" not in file.split("/")]
        for file in files[:_PACKAGES_MAX]:
            package = self.package_in(parent_directory(file))
            if package is not None and package.name:
                packages.setdefault(package.name, []).append(package)
        return packages

    def is_linked(self, user: NpmPackage | None, package: NpmPackage) -> bool:
        """Return whether a package manager would link `package` from the tree into `user`.

        Otherwise, it would download the package.
        """
        if user is None:
            return False
        if user.directory == package.directory:
            return package.has_exports
        if user.depends_locally_on(package.name):
            return True
        return any(self._is_workspace(above, package.directory) for above in iter_ancestors(user.directory))

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
        globs = as_strings(workspaces if isinstance(workspaces, list) else as_mapping(workspaces).get("packages"))
        return [(not glob.startswith("!"), _compile_glob(glob.lstrip("!"))) for glob in globs[:_EXPORT_TARGETS_MAX]]


def _compile_glob(pattern: str) -> re.Pattern[str]:
    """Compile a glob. `*` matches within a component, and `**` matches any number of components.

    Within a component, only the first star has a meaning. A pattern with more than two `**` matches nothing, because
    each `**` multiplies the time to match.
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
