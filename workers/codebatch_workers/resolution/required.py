"""Ruby, Lua, PHP, shells: files that are named as files, below directories that only a running program knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from codebatch_workers.resolution.documents import at, read_json, strings
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
_PLACES_MAX = 64


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
        for count in range(len(names) - 1, -1, -1):
            rest = "/".join(names[count:])
            places = self._places.get("\\".join(names[:count]), ())
            found_there = self._tree.first(f"{join(place, rest)}.php" for place in places)
            if found_there is not None:
                return exact(found_there)
        # A namespace of which the tree has no part is another's.
        if self._places and not any(prefix.partition("\\")[0] in ("", names[0]) for prefix in self._places):
            return EXTERNAL
        for start in range(len(names) - 1):
            found = self._tree.ending_with(f"{'/'.join(names[start:])}.php")
            if found:
                return fitting(nearest(directory, found))
        return EXTERNAL

    @cached_property
    def _places(self) -> Mapping[str, Sequence[str]]:
        """The directories that composer.json files give to namespaces (PSR-4)."""
        found: dict[str, list[str]] = {}
        for file in self._tree.all_named(_COMPOSER):
            document = read_json(self._tree, file)
            for section in ("autoload", "autoload-dev"):
                for prefix, to in at(document, section, "psr-4").items():
                    places = [
                        relative_to(parent(file), each) for each in ([to] if isinstance(to, str) else strings(to))
                    ]
                    known = found.setdefault(prefix.strip("\\"), [])
                    known.extend(place for place in places[:_PLACES_MAX] if place is not None)
        return {prefix: places[:_PLACES_MAX] for prefix, places in found.items()}
