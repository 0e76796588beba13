"""tsconfig.json and jsconfig.json: what they say about where modules are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

import msgspec
from msgspec.structs import replace

from codebatch_workers.resolution.documents import Document, at, mapping, read_json, string, strings
from codebatch_workers.resolution.tree import PathTree, join, parent, relative_to

_NAMES = ("tsconfig.json", "jsconfig.json")
# A chain of `extends` is followed so far, and so many files of it are read.
_EXTENDS_MAX = 32
_PLACES_MAX = 64
_STARRED_MAX = 1_000


class CompilerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that say where modules are; directories are paths of the tree."""

    base_url: str | None = None
    # By patterns with at most one star, the paths that they stand for.
    paths: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    root_dirs: tuple[str, ...] = ()
    out_dir: str | None = None
    root_dir: str | None = None


class CompilerConfigurations:
    """Finds and reads the configuration of each directory. `find_package` gives the directory of a package by name."""

    def __init__(self, tree: PathTree, find_package: Callable[[str], str | None]) -> None:
        self._tree = tree
        self._find_package = find_package
        self._read: dict[str, CompilerOptions] = {}

    def of(self, directory: str) -> CompilerOptions:
        """The configuration of the nearest file above; of one that only refers to others, of the first with paths."""
        file = self._tree.nearest_file(directory, *_NAMES)
        if file is None:
            return CompilerOptions()
        if file not in self._read:
            self._read[file] = self._load(file)
        return self._read[file]

    def _load(self, file: str) -> CompilerOptions:
        configuration, document = self._extended(file)
        if configuration.paths or configuration.base_url is not None:
            return configuration
        references = document.get("references")
        for each in references if isinstance(references, list) else ():
            named = string(mapping(each).get("path"))
            other = self._file(parent(file), named) if named is not None else None
            if other is not None and parent(other) == parent(file):
                referred, _ = self._extended(other)
                if referred.paths or referred.base_url is not None:
                    return referred
        return configuration

    def _extended(self, file: str) -> tuple[CompilerOptions, Document]:
        """The options of a file on top of those that it extends, later ones on earlier ones; and what it holds."""
        own = read_json(self._tree, file)
        chain: list[tuple[str, Document]] = []
        pending = [(file, own)]
        seen = {file}
        while pending and len(seen) < _EXTENDS_MAX:
            here, document = pending.pop()
            chain.append((here, document))
            extended = document.get("extends")
            for written in [extended] if isinstance(extended, str) else strings(extended):
                other = self._file(parent(here), written)
                if other is not None and other not in seen:
                    seen.add(other)
                    pending.append((other, read_json(self._tree, other)))
        configuration = CompilerOptions()
        for here, document in reversed(chain):
            configuration = _with_options(configuration, parent(here), parent(file), at(document, "compilerOptions"))
        return configuration, own

    def _file(self, directory: str, written: str) -> str | None:
        """The configuration file that `extends` or a reference names."""
        if written.startswith("."):
            place = relative_to(directory, written)
        else:
            parts = written.split("/")
            count = 2 if written.startswith("@") else 1
            package = self._find_package("/".join(parts[:count]))
            place = None if package is None else join(package, "/".join(parts[count:]))
        if place is None:
            return None
        return self._tree.first((place, f"{place}.json", join(place, _NAMES[0])))


def _with_options(configuration: CompilerOptions, directory: str, leaf: str, options: Document) -> CompilerOptions:
    """A configuration with the options of one file on top. `leaf` is the directory of the file that extends it."""

    def place(written: object) -> str | None:
        text = string(written)
        if text is None:
            return None
        if text.startswith("${configDir}"):
            return relative_to(leaf, text.removeprefix("${configDir}").lstrip("/"))
        return relative_to(directory, text)

    changed = configuration
    if "baseUrl" in options:
        changed = replace(changed, base_url=place(options["baseUrl"]))
    if "rootDirs" in options:
        changed = replace(changed, root_dirs=_places(place, strings(options["rootDirs"])))
    if "outDir" in options:
        changed = replace(changed, out_dir=place(options["outDir"]))
    if "rootDir" in options:
        changed = replace(changed, root_dir=place(options["rootDir"]))
    if "paths" in options:
        base = changed.base_url if changed.base_url is not None else directory

        def substitution(written: object) -> str | None:
            text = string(written)
            if text is None or text.startswith("${configDir}"):
                return place(text)
            return relative_to(base, text)

        paths = mapping(options["paths"])
        changed = replace(
            changed, paths={pattern: _places(substitution, strings(to)) for pattern, to in bounded(paths).items()}
        )
    return changed


def _places(place: Callable[[object], str | None], written: Sequence[str]) -> tuple[str, ...]:
    return tuple(found for each in written[:_PLACES_MAX] if (found := place(each)) is not None)


def _match_star(pattern: str, text: str) -> str | None:
    """What the star of a pattern stands for in a text; None where it does not match."""
    before, _, after = pattern.partition("*")
    fits = len(text) >= len(before) + len(after) and text.startswith(before) and text.endswith(after)
    return text[len(before) : len(text) - len(after)] if fits else None


def bounded(table: Document) -> Document:
    """A table of patterns with no more of them that have a star than one can be held against one by one."""
    starred = list(islice((pattern for pattern in table if "*" in pattern), _STARRED_MAX))
    return {pattern: table[pattern] for pattern in [*starred, *(each for each in table if "*" not in each)]}


def best_match(patterns: Mapping[str, object], text: str) -> tuple[str, str] | None:
    """The pattern that a text matches best, without a star before the longest before its star, and what that is."""
    if text in patterns and "*" not in text:
        return text, ""
    found = [
        (pattern, star) for pattern in patterns if "*" in pattern and (star := _match_star(pattern, text)) is not None
    ]
    return max(found, key=lambda match: (match[0].find("*"), match[0]), default=None)
