"""tsconfig.json and jsconfig.json: the options that determine what import paths mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

import msgspec
from msgspec.structs import replace

from codebatch_workers.resolution.documents import (
    JsonObject,
    as_mapping,
    as_nonempty_string,
    as_strings,
    read_json,
    table_at,
)
from codebatch_workers.resolution.tree import PathTree, join_path, parent_directory, relative_to

_CONFIGURATION_NAMES = ("tsconfig.json", "jsconfig.json")
# Options with which the compiler keeps imports that are used only as types, and their values.
_KEEPING_OPTIONS: Mapping[str, tuple[object, ...]] = {
    "verbatimModuleSyntax": (True,),
    "preserveValueImports": (True,),
    "importsNotUsedAsValues": ("preserve", "error"),
}
# The first constant is the maximum number of files in a chain of `extends`. The others limit the directories in one
# option, and the patterns with a star.
_EXTENDS_DEPTH_MAX = 32
_MAPPED_PATHS_MAX = 64
_STARRED_PATTERNS_MAX = 1_000


class CompilerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that determine what import paths mean. Directories are paths in the tree."""

    base_url: str | None = None
    # The replacements for each pattern, such as `@app/*`. A pattern has at most one star.
    paths: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    root_dirs: tuple[str, ...] = ()
    out_dir: str | None = None
    root_dir: str | None = None
    # Options that keep imports whose names are used only as types, and whether they do.
    kept_imports: Mapping[str, bool] = msgspec.field(default_factory=dict)

    @property
    def erases_imports(self) -> bool:
        """Whether the compiler erases imports whose names are used only as types."""
        return not any(self.kept_imports.values())


class CompilerConfigurations:
    """The compiler options that apply to directories. Each configuration file is read on first use.

    `find_package` returns the directory of the package with a given name, or None.
    """

    def __init__(self, tree: PathTree, find_package: Callable[[str], str | None]) -> None:
        self._tree = tree
        self._find_package = find_package
        self._read: dict[str, CompilerOptions] = {}

    def nearest_options(self, directory: str) -> CompilerOptions:
        """Return the options in the nearest configuration file, in `directory` or above it.

        If this file sets neither `paths` nor `baseUrl`, the files that it lists in `references` are tried. The first
        one in the same directory that sets either of them is used instead.
        """
        file = self._tree.nearest_file(directory, *_CONFIGURATION_NAMES)
        if file is None:
            return CompilerOptions()
        if file not in self._read:
            self._read[file] = self._load_options(file)
        return self._read[file]

    def _load_options(self, file: str) -> CompilerOptions:
        configuration, document = self._load_chain(file)
        references = document.get("references")
        others = []
        for reference in references if isinstance(references, list) else ():
            path = as_nonempty_string(as_mapping(reference).get("path"))
            other = self._referenced_file(parent_directory(file), path) if path is not None else None
            if other is not None and parent_directory(other) == parent_directory(file):
                others.append(self._load_chain(other)[0])
        chosen = next((each for each in (configuration, *others) if each.paths or each.base_url is not None), None)
        # One of the referenced files has the options of the source files, and it is not known which one.
        keeping = next((each.kept_imports for each in (configuration, *others) if not each.erases_imports), {})
        return replace(chosen or configuration, kept_imports=keeping)

    def _load_chain(self, file: str) -> tuple[CompilerOptions, JsonObject]:
        """Return the options of a file, combined with those of the files that it extends.

        Also return the file's content.
        """
        settings = read_json(self._tree, file)
        chain: list[tuple[str, JsonObject]] = []
        pending = [(file, settings)]
        visited = {file}
        while pending and len(visited) < _EXTENDS_DEPTH_MAX:
            current, document = pending.pop()
            chain.append((current, document))
            extended = document.get("extends")
            for written in [extended] if isinstance(extended, str) else as_strings(extended):
                other = self._referenced_file(parent_directory(current), written)
                if other is not None and other not in visited:
                    visited.add(other)
                    pending.append((other, read_json(self._tree, other)))
        configuration = CompilerOptions()
        for current, document in reversed(chain):
            configuration = _with_options(
                configuration, parent_directory(current), parent_directory(file), table_at(document, "compilerOptions")
            )
        return configuration, settings

    def _referenced_file(self, directory: str, written: str) -> str | None:
        """Return the configuration file that `written`, a value of `extends` or a reference, names, or None.

        `directory` is the directory of the file that contains the value.
        """
        if written.startswith("."):
            place = relative_to(directory, written)
        else:
            parts = written.split("/")
            count = 2 if written.startswith("@") else 1
            package = self._find_package("/".join(parts[:count]))
            place = None if package is None else join_path(package, "/".join(parts[count:]))
        if place is None:
            return None
        return self._tree.first_existing((place, f"{place}.json", join_path(place, _CONFIGURATION_NAMES[0])))


