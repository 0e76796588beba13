"""Name resolution: the names that a file binds, their scopes, and which of the names are used.

One resolver serves all languages that have queries/*.locals.scm. The order of the captures is irrelevant:

    scope, scope.function    a scope of names; `var` is bound in the nearest function
    scope.type               a type that names the parameters of a function
    definition.KIND          a name or pattern that is bound in the enclosing scope. Kinds:
                             import, variable, parameter; function (bound in the scope around the function),
                             own (bound inside the function), var (bound in the nearest function), type_parameter
    exported                 marks the definitions directly in it as used; `ambient` marks all definitions in it
    reference                a name that can be a use; names of definitions are excluded
    ignored                  a reference that is not a use, such as an assignment

A name is looked up from the innermost scope outwards. The first scope that has any definitions of the name decides. The
reference uses all of these definitions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter

import msgspec
import tree_sitter
from tree_sitter import Node, Query, QueryCursor

from codebatch_workers.syntax.broken_trees import QUERY_DEPTH_MAX
from codebatch_workers.syntax.language.languages import load_grammar, query_source
from codebatch_workers.syntax.names import pattern_names
from codebatch_workers.syntax.source import SourceFile

# The query files of each language, without `.locals.scm`.
_QUERY_FILES: Mapping[str, tuple[str, ...]] = {
    "javascript": ("script",),
    "tsx": ("script", "typescript"),
    "typescript": ("script", "typescript"),
}
LANGUAGES_WITH_BINDINGS = frozenset(_QUERY_FILES)


class BoundName(msgspec.Struct):
    """A name that a definition binds. `kind` is KIND in the capture `definition.KIND`."""

    name: bytes
    start: int
    end: int
    kind: str
    is_used: bool = False


class NameScope(msgspec.Struct):
    """A range of the source in which names are bound, and the scope around this range."""

    start: int
    end: int
    parent: NameScope | None
    is_function: bool
    is_type: bool
    names: dict[bytes, list[BoundName]] = msgspec.field(default_factory=dict)

    def find_outside(self, name: bytes) -> list[BoundName]:
        """Return the definitions of a name in the nearest enclosing scope that has any, in text order.

        The search begins in the parent of this scope.
        """
        scope = self.parent
        while scope is not None:
            if name in scope.names:
                return sorted(scope.names[name], key=_start_getter)
            scope = scope.parent
        return []


_start_getter = attrgetter("start")


class _ScopeOffsets(msgspec.Struct, frozen=True):
    """The innermost scope at each offset: `scopes[i]` applies from `starts[i]` to the next start."""

    starts: Sequence[int]
    scopes: Sequence[NameScope]

    def scope_at(self, offset: int) -> NameScope:
        return self.scopes[bisect_right(self.starts, offset) - 1]


class FileBindings(msgspec.Struct, frozen=True):
    """All scopes of a file, outer scopes before inner ones. The first scope is the file."""

    scopes: Sequence[NameScope]

    def iter_definitions(self) -> Iterator[tuple[NameScope, BoundName]]:
        """Yield every definition with its scope."""
        for scope in self.scopes:
            for definitions in scope.names.values():
                for definition in definitions:
                    yield scope, definition


def find_bindings(file: SourceFile) -> FileBindings | None:
    """Return the bindings of a file.

    Return None if there is no locals query for its language, or if its tree has errors.
    """
    if file.language not in LANGUAGES_WITH_BINDINGS or file.tree is None or file.has_syntax_error:
        return None
    return file.derived(_resolve_bindings)


@cache
def _locals_query(language: str) -> tree_sitter.Query:
    source = query_source(f"{name}.locals" for name in _QUERY_FILES[language])
    query: tree_sitter.Query = Query(load_grammar(language).language, source)
    return query


def _resolve_bindings(file: SourceFile) -> FileBindings:
    assert file.tree is not None
    # `SourceFile.query` would sort the captures, which takes time. Most captures are references, and their order is
    # irrelevant.
    cursor = QueryCursor(_locals_query(file.language))
    cursor.set_max_start_depth(QUERY_DEPTH_MAX)
    captures = cursor.captures(file.tree.root_node)
    scopes, places = _find_scopes(captures)
    if scopes:
        bound = _add_definitions(captures, file.utf8, places)
        _mark_exported(captures, places)
        _mark_used(captures, file.utf8, places, bound)
    return FileBindings(scopes)


def _find_scopes(captures: Mapping[str, list[Node]]) -> tuple[list[NameScope], _ScopeOffsets]:
    spans = [
        (node.start_byte, -node.end_byte, capture)
        for capture in ("scope", "scope.function", "scope.type")
        for node in captures.get(capture, ())
    ]
    spans.sort()
    scopes: list[NameScope] = []
    starts: list[int] = []
    scope_at_start: list[NameScope] = []
    stack: list[NameScope] = []
    for start, minus_end, capture in spans:
        while stack and stack[-1].end <= start:
            _leave_scopes(stack, starts, scope_at_start)
        parent = stack[-1] if stack else None
        scope = NameScope(start, -minus_end, parent, parent is None or capture != "scope", capture == "scope.type")
        scopes.append(scope)
        stack.append(scope)
        starts.append(start)
        scope_at_start.append(scope)
    while len(stack) > 1:
        _leave_scopes(stack, starts, scope_at_start)
    # The file scope begins at 0. The root node begins later if comments or blank lines precede the first token.
    if starts:
        starts[0] = 0
    return scopes, _ScopeOffsets(starts, scope_at_start)


def _leave_scopes(stack: list[NameScope], starts: list[int], scope_at_start: list[NameScope]) -> None:
    closed = stack.pop()
    if stack:
        starts.append(closed.end)
        scope_at_start.append(stack[-1])


def _add_definitions(captures: Mapping[str, list[Node]], utf8: bytes, places: _ScopeOffsets) -> set[int]:
    """Add every definition to its scope. Return the start offsets of all defined names."""
    bound: set[int] = set()
    for capture, nodes in captures.items():
        kind = capture.removeprefix("definition.")
        if kind == capture:
            continue
        for node in nodes:
            scope = places.scope_at(node.start_byte)
            if kind == "function" and scope.parent is not None:
                scope = scope.parent
            while kind == "var" and not scope.is_function and scope.parent is not None:
                scope = scope.parent
            for start, end in pattern_names(node):
                bound.add(start)
                definition = BoundName(utf8[start:end], start, end, kind)
                scope.names.setdefault(definition.name, []).append(definition)
    return bound


def _mark_exported(captures: Mapping[str, list[Node]], places: _ScopeOffsets) -> None:
    for node in captures.get("exported", ()):
        start, end = node.start_byte, node.end_byte
        scope = places.scope_at(start)
        if scope.start == start and scope.parent is not None:
            scope = scope.parent
        for definitions in scope.names.values():
            for definition in definitions:
                definition.is_used |= start <= definition.start < end
    ambient = [(node.start_byte, node.end_byte) for node in captures.get("ambient", ())]
    if ambient:
        for scope in places.scopes:
            for definitions in scope.names.values():
                for definition in definitions:
                    definition.is_used |= any(start <= definition.start < end for start, end in ambient)


def _mark_used(captures: Mapping[str, list[Node]], utf8: bytes, places: _ScopeOffsets, bound: set[int]) -> None:
    """Set `is_used` in each definition to which a reference refers.

    Once all definitions of a name are used, further references to the name are skipped.
    """
    open_count: dict[bytes, int] = {}
    for scope_of_names in {id(scope): scope for scope in places.scopes}.values():
        for name in scope_of_names.names:
            open_count[name] = open_count.get(name, 0) + 1
    bound.update(node.start_byte for node in captures.get("ignored", ()))
    marked: set[tuple[int, bytes]] = set()
    for node in captures.get("reference", ()):
        start = node.start_byte
        name = utf8[start : node.end_byte]
        if not open_count.get(name) or start in bound:
            continue
        scope: NameScope | None = places.scope_at(start)
        while scope is not None and name not in scope.names:
            scope = scope.parent
        if scope is not None and (id(scope), name) not in marked:
            marked.add((id(scope), name))
            open_count[name] -= 1
            for definition in scope.names[name]:
                definition.is_used = True
