"""Which names a file binds, where they are seen and which are used: one resolver for all languages with a locals query.

A language takes part by queries/*.locals.scm. The order in which captures come does not matter. Captures:

    scope, scope.function    what names live in; `var` lives in the nearest function
    scope.type               a type that names what a function takes
    definition.KIND          a name, or a pattern of names, that is bound in the scope around it:
                             import, variable, parameter; function (bound around the scope that it is the name of),
                             own (bound inside it), var (bound in the nearest function), type_parameter
    exported                 what makes the definitions directly in it used; ambient, what makes all in it used
    reference                a name that may be used; those at a definition are none
    ignored                  a reference that uses nothing, as an assignment does

A name is looked up from the innermost scope outwards, and uses all definitions of it in the first scope that has any.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from codebatch_workers.syntax.broken_trees import QUERY_DEPTH_MAX
from codebatch_workers.syntax.language.languages import grammar, query_source
from codebatch_workers.syntax.names import pattern_names
from codebatch_workers.syntax.source import SourceFile

if TYPE_CHECKING:
    import tree_sitter
    from tree_sitter import Node

# Language -> its query files.
_QUERIES: Mapping[str, tuple[str, ...]] = {
    "javascript": ("script",),
    "tsx": ("script", "typescript"),
    "typescript": ("script", "typescript"),
}
LANGUAGES = frozenset(_QUERIES)


class BoundName(msgspec.Struct):
    """A name where it is bound. `kind` as in the captures."""

    name: bytes
    start: int
    end: int
    kind: str
    is_used: bool = False


class NameScope(msgspec.Struct):
    """A stretch of source in which names live, and the scope around it."""

    start: int
    end: int
    parent: NameScope | None
    is_function: bool
    is_type: bool
    names: dict[bytes, list[BoundName]] = msgspec.field(default_factory=dict)

    def find_outside(self, name: bytes) -> list[BoundName]:
        """The definitions of a name in the nearest scope around this one that has any."""
        scope = self.parent
        while scope is not None:
            if name in scope.names:
                return sorted(scope.names[name], key=_start)
            scope = scope.parent
        return []


_start = attrgetter("start")


class _ScopeOffsets(msgspec.Struct, frozen=True):
    """From each offset on, the scope that is then in force."""

    starts: Sequence[int]
    scopes: Sequence[NameScope]

    def at(self, offset: int) -> NameScope:
        return self.scopes[bisect_right(self.starts, offset) - 1]


class Bindings(msgspec.Struct, frozen=True):
    """All scopes of a file, outer before inner; the first is the file."""

    scopes: Sequence[NameScope]

    def iter_definitions(self) -> Iterator[tuple[NameScope, BoundName]]:
        """Every definition, with its scope."""
        for scope in self.scopes:
            for definitions in scope.names.values():
                for definition in definitions:
                    yield scope, definition


def bindings(file: SourceFile) -> Bindings | None:
    """The bindings of a file; None where its language has no locals query, or its tree is not to be trusted."""
    if file.language not in LANGUAGES or file.tree is None or file.has_syntax_error:
        return None
    return file.derived(_resolve)


@cache
def _query(language: str) -> tree_sitter.Query:
    from tree_sitter import Query  # Here, for coordinators do not load it.

    source = query_source(f"{name}.locals" for name in _QUERIES[language])
    query: tree_sitter.Query = Query(grammar(language).language, source)
    return query


def _resolve(file: SourceFile) -> Bindings:
    from tree_sitter import QueryCursor

    assert file.tree is not None
    # Not `SourceFile.query`, which sorts: most captures are references, whose order means nothing here.
    cursor = QueryCursor(_query(file.language))
    cursor.set_max_start_depth(QUERY_DEPTH_MAX)
    captures = cursor.captures(file.tree.root_node)
    scopes, places = _find_scopes(captures)
    if scopes:
        bound = _define(captures, file.utf8, places)
        _mark_exported(captures, places)
        _use(captures, file.utf8, places, bound)
    return Bindings(scopes)


def _find_scopes(captures: Mapping[str, list[Node]]) -> tuple[list[NameScope], _ScopeOffsets]:
    spans = [
        (node.start_byte, -node.end_byte, capture)
        for capture in ("scope", "scope.function", "scope.type")
        for node in captures.get(capture, ())
    ]
    spans.sort()
    scopes: list[NameScope] = []
    starts: list[int] = []
    at: list[NameScope] = []
    stack: list[NameScope] = []
    for start, minus_end, capture in spans:
        while stack and stack[-1].end <= start:
            _leave(stack, starts, at)
        parent = stack[-1] if stack else None
        scope = NameScope(start, -minus_end, parent, parent is None or capture != "scope", capture == "scope.type")
        scopes.append(scope)
        stack.append(scope)
        starts.append(start)
        at.append(scope)
    while len(stack) > 1:
        _leave(stack, starts, at)
    # A file begins before its first token: comments and blank lines are outside of the root's node.
    if starts:
        starts[0] = 0
    return scopes, _ScopeOffsets(starts, at)


def _leave(stack: list[NameScope], starts: list[int], at: list[NameScope]) -> None:
    left = stack.pop()
    if stack:
        starts.append(left.end)
        at.append(stack[-1])


def _define(captures: Mapping[str, list[Node]], utf8: bytes, places: _ScopeOffsets) -> set[int]:
    """Bind every definition in its scope; the offsets where they stand."""
    bound: set[int] = set()
    for capture, nodes in captures.items():
        kind = capture.removeprefix("definition.")
        if kind == capture:
            continue
        for node in nodes:
            scope = places.at(node.start_byte)
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
        scope = places.at(start)
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


def _use(captures: Mapping[str, list[Node]], utf8: bytes, places: _ScopeOffsets, bound: set[int]) -> None:
    """Mark what references use. A name of which everything is used is not looked up again."""
    open_count: dict[bytes, int] = {}
    for each in {id(scope): scope for scope in places.scopes}.values():
        for name in each.names:
            open_count[name] = open_count.get(name, 0) + 1
    bound.update(node.start_byte for node in captures.get("ignored", ()))
    seen: set[tuple[int, bytes]] = set()
    for node in captures.get("reference", ()):
        start = node.start_byte
        name = utf8[start : node.end_byte]
        if not open_count.get(name) or start in bound:
            continue
        scope: NameScope | None = places.at(start)
        while scope is not None and name not in scope.names:
            scope = scope.parent
        if scope is not None and (id(scope), name) not in seen:
            seen.add((id(scope), name))
            open_count[name] -= 1
            for definition in scope.names[name]:
                definition.is_used = True
