"""Ruby, Lua, PHP, shells: files that are named as files, below directories that only a running program knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from codebatch_workers.resolution.documents import at, read_json, strings
from codebatch_workers.resolution.tree import (
    EXTERNAL,
    PathTree,
    Resolved,
    ancestors,
    exact,
    fitting,
    is_secondary,
    join,
    likely,
    parent,
    relative_to,
)

_COMPOSER = "composer.json"
_LUA_ROOTS = ("", "lua", "src", "lib")
_PLACES_MAX = 64


class ShellSources:
    """Resolves the file that `source` names. The shell looks in its own directory, which need not be the script's."""

    def __init__(self, tree: PathTree) -> None:
        self._tree = tree

    def resolve(self, path: str, target: str) -> Resolved:
        """Where the target leads from a file."""
        place = relative_to(parent(path), target)
        return exact(place if place in self._tree.paths else None)


class RubyRequires:
    """Resolves `./a` from the file's directory (`require_relative`), and `a/b` below the `lib` of a gem."""

    def __init__(self, tree: PathTree) -> None:
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
        named = target if target.endswith(".rb") else f"{target}.rb"
        if "/" not in target:
            return self._of_one_component(path, named)
        found_elsewhere = [
            file
            for file in self._tree.ending_with(named)
            if file[: len(file) - len(named)].rstrip("/").rpartition("/")[2] in ("", "lib", "app", "test", "spec")
        ]
        return likely(path, found_elsewhere)

    def _of_one_component(self, path: str, named: str) -> Resolved:
        """Return where a name of one component leads: to a directory above, or to what another gem is named after."""
        places = ("", "test", "spec") if is_secondary(path) else ("",)
        for above in ancestors(parent(path)):
            found = self._tree.first(join(join(above, place), named) for place in places)
            if found is not None:
                return likely(path, [found])
        gems = [
            file
            for file in self._tree.ending_with(f"lib/{named}")
            if any(each.endswith(".gemspec") for each in self._tree.files_in(parent(parent(file))))
        ]
        return likely(path, gems)


class LuaRequires:
    """Resolves `a.b` to the nearest `a/b.lua` or `a/b/init.lua`.

    A name of one component, as most libraries have, is looked for in the directories where Lua is told to look: those
    above the file and the usual ones below these. If a rockspec says where the project begins, no directory below that
    place is one of them.
    """

    def __init__(self, tree: PathTree) -> None:
        self._tree = tree

    def resolve(self, path: str, target: str) -> Resolved:
        """Where the target leads from a file."""
        named = target.replace(".", "/").strip("/")
        if not named:
            return EXTERNAL
        for root in self._roots(parent(path)):
            found = self._tree.first((f"{join(root, named)}.lua", f"{join(root, named)}/init.lua"))
            if found is not None:
                return likely(path, [found])
        if "/" not in named:
            return EXTERNAL
        return likely(path, self._tree.ending_with(f"{named}.lua") or self._tree.ending_with(f"{named}/init.lua"))

    def _roots(self, directory: str) -> Iterator[str]:
        """Yield the directories above a file below which modules are looked for, the nearest first."""
        above = list(ancestors(directory))
        projects = [each for each in above if self._has_rockspec(each)]
        for each in above[above.index(projects[0]) :] if projects else above:
            yield from (join(each, below) for below in _LUA_ROOTS)

    def _has_rockspec(self, directory: str) -> bool:
        return any(file.endswith(".rockspec") for file in self._tree.files_in(directory))


class PhpImports:
    r"""Resolves `./a.php` from the file's directory (`__DIR__`), `a.php`, and `A\B` by Composer's autoloading."""

    def __init__(self, tree: PathTree) -> None:
        self._tree = tree

    def resolve(self, path: str, target: str) -> Resolved:
        """Where the target leads from a file."""
        directory = parent(path)
        if target.endswith((".php", ".inc")) or "/" in target:
            place = relative_to(directory, target)
            if place in self._tree.paths:
                return exact(place) if target.startswith(".") else fitting([place or ""])
            return EXTERNAL if target.startswith(".") else self._included(path, target)
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
                return likely(path, found)
        return EXTERNAL

    def _included(self, path: str, target: str) -> Resolved:
        """Return where a relative name leads that is not beside the file: PHP starts from the script that is run."""
        for above in ancestors(parent(path)):
            place = relative_to(above, target)
            if place is not None and place in self._tree.paths:
                return fitting([place])
        ending = relative_to("", target)
        return likely(path, self._tree.ending_with(ending)) if ending and "/" in ending else EXTERNAL

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
