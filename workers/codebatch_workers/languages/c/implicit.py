"""C and C++: a function that a header declares is defined in another file. The linker finds it by its external name.

A function is `exact` if one file of the tree defines it with external linkage, and an included header declares it. A
header with a class leads to the files that define members of the class.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from codebatch.model.record import Edge, Symbol
from codebatch_workers.languages.c.header_files import is_header
from codebatch_workers.resolution.implicit_rule import ImplicitImport, ImplicitImportRule, found_in
from codebatch_workers.resolution.import_rule import ImportContext
from codebatch_workers.resolution.tree import (
    FITTING_FILES_MAX,
    nearest_paths,
    parent_directory,
    usable_files,
)

_CLASS_TYPES = frozenset({"class", "struct", "union"})
_MEMBER_TYPES = frozenset({"constructor", "field", "method"})
# Directories with code of others, or with substitutes for functions that a system may lack.
_UNCERTAIN_DIRECTORIES = frozenset(
    {"compat", "contrib", "deps", "external", "extern", "port", "third_party", "thirdparty", "vendor"}
)


class CExternalNames(ImplicitImportRule):
    """The functions and variables with external linkage that the C and C++ files of a tree define."""

    needs_declarations = True

    def __init__(self, context: ImportContext) -> None:
        self._definitions: dict[str, list[str]] = {}
        # Definitions that precede an external name: macros, and functions in headers.
        self._hiding: dict[str, set[str]] = {}
        self._declarations: dict[str, list[str]] = {}
        self._classes: dict[str, list[str]] = {}
        self._members: dict[str, set[str]] = {}
        self._user: _IncludingFile | None = None

    def add_definitions(self, path: str, language: str, symbols: Sequence[Symbol], *, is_partial: bool) -> None:
        in_header = is_header(path.encode())
        classes = {symbol.qualified for symbol in symbols if symbol.symbol_type in _CLASS_TYPES}
        for name in classes if in_header else ():
            self._classes.setdefault(name, []).append(path)
        for symbol in symbols:
            kind = symbol.symbol_type
            if kind == "macro" or (in_header and kind in ("function", "variable")):
                self._hiding.setdefault(symbol.name, set()).add(path)
            elif kind in _MEMBER_TYPES and symbol.scope and symbol.scope not in classes and not in_header:
                self._members.setdefault(symbol.scope, set()).add(path)
            elif kind in ("function", "variable") and symbol.visibility != "private" and symbol.scope not in classes:
                for key in {symbol.name, _with_owner(symbol.qualified)}:
                    paths = self._definitions.setdefault(key, [])
                    if path not in paths:
                        paths.append(path)

    def add_declarations(self, path: str, functions: Iterable[str]) -> None:
        """Add the functions that a header declares without a body."""
        for name in functions:
            self._declarations.setdefault(name, []).append(path)

    def resolve(
        self, path: str, language: str, name: str, scope: str, imports: Sequence[Edge]
    ) -> ImplicitImport | None:
        if path in self._classes.get(name, ()):
            return self._find_members(path, name)
        last = name.rpartition("::")[2]
        definers = self._definitions.get(_with_owner(name))
        if definers is None:
            return None
        if self._user is None or self._user.path != path:
            self._user = _IncludingFile(path, imports)
        user = self._user
        definers = [definer for definer in definers if definer != path and user.can_use(definer)]
        if not definers:
            return None
        declaring = self._declarations.get(last, ())
        is_declared = any(user.includes(header) for header in declaring)
        named = [definer for definer in definers if _stem(definer) in user.stems]
        if len(definers) > 1:
            likely = named if len(named) == 1 else nearest_paths(parent_directory(path), definers)
            return found_in(tuple(likely), name, is_certain=False) if len(likely) <= FITTING_FILES_MAX else None
        if not is_declared and not named and not declaring and parent_directory(path) != parent_directory(definers[0]):
            return None
        is_certain = (
            language == "c"
            and (is_declared or bool(named))
            and last not in self._hiding
            and not user.is_foreign(definers[0])
        )
        return found_in(tuple(definers), name, is_certain=is_certain)

    def _find_members(self, path: str, name: str) -> ImplicitImport | None:
        """Return the files that define members of a class in a header."""
        is_certain = len(self._classes[name]) == 1
        paths = self._members.get(name, set())
        if not paths:
            # The file can name the namespace in a `using` directive.
            is_certain = False
            _, _, short = name.partition("::")
            while short and not paths:
                paths = self._members.get(short, set())
                _, _, short = short.partition("::")
        found = [other for other in sorted(paths) if is_certain or _stem(other) == _stem(path)]
        if not found or len(found) > FITTING_FILES_MAX:
            return None
        return ImplicitImport("exact" if is_certain else "file" if len(found) == 1 else "name", tuple(found), name)


class _IncludingFile:
    """The file of which names are resolved, with what it includes. Results are cached."""

    def __init__(self, path: str, imports: Sequence[Edge]) -> None:
        self.path = path
        self._directories = frozenset(parent_directory(path).split("/"))
        self._included = [_plain_path(edge.target) for edge in imports]
        self.stems = {_stem(include) for include in self._included}
        self.includes = cache(self._is_included)
        self.can_use = cache(lambda definer: bool(usable_files(path, [definer])))

    def _is_included(self, header: str) -> bool:
        return any(header == include or header.endswith(f"/{include}") for include in self._included)

    def is_foreign(self, definer: str) -> bool:
        """Return whether code of others, or a substitute for a function of the system, defines a name in `definer`."""
        return not _UNCERTAIN_DIRECTORIES.intersection(parent_directory(definer).split("/")) <= self._directories


def _with_owner(name: str) -> str:
    """Return the last name of a chain, with the name before it."""
    return "::".join(name.removeprefix("::").split("::")[-2:])


def _plain_path(target: str) -> str:
    return "/".join(part for part in target.split("/") if part not in ("", ".", ".."))


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]


IMPLICIT = {"c": CExternalNames, "cpp": CExternalNames}
