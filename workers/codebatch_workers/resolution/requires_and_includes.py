"""Ruby, Lua, PHP and shells: imports of files by path. The base directories are known only at run time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from codebatch_workers.resolution.documents import as_strings, read_json, table_at
from codebatch_workers.resolution.tree import (
    EXTERNAL_IMPORT,
    PathTree,
    ResolvedImport,
    exact_import,
    fitting_import,
    is_test_or_example,
    iter_ancestors,
    join_path,
    likely_import,
    parent_directory,
    relative_to,
)

_COMPOSER_FILE = "composer.json"
_LUA_ROOT_NAMES = ("", "lua", "src", "lib")
_NAMESPACE_DIRECTORIES_MAX = 64


class ShellSources:
    """The resolution of `source` in shell scripts.

    A shell resolves the path from its working directory. The working directory is unknown here, so the directory of the
    script is used instead.
    """

    def __init__(self, tree: PathTree) -> None:
        self._tree = tree

    def resolve(self, path: str, target: str) -> ResolvedImport:
        """Resolve `target`, an import in the file `path`."""
        place = relative_to(parent_directory(path), target)
        return exact_import(place if place in self._tree.paths else None)


class RubyRequires:
    """The resolution of Ruby's `require` and `require_relative`.

    `require_relative` gives `./a`, which is resolved from the directory of the file. `require "a/b"` is resolved below
    the `lib` directory of a gem.
    """

    def __init__(self, tree: PathTree) -> None:
        self._tree = tree

    def resolve(self, path: str, target: str) -> ResolvedImport:
        """Resolve `target`, an import in the file `path`."""
        directory = parent_directory(path)
        if target.startswith("."):
            place = relative_to(directory, target)
            return EXTERNAL_IMPORT if place is None else exact_import(self._tree.first_existing((f"{place}.rb", place)))
        for above in iter_ancestors(directory):
            library = self._tree.first_existing((f"{join_path(above, 'lib')}/{target}.rb",))
            if library is not None:
                is_gem = any(file.endswith(".gemspec") for file in self._tree.files_in(above))
                return exact_import(library) if is_gem else fitting_import([library])
        named = target if target.endswith(".rb") else f"{target}.rb"
        if "/" not in target:
            return self._resolve_one_component(path, named)
        candidates = [
            file
            for file in self._tree.files_ending_with(named)
            if file[: len(file) - len(named)].rstrip("/").rpartition("/")[2] in ("", "lib", "app", "test", "spec")
        ]
        return likely_import(path, candidates)

    def _resolve_one_component(self, path: str, named: str) -> ResolvedImport:
        """Resolve a name of one component to a file in a directory above `path`, or to the main file of another gem."""
        places = ("", "test", "spec") if is_test_or_example(path) else ("",)
        for above in iter_ancestors(parent_directory(path)):
            file_above = self._tree.first_existing(join_path(join_path(above, place), named) for place in places)
            if file_above is not None:
                return likely_import(path, [file_above])
        gems = [
            file
            for file in self._tree.files_ending_with(f"lib/{named}")
            if any(
                file_in_gem.endswith(".gemspec")
                for file_in_gem in self._tree.files_in(parent_directory(parent_directory(file)))
            )
        ]
        return likely_import(path, gems)


class LuaRequires:
    """The resolution of Lua's `a.b` to the nearest `a/b.lua` or `a/b/init.lua`.

    A name of one component is mostly an installed library. So it is searched only in the directories above the
    importing file, and in their usual subdirectories. If a rockspec marks the root of a project, directories above this
    root are also searched, but directories below it are not.
    """

    def __init__(self, tree: PathTree) -> None:
        self._tree = tree

    def resolve(self, path: str, target: str) -> ResolvedImport:
        """Resolve `target`, an import in the file `path`."""
        named = target.replace(".", "/").strip("/")
        if not named:
            return EXTERNAL_IMPORT
        for root in self._search_directories(parent_directory(path)):
            file = self._tree.first_existing((f"{join_path(root, named)}.lua", f"{join_path(root, named)}/init.lua"))
            if file is not None:
                return likely_import(path, [file])
        if "/" not in named:
            return EXTERNAL_IMPORT
        return likely_import(
            path, self._tree.files_ending_with(f"{named}.lua") or self._tree.files_ending_with(f"{named}/init.lua")
        )

    def _search_directories(self, directory: str) -> Iterator[str]:
        """Yield the directories in which a module is searched, nearest first.

        They are the directories above `directory`, from the nearest one with a rockspec on, and usual subdirectories of
        each.
        """
        above = list(iter_ancestors(directory))
        projects = [directory_above for directory_above in above if self._has_rockspec(directory_above)]
        for directory_above in above[above.index(projects[0]) :] if projects else above:
            yield from (join_path(directory_above, below) for below in _LUA_ROOT_NAMES)

    def _has_rockspec(self, directory: str) -> bool:
        return any(file.endswith(".rockspec") for file in self._tree.files_in(directory))


class PhpImports:
    r"""The resolution of PHP's imports.

    `./a.php` is resolved from the directory of the file (`__DIR__`), `a.php` from directories above, and the name `A\B`
    by autoloading.
    """

    def __init__(self, tree: PathTree) -> None:
        self._tree = tree

    def resolve(self, path: str, target: str) -> ResolvedImport:
        """Resolve `target`, an import in the file `path`."""
        directory = parent_directory(path)
        if target.endswith((".php", ".inc")) or "/" in target:
            place = relative_to(directory, target)
            if place in self._tree.paths:
                return exact_import(place) if target.startswith(".") else fitting_import([place or ""])
            return EXTERNAL_IMPORT if target.startswith(".") else self._resolve_included(path, target)
        autoloaded = self.autoloaded_file(target)
        if autoloaded is not None:
            return exact_import(autoloaded)
        names = target.strip("\\").split("\\")
        # If no autoloaded prefix begins with the first name of this namespace, the namespace belongs to an external
        # package.
        if self._directories_by_namespace and not any(
            prefix.partition("\\")[0] in ("", names[0]) for prefix in self._directories_by_namespace
        ):
            return EXTERNAL_IMPORT
        for start in range(len(names) - 1):
            candidates = self._tree.files_ending_with(f"{'/'.join(names[start:])}.php")
            if candidates:
                return likely_import(path, candidates)
        return EXTERNAL_IMPORT

    def autoloaded_file(self, name: str) -> str | None:
        """Return the file that autoloading reads to define the class `name`, or None."""
        names = name.strip("\\").split("\\")
        for count in range(len(names) - 1, -1, -1):
            subpath = "/".join(names[count:])
            places = self._directories_by_namespace.get("\\".join(names[:count]), ())
            file = self._tree.first_existing(f"{join_path(place, subpath)}.php" for place in places)
            if file is not None:
                return file
        return None

    def _resolve_included(self, path: str, target: str) -> ResolvedImport:
        """Resolve a relative path that PHP resolves from the directory of the script that was started.

        This script is unknown, so directories above `path` are tried, and then all files whose paths end with `target`.
        """
        for above in iter_ancestors(parent_directory(path)):
            place = relative_to(above, target)
            if place is not None and place in self._tree.paths:
                return fitting_import([place])
        ending = relative_to("", target)
        return (
            likely_import(path, self._tree.files_ending_with(ending)) if ending and "/" in ending else EXTERNAL_IMPORT
        )

    @cached_property
    def _directories_by_namespace(self) -> Mapping[str, Sequence[str]]:
        """The directories that composer.json files assign to each namespace (PSR-4), by namespace."""
        directories: dict[str, list[str]] = {}
        for file in self._tree.files_named(_COMPOSER_FILE):
            document = read_json(self._tree, file)
            for section in ("autoload", "autoload-dev"):
                for prefix, to in table_at(document, section, "psr-4").items():
                    places = [
                        relative_to(parent_directory(file), directory)
                        for directory in ([to] if isinstance(to, str) else as_strings(to))
                    ]
                    known = directories.setdefault(prefix.strip("\\"), [])
                    known.extend(place for place in places[:_NAMESPACE_DIRECTORIES_MAX] if place is not None)
        return {prefix: places[:_NAMESPACE_DIRECTORIES_MAX] for prefix, places in directories.items()}
