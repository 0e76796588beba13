"""Ruby, Lua, PHP, shells: files that are named as files, below directories that only a running program knows."""

from __future__ import annotations

from functools import cached_property

from codebatch_workers.resolution.documents import Document, at, read_json, string, strings
from codebatch_workers.resolution.tree import (
    EXTERNAL,
    Resolved,
    Tree,
    ancestors,
    exact,
    fitting,
    join,
    nearest,
    parent,
    relative_to,
)

_COMPOSER = "composer.json"


class ShellSources:
    """Resolves the file that `source` names. The shell looks in its own directory, which need not be the script's."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def resolve(self, path: str, target: str) -> Resolved:
        """Where the target leads from a file."""
        place = relative_to(parent(path), target)
        return exact(place if place in self._tree.paths else None)


class RubyRequires:
    """Resolves `./a` from the file's directory (`require_relative`), and `a/b` below the `lib` of a gem."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def resolve(self, path: str, target: str) -> Resolved:
        """Where the target leads from a file."""
        directory = parent(path)
        if target.startswith("."):
            place = relative_to(directory, target)
            return EXTERNAL if place is None else exact(self._tree.first((f"{place}.rb", place)))
        for above in ancestors(directory):
            found = self._tree.first((f"{join(above, 'lib')}/{target}.rb",))
            if found is not None:
                is_gem = any(file.endswith(".gemspec") for file in self._tree.files_in(above))
                return exact(found) if is_gem else fitting([found])
        found_elsewhere = [
            file
            for file in self._tree.ending_with(target if target.endswith(".rb") else f"{target}.rb")
            if file[: len(file) - len(target) - 3].rstrip("/").rpartition("/")[2] in ("", "lib", "app", "test", "spec")
        ]
        return fitting(nearest(directory, found_elsewhere))


class LuaRequires:
    """Resolves `a.b` to the nearest `a/b.lua` or `a/b/init.lua`."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def resolve(self, path: str, target: str) -> Resolved:
        """Where the target leads from a file."""
        named = target.replace(".", "/").strip("/")
        if not named:
            return EXTERNAL
        found = self._tree.ending_with(f"{named}.lua") or self._tree.ending_with(f"{named}/init.lua")
        return fitting(nearest(parent(path), found))


class PhpImports:
    r"""Resolves `./a.php` from the file's directory (`__DIR__`), `a.php`, and `A\B` by Composer's autoloading."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def resolve(self, path: str, target: str) -> Resolved:
        """Where the target leads from a file."""
        directory = parent(path)
        if target.endswith((".php", ".inc")) or "/" in target:
            place = relative_to(directory, target)
            if place in self._tree.paths:
                return exact(place) if target.startswith(".") else fitting([place or ""])
            return EXTERNAL if target.startswith(".") else fitting(nearest(directory, self._tree.ending_with(target)))
        names = target.strip("\\").split("\\")
        for prefix, place in self._prefixes:
            if names[: len(prefix)] == list(prefix) and len(names) > len(prefix):
                file = f"{join(place, '/'.join(names[len(prefix) :]))}.php"
                if file in self._tree.paths:
                    return exact(file)
        for start in range(len(names) - 1):
            found = self._tree.ending_with(f"{'/'.join(names[start:])}.php")
            if found:
                return fitting(nearest(directory, found))
        return EXTERNAL

    @cached_property
    def _prefixes(self) -> list[tuple[tuple[str, ...], str]]:
        """The namespaces that composer.json files give directories (PSR-4), the longest first."""
        found = []
        for file in self._tree.all_named(_COMPOSER):
            document = read_json(self._tree, file)
            for section in ("autoload", "autoload-dev"):
                for prefix, places in _directories(at(document, section, "psr-4")):
                    for written in places:
                        place = relative_to(parent(file), written)
                        if place is not None:
                            found.append((tuple(part for part in prefix.split("\\") if part), place))
        return sorted(found, key=lambda each: (-len(each[0]), each))


def _directories(table: Document) -> list[tuple[str, list[str]]]:
    return [(prefix, [single] if (single := string(to)) else list(strings(to))) for prefix, to in table.items()]
