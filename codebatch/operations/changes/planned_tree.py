"""A tree of a git repository, as it is after changes that are planned."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Container, Mapping
from typing import NamedTuple

from codebatch.git.new_commits import LINK_MODE, SUBMODULE_MODE, TreeBlob
from codebatch.model.digest import Digest
from codebatch.model.entry import display_path
from codebatch.operations.changes.judgement import PathRefused


class NewVersion(NamedTuple):
    """The planned version of a file: its mode in octal digits, and its content."""

    mode: str
    content: Digest


class PlannedTree:
    """The files of a tree in git, with planned changes. Paths are relative to the directory `prefix` of the tree.

    `prefix` is empty or ends with a slash. `name` names the tree in reasons.
    """

    def __init__(self, tree: Mapping[bytes, TreeBlob], name: str, prefix: bytes = b"") -> None:
        self.name = name
        self.prefix = prefix
        self._tree = tree
        self._new: dict[bytes, NewVersion | None] = {}
        # The number of planned files below each directory.
        self._new_below: Counter[bytes] = Counter()
        self._sorted_paths: list[bytes] | None = None

    def copy(self) -> PlannedTree:
        """Return a tree whose changes do not affect this one."""
        copy = PlannedTree(self._tree, self.name, self.prefix)
        copy._new = dict(self._new)
        copy._new_below = self._new_below.copy()
        copy._sorted_paths = self._sorted_paths
        return copy

    def find(self, path: bytes) -> TreeBlob | NewVersion | None:
        """Return the file, link or submodule at a path, or None."""
        full = self.prefix + path
        return self._new[full] if full in self._new else self._tree.get(full)

    def put(self, path: bytes, version: NewVersion | None) -> None:
        """Plan the version of a file. None: it is deleted."""
        path = self.prefix + path
        change = (version is not None) - (self._new.get(path) is not None)
        self._new[path] = version
        while change and (path := path.rpartition(b"/")[0]):
            self._new_below[path] += change

    def exists(self, path: bytes) -> bool:
        """Return whether a work tree of this tree has an entry at a path: a file or directory, or `.git` at its top."""
        return (path == b".git" and not self.prefix) or self.find(path) is not None or self._is_directory(path)

    def check_free(
        self, path: bytes, above: bytes = b"", files: Container[bytes] = (), directories: Container[bytes] = ()
    ) -> None:
        """Raise PathRefused if there is an entry at a path, or a file above it.

        The directory `above` exists: neither it nor those above it are examined. Files at the paths `files`,
        and directories at the paths `directories`, do not count.
        """
        if self.find(path) is not None:
            raise PathRefused(f"it already exists in {self.name}")
        place = path
        while (place := place.rpartition(b"/")[0]) and len(place) > len(above):
            entry = self.find(place)
            if entry is not None and place not in files:
                raise PathRefused(f"{display_path(place)} is {kind_name(entry.mode)} in {self.name}")
        if path not in directories and self._is_directory(path):
            raise PathRefused(f"it is a directory in {self.name}")

    def check_submodules(self, path: bytes) -> None:
        """Raise PathRefused if a path is in a submodule."""
        while path := path.rpartition(b"/")[0]:
            entry = self.find(path)
            if entry is not None and entry.mode == SUBMODULE_MODE:
                raise PathRefused(f"it is in the submodule {display_path(path)}")

    def _is_directory(self, path: bytes) -> bool:
        below = self.prefix + path + b"/"
        if self._sorted_paths is None:
            self._sorted_paths = sorted(self._tree)
        paths = self._sorted_paths
        for place in range(bisect.bisect_left(paths, below), len(paths)):
            if not paths[place].startswith(below):
                break
            if self._new.get(paths[place], True) is not None:
                return True
        return self._new_below[below[:-1]] > 0


def kind_name(mode: str) -> str:
    """Return what an entry of a tree with a mode is, for people."""
    return {SUBMODULE_MODE: "a submodule", LINK_MODE: "a symbolic link"}.get(mode, "a file")
