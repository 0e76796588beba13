"""Name resolution: the names that a file binds, their scopes, and which of the names are used.

One resolver serves all languages that have a query `NAME.locals.scm`. The order of the captures is irrelevant:

    scope, scope.function    a scope of names; `var` is bound in the nearest function
    scope.class              the body of a class; functions in it do not see the names that are bound directly in it
    scope.outer              code in the range of a scope that is evaluated in the scope around it (default values)
    scope.type               a type that names the parameters of a function
    definition.KIND          a name or pattern that is bound in the enclosing scope. Kinds:
                             import, variable, parameter; function (bound in the scope around the function),
                             own (bound inside the function), var (bound in the nearest function), type_parameter,
                             class (bound in the enclosing scope)
    global, nonlocal         a name that the function does not bind itself, but in the file or in an outer function
    exported                 marks the definitions directly in it as used; `ambient` marks all definitions in it
    reference                a name that can be a use; names of definitions are excluded (only for unused names)
    ignored                  a reference that is not a use, such as an assignment (only for unused names)

A name is looked up from the innermost scope outwards. The first scope that has any definitions of the name decides. The
reference uses all of these definitions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

import msgspec
from tree_sitter import Node, QueryCursor

from codebatch_workers.syntax.broken_trees import QUERY_DEPTH_MAX
from codebatch_workers.syntax.language_queries import bindings_query
from codebatch_workers.syntax.source import SourceFile

_BINDING_STATEMENTS = frozenset({"assignment", "augmented_assignment", "class_definition", "function_definition"})
"""Statements that evaluate other code before they bind a name."""
_PATTERN_NODES = frozenset({"list_pattern", "list_splat_pattern", "pattern_list", "tuple_pattern"})


class BoundName(msgspec.Struct):
    """A name that a definition binds. `kind` is KIND in `definition.KIND`, and `node` is the captured node."""

    name: bytes
    start: int
    end: int
    kind: str
    node: Node
    is_used: bool = False


class NameScope(msgspec.Struct):
    """A range of the source in which names are bound, and the scope around this range."""

    start: int
    end: int
    parent: NameScope | None
    is_function: bool
    is_type: bool
    is_class: bool = False
    # The definitions of each name, in text order.
    names: dict[bytes, list[BoundName]] = msgspec.field(default_factory=dict)

    def find_outside(self, name: bytes) -> list[BoundName]:
        """Return the definitions of a name in the nearest enclosing scope that has any, in text order.

        The search begins in the parent of this scope.
        """
        scope = self.parent
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
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
    """All scopes of a file, outer scopes before inner ones. The first scope is the file.

    `captures` has the nodes of the locals query by capture, unsorted. `bound` has the start offsets of all defined
    names.
    """

    scopes: Sequence[NameScope]
    captures: Mapping[str, Sequence[Node]]
    bound: frozenset[int]
    places: _ScopeOffsets

    def scope_at(self, offset: int) -> NameScope:
        """Return the innermost scope at an offset."""
        return self.places.scope_at(offset)

    def find_definitions(self, offset: int, name: bytes) -> tuple[NameScope, list[BoundName]] | None:
        """Return the definitions of a name that is used at an offset, with their scope. Return None if it has none.

        Code directly in a class sees only names of the class that are already bound. Other code in the class does not
        see its names.
        """
        innermost = scope = self.scope_at(offset) if self.scopes else None
        while scope is not None:
            found = scope.names.get(name, [])
            if scope.is_class:
                found = [one for one in found if scope is innermost and _is_bound_before(one, offset)]
            if found:
                return scope, found
            scope = scope.parent
        return None

    def iter_definitions(self) -> Iterator[tuple[NameScope, BoundName]]:
        """Yield every definition with its scope."""
        for scope in self.scopes:
            for definitions in scope.names.values():
                for definition in definitions:
                    yield scope, definition


def _is_bound_before(definition: BoundName, offset: int) -> bool:
    """Return whether a name is bound after its statement has been executed, and this statement ends before `offset`."""
    if definition.start == offset:
        return True
    statement = definition.node.parent
    while statement is not None and statement.type in _PATTERN_NODES:
        statement = statement.parent
    is_later = statement is not None and statement.type in _BINDING_STATEMENTS
    end = statement.end_byte if statement is not None and is_later else definition.end
    return end <= offset


def find_used_bindings(file: SourceFile) -> FileBindings | None:
    """Return the bindings of a file, in which used names are marked.

    Return None if there is no locals query for its language, or if its tree has errors.
    """
    if file.tree is None or file.has_syntax_error or find_bindings(file) is None:
        return None
    return file.derived(_mark_bindings)


def find_bindings(file: SourceFile) -> FileBindings | None:
    """Return the bindings of a file. Return None if it has no tree, or if its language has no locals query."""
    if not file.syntax.binding_queries or file.tree is None:
        return None
    return file.derived(_bind_names)


def _bind_names(file: SourceFile) -> FileBindings:
    assert file.tree is not None
    # `SourceFile.query` would sort the captures, which takes time. Most captures are references, and their order is
    # irrelevant.
    cursor = QueryCursor(bindings_query(file.language))
    cursor.set_max_start_depth(QUERY_DEPTH_MAX)
    captures = cursor.captures(file.tree.root_node)
    scopes, places = _find_scopes(captures)
    bound = _add_definitions(captures, file, places) if scopes else set()
    for scope in scopes:
        for definitions in scope.names.values():
            definitions.sort(key=_start_getter)
    return FileBindings(scopes, captures, frozenset(bound), places)


def _mark_bindings(file: SourceFile) -> FileBindings:
    """Mark the used names in the bindings of a file, and return these bindings."""
    bindings = file.derived(_bind_names)
    if bindings.scopes:
        _mark_exported(bindings.captures, bindings.places)
        _mark_used(bindings.captures, file.utf8, bindings.places, set(bindings.bound))
    return bindings


def _find_scopes(captures: Mapping[str, Sequence[Node]]) -> tuple[list[NameScope], _ScopeOffsets]:
    # Code that is evaluated in an outer scope can itself be a scope, so it comes first among nodes of equal range.
    spans = [
        (node.start_byte, -node.end_byte, capture != "scope.outer", capture)
        for capture in ("scope", "scope.function", "scope.class", "scope.type", "scope.outer")
        for node in captures.get(capture, ())
    ]
    spans.sort()
    scopes: list[NameScope] = []
    starts: list[int] = []
    scope_at_start: list[NameScope] = []
    stack: list[tuple[int, NameScope]] = []
    for start, minus_end, _, capture in spans:
        while stack and stack[-1][0] <= start:
            _leave_scopes(stack, starts, scope_at_start)
        parent = stack[-1][1] if stack else None
        if capture == "scope.outer" and parent is not None:
            scope = parent.parent or parent
        else:
            is_function = parent is None or capture in ("scope.function", "scope.type")
            is_type, is_class = capture == "scope.type", capture == "scope.class"
            scope = NameScope(start, -minus_end, parent, is_function, is_type, is_class)
            scopes.append(scope)
        stack.append((-minus_end, scope))
        starts.append(start)
        scope_at_start.append(scope)
    while len(stack) > 1:
        _leave_scopes(stack, starts, scope_at_start)
    # The file scope begins at 0. The root node begins later if comments or blank lines precede the first token.
    if starts:
        starts[0] = 0
    return scopes, _ScopeOffsets(starts, scope_at_start)


def _leave_scopes(stack: list[tuple[int, NameScope]], starts: list[int], scope_at_start: list[NameScope]) -> None:
    end, _ = stack.pop()
    if stack:
        starts.append(end)
        scope_at_start.append(stack[-1][1])


def _add_definitions(captures: Mapping[str, Sequence[Node]], file: SourceFile, places: _ScopeOffsets) -> set[int]:
    """Add every definition to its scope. Return the start offsets of all defined names."""
    utf8, bound_names = file.utf8, file.syntax.bound_names
    bound: set[int] = set()
    for capture, nodes in captures.items():
        kind = capture.removeprefix("definition.")
        if kind == capture:
            continue
        for node in nodes:
            scope = places.scope_at(node.start_byte)
            if kind == "function" and scope.parent is not None:
                scope = scope.parent
            while kind == "var" and not (scope.is_function or scope.is_class) and scope.parent is not None:
                scope = scope.parent
            for start, end in bound_names(node) if bound_names else ((node.start_byte, node.end_byte),):
                bound.add(start)
                definition = BoundName(utf8[start:end], start, end, kind, node)
                scope.names.setdefault(definition.name, []).append(definition)
    for node in captures.get("global", ()):
        _move_definitions(node, utf8, places, places.scopes[0])
    for node in captures.get("nonlocal", ()):
        _move_definitions(node, utf8, places, None)
    return bound


def _move_definitions(node: Node, utf8: bytes, places: _ScopeOffsets, target: NameScope | None) -> None:
    """Move the definitions of a name out of the scope of a node, to `target` or to the next outer scope that has any.

    Class scopes have no such names.
    """
    source, name = places.scope_at(node.start_byte), utf8[node.start_byte : node.end_byte]
    outer = source.parent
    while target is None and outer is not None:
        target = outer if name in outer.names and not outer.is_class else None
        outer = outer.parent
    if target is not None and target is not source:
        moved = source.names.pop(name, [])
        if moved:
            target.names.setdefault(name, []).extend(moved)


def _mark_exported(captures: Mapping[str, Sequence[Node]], places: _ScopeOffsets) -> None:
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


def _mark_used(captures: Mapping[str, Sequence[Node]], utf8: bytes, places: _ScopeOffsets, bound: set[int]) -> None:
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