def _with_options(configuration: CompilerOptions, directory: str, leaf: str, options: JsonObject) -> CompilerOptions:
    """Return `configuration`, overridden by `options`, the options of one file in `directory`.

    `leaf` is the directory of the file with which the chain of `extends` begins. `${configDir}` in an option means this
    directory.
    """

    def resolve_path(written: object) -> str | None:
        text = as_nonempty_string(written)
        if text is None:
            return None
        if text.startswith("${configDir}"):
            return relative_to(leaf, text.removeprefix("${configDir}").lstrip("/"))
        return relative_to(directory, text)

    changed = configuration
    if "baseUrl" in options:
        changed = replace(changed, base_url=resolve_path(options["baseUrl"]))
    if "rootDirs" in options:
        changed = replace(changed, root_dirs=_resolved_places(resolve_path, as_strings(options["rootDirs"])))
    kept = {name: options[name] in values for name, values in _KEEPING_OPTIONS.items() if name in options}
    if kept:
        changed = replace(changed, kept_imports={**changed.kept_imports, **kept})
    if "outDir" in options:
        changed = replace(changed, out_dir=resolve_path(options["outDir"]))
    if "rootDir" in options:
        changed = replace(changed, root_dir=resolve_path(options["rootDir"]))
    if "paths" in options:
        base = changed.base_url if changed.base_url is not None else directory

        def resolve_substitution(written: object) -> str | None:
            text = as_nonempty_string(written)
            if text is None or text.startswith("${configDir}"):
                return resolve_path(text)
            return relative_to(base, text)

        paths = as_mapping(options["paths"])
        changed = replace(
            changed,
            paths={
                pattern: _resolved_places(resolve_substitution, as_strings(to))
                for pattern, to in limit_starred(paths).items()
            },
        )
    return changed


def _resolved_places(place: Callable[[object], str | None], written: Sequence[str]) -> tuple[str, ...]:
    return tuple(resolved for text in written[:_MAPPED_PATHS_MAX] if (resolved := place(text)) is not None)


def _match_star(pattern: str, text: str) -> str | None:
    """Return the text that the star of a pattern matches, or None if the pattern does not match `text`."""
    before, _, after = pattern.partition("*")
    fits = len(text) >= len(before) + len(after) and text.startswith(before) and text.endswith(after)
    return text[len(before) : len(text) - len(after)] if fits else None


def limit_starred(table: JsonObject) -> JsonObject:
    """Return a table of patterns with at most _STARRED_MAX starred patterns, because a search tries each of these."""
    starred = list(islice((pattern for pattern in table if "*" in pattern), _STARRED_PATTERNS_MAX))
    return {pattern: table[pattern] for pattern in [*starred, *(pattern for pattern in table if "*" not in pattern)]}


def best_match(patterns: Mapping[str, object], text: str) -> tuple[str, str] | None:
    """Return the best pattern for a text, and the text that the pattern's star matches. Return None if none matches.

    A pattern without a star is best. Among patterns with a star, the one with the longest text before the star is best.
    """
    if text in patterns and "*" not in text:
        return text, ""
    matches = [
        (pattern, star) for pattern in patterns if "*" in pattern and (star := _match_star(pattern, text)) is not None
    ]
    return max(matches, key=lambda match: (match[0].find("*"), match[0]), default=None)
