"""C#: files use types of namespaces. A file sees its own namespaces, those around them, and those that `using` names.

All parts of a partial type are its definition. A project sees its own types and those of the projects that it
references.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from typing import NamedTuple

import msgspec

from codebatch.model.record import Edge, File, Record, Symbol
from codebatch_workers.languages.csharp.projects import CSharpProjects
from codebatch_workers.resolution.implicit_rule import ImplicitImport, ImplicitImportRule
from codebatch_workers.resolution.import_rule import ImportContext
from codebatch_workers.resolution.tree import ResolvedImport

_TYPES = frozenset({"class", "enum", "interface", "struct", "type"})
# The project of a file without a .csproj file.
_NO_PROJECT = "\0"
_NO_NAMES: Set[str] = frozenset()


class _UsedName(msgspec.Struct, frozen=True):
    """A name as `languages/csharp/names.py` returns it.

    `parts` are its components. `arity` is the number of type arguments of the last component. If `is_owner` is set, a
    member of the last component follows.
    """

    parts: tuple[str, ...]
    arity: int = 0
    is_owner: bool = False
    is_attribute: bool = False


class _FileNamespaces(msgspec.Struct, frozen=True):
    """The namespaces in which a file looks up names.

    `levels` has for each namespace of the file that namespace and those around it, innermost first. `usings` are the
    imported namespaces. `has_inner_usings` is set if a namespace, not the file, contains a `using`.
    """

    levels: tuple[tuple[str, ...], ...]
    usings: tuple[str, ...]
    has_inner_usings: bool


class _Definition(msgspec.Struct, frozen=True):
    """A type that was found: its qualified name, its declarations, and how many components of the used name denote it.

    `key` is the key of its declarations.
    """

    key: tuple[str, int]
    parts: int


class _Declaration(NamedTuple):
    """A file that declares a type, and whether this is one part of the type, or in a branch of `#if`."""

    path: str
    is_partial: bool
    is_conditional: bool


class _Choice(NamedTuple):
    """The files that code can mean by a type. `is_certain` is set if they declare it, and no other file does."""

    paths: frozenset[str]
    is_certain: bool
    is_visible: bool


class CSharpNames(ImplicitImportRule):
    """The types of all C# files, by qualified name and number of type parameters."""

    def __init__(self, context: ImportContext) -> None:
        self._projects = CSharpProjects(context.tree)
        self._declarations: dict[tuple[str, int], set[_Declaration]] = {}
        self._arities: dict[str, set[int]] = {}
        self._namespaces: set[str] = {""}
        # The namespaces that contain a type or a namespace of a name.
        self._places: dict[str, set[str]] = {}
        self._choices: dict[tuple[str | None, tuple[str, int]], _Choice] = {}
        self._nested_types: dict[str, set[str]] = {}
        self._namespaces_by_file: dict[str, tuple[tuple[str, int], ...]] = {}
        self._global_usings: dict[str, set[str]] = {}
        self._contexts: dict[str, _FileNamespaces] = {}

    @classmethod
    def definitions_key(cls, file: File, records: Sequence[Record]) -> Hashable:
        # An import symbol can be a `global using`, which applies to other files.
        return frozenset(
            (symbol.qualified, symbol.symbol_type, symbol.visibility, _properties(symbol))
            for symbol in records
            if isinstance(symbol, Symbol)
        )

    def add_definitions(self, path: str, language: str, symbols: Sequence[Symbol], *, is_partial: bool) -> None:
        namespaces = [symbol for symbol in symbols if symbol.symbol_type == "namespace"]
        file_namespace = next((f"{symbol.name}." for symbol in namespaces if _is_file_scoped(symbol)), "")
        inner_scopes = {symbol.qualified for symbol in namespaces} | {""}
        self._namespaces_by_file[path] = tuple((symbol.qualified, symbol.line) for symbol in namespaces)
        for namespace in namespaces:
            for outer in _with_outer(namespace.qualified):
                if outer not in self._namespaces:
                    self._namespaces.add(outer)
                    self._add_place(outer)
        for symbol in symbols:
            if symbol.symbol_type in _TYPES:
                qualified = file_namespace + symbol.qualified
                declaration = _Declaration(path, symbol.is_partial, symbol.is_conditional)
                self._declarations.setdefault((qualified, symbol.type_parameters), set()).add(declaration)
                self._arities.setdefault(qualified, set()).add(symbol.type_parameters)
                self._add_place(qualified)
                if symbol.scope not in inner_scopes:
                    self._nested_types.setdefault(symbol.name, set()).add(path)
            elif symbol.symbol_type == "import":
                project = self._projects.project_of(path)
                self._global_usings.setdefault(_NO_PROJECT if project is None else project, set()).add(symbol.name)

    def _add_place(self, qualified: str) -> None:
        namespace, _, name = qualified.rpartition(".")
        self._places.setdefault(name, set()).add(namespace)

    def resolve(
        self, path: str, language: str, name: str, scope: str, imports: Sequence[Edge]
    ) -> ImplicitImport | None:
        used = _read_name(name)
        places = self._places.get(used.parts[0], _NO_NAMES)
        if used.is_attribute:
            places = places | self._places.get(f"{used.parts[0]}Attribute", _NO_NAMES)
        if not places or path in self._nested_types.get(used.parts[0], ()):
            return None
        context = self._contexts.get(path)
        if context is None:
            # All names of a file are resolved in succession.
            context = self._file_namespaces(path, imports)
            self._contexts = {path: context}
        by_namespace = {self._find(levels, used, path, context, places) for levels in context.levels}
        definitions = [definition for definition in by_namespace if definition is not None]
        if len(definitions) != 1:
            return None
        definition = definitions[0]
        paths, is_certain, _ = self._choose(path, definition.key)
        # A type could inherit a nested type of this name, which hides the type of the namespace.
        is_certain = is_certain and len(by_namespace) == 1 and not self._nested_types.get(used.parts[0])
        others = tuple(sorted(paths - {path}))
        written = ".".join(used.parts[: definition.parts])
        if is_certain:
            return ImplicitImport("exact", others, written)
        return ImplicitImport("name" if len(paths) > 1 else "file", others, written)

    def resolve_import(self, path: str, target: str) -> ResolvedImport | None:
        """Resolve the target of a `using`. The result of a namespace has no paths."""
        if target in self._namespaces:
            return ResolvedImport("exact")
        for arity in sorted(self._arities.get(target, ())):
            paths, is_certain, _ = self._choose(path, (target, arity))
            is_certain = is_certain and len(self._arities[target]) == 1
            return ResolvedImport("exact" if is_certain else "name" if len(paths) > 1 else "file", tuple(sorted(paths)))
        return None

    # -- Namespaces ----------------------------------------------------------------------------------------------------

    def _file_namespaces(self, path: str, imports: Sequence[Edge]) -> _FileNamespaces:
        declared = self._namespaces_by_file.get(path) or (("", 0),)
        # A namespace around another one has no code of its own in most files.
        names = {name for name, _ in declared}
        innermost = {name for name in names if not any(other.startswith(f"{name}.") for other in names)}
        levels = tuple(tuple(_with_outer(name)) for name in sorted(innermost))
        project = self._projects.project_of(path)
        global_usings = self._global_usings.get(_NO_PROJECT if project is None else project, set())
        in_project_file = () if project is None else self._projects.global_usings(project)
        written = {edge.target for edge in imports} | global_usings | set(in_project_file)
        usings = sorted({name for target in written for name in self._used_namespaces(target, levels)})
        first_line = min((line for name, line in declared if name), default=0)
        has_inner_usings = bool(first_line) and any(edge.line > first_line for edge in imports)
        return _FileNamespaces(levels, tuple(usings), has_inner_usings)

    def _used_namespaces(self, target: str, levels: Iterable[Sequence[str]]) -> Iterator[str]:
        """Yield the namespaces of the tree that a `using` names: absolute, or relative to a namespace of the file."""
        if target in self._namespaces:
            yield target
            return
        for outer in sorted({level for file_levels in levels for level in file_levels}):
            if outer and f"{outer}.{target}" in self._namespaces:
                yield f"{outer}.{target}"

    # -- Lookup --------------------------------------------------------------------------------------------------------

    def _find(
        self, levels: Sequence[str], used: _UsedName, path: str, context: _FileNamespaces, places: Set[str]
    ) -> _Definition | None:
        """Return the type that a name denotes in a namespace and the namespaces around it, `levels`.

        `places` are the namespaces that contain the first component of the name.
        """
        is_chain = used.is_owner or len(used.parts) > 1
        hidden: list[_Definition] = []
        found: list[_Definition] = []
        for level in levels:
            if level not in places:
                continue
            for candidate in self._in_namespace(level, used):
                (found if self._choose(path, candidate.key).is_visible else hidden).append(candidate)
            if found or (is_chain and _join(level, used.parts[0]) in self._namespaces):
                break
        if found and not context.has_inner_usings:
            return found[0]
        imported = {
            candidate.key: candidate
            for namespace in context.usings
            if namespace in places
            for candidate in self._in_namespace(namespace, used, is_imported=True)
        }
        visible = [candidate for candidate in imported.values() if self._choose(path, candidate.key).is_visible]
        candidates = [*found, *visible] or list(imported.values()) or hidden[:1]
        return candidates[0] if len({candidate.key for candidate in candidates}) == 1 else None

    def _in_namespace(self, namespace: str, used: _UsedName, *, is_imported: bool = False) -> Iterator[_Definition]:
        """Yield the types that a name denotes in one namespace. For an attribute, there can be two."""
        if used.is_attribute:
            for suffix in ("Attribute", ""):
                yield from self._in_namespace(
                    namespace, msgspec.structs.replace(used, parts=_suffixed(used.parts, suffix), is_attribute=False)
                )
            return
        qualified = namespace
        for count, part in enumerate(used.parts, 1):
            qualified = _join(qualified, part)
            arity = used.arity if count == len(used.parts) else 0
            if (qualified, arity) in self._declarations:
                yield _Definition((qualified, arity), count)
                return
            # `using N` imports the types of N, but not the namespaces in it.
            if qualified not in self._namespaces or is_imported:
                return

    def _choose(self, path: str, key: tuple[str, int]) -> _Choice:
        """Return the files that code in `path` can mean by a type. A type of the own project precedes other types."""
        own = self._projects.project_of(path)
        for declaration in self._declarations[key]:
            if declaration.path == path and not declaration.is_partial:
                return _Choice(frozenset({path}), is_certain=True, is_visible=True)
        choice = self._choices.get((own, key))
        if choice is None:
            choice = self._choices[own, key] = self._choose_for_project(own, key)
        return choice

    def _choose_for_project(self, own: str | None, key: tuple[str, int]) -> _Choice:
        by_project: dict[str | None, list[_Declaration]] = {}
        for declaration in self._declarations[key]:
            by_project.setdefault(self._projects.project_of(declaration.path), []).append(declaration)
        visible = {own} if own is None or own in by_project else self._projects.visible_projects(own)
        chosen = [declarations for project, declarations in by_project.items() if project in visible]
        declarations = [declaration for group in chosen or by_project.values() for declaration in group]
        # Several declarations are one type if each is a part. Otherwise, the project compiles only one of them.
        is_one_type = len(declarations) == 1 or all(declaration.is_partial for declaration in declarations)
        is_certain = len(chosen) == 1 and is_one_type and not all(part.is_conditional for part in declarations)
        return _Choice(frozenset(declaration.path for declaration in declarations), is_certain, bool(chosen))


def _properties(symbol: Symbol) -> Hashable:
    return symbol.type_parameters, symbol.is_partial, symbol.is_conditional


def _read_name(name: str) -> _UsedName:
    is_attribute = name.startswith("[")
    is_owner = name.endswith(".")
    written, _, arity = name.strip("[].").partition("`")
    return _UsedName(tuple(written.split(".")), int(arity) if arity.isdigit() else 0, is_owner, is_attribute)


def _is_file_scoped(namespace: Symbol) -> bool:
    """Return whether a namespace has no body. Its symbol then ends with its name."""
    return (
        not namespace.scope
        and namespace.line == namespace.end_line
        and namespace.end_column - namespace.column == len(namespace.name)
    )


def _with_outer(namespace: str) -> Iterator[str]:
    """Yield a namespace and those around it, innermost first. The last one is the global namespace."""
    while namespace:
        yield namespace
        namespace = namespace.rpartition(".")[0]
    yield ""


def _join(namespace: str, name: str) -> str:
    return f"{namespace}.{name}" if namespace else name


def _suffixed(parts: tuple[str, ...], suffix: str) -> tuple[str, ...]:
    return (*parts[:-1], parts[-1] + suffix)


IMPLICIT = {"csharp": CSharpNames}
