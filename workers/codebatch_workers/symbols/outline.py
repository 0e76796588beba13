"""Symbols and edges of a file, from the captures of its language's query (queries/*.scm).

The name of a capture determines the meaning of a node. The order of captures is irrelevant. Nesting is derived from
byte ranges, so no tree is traversed and depth is not limited. Captures:

    def.TYPE       a definition that encloses others; its name comes from names.py
    leaf.TYPE      a definition that encloses nothing; its name comes from names.py
    name.TYPE      a name that is itself the definition; only its first occurrence in a scope counts
    pattern.TYPE   a target that binds several names, each like name.TYPE
    field          the name of a field that a method sets: `self.x = …`
    declared       a declarator of something that is defined elsewhere (`extern` in C)
    parameter.field    a parameter of a constructor that is also a field
    function       a function in metrics; without `def`, also a scope without a name
    accessor       a function that is not a symbol and has the name of its owner: a getter, an operator
    block          a scope without a name that is not a function in metrics (closures)
    impl           Rust's `impl` and Swift's `extension`: a scope that defines nothing
    base           a type that the enclosing definition inherits from
    base.anonymous a type that a class without a name inherits from: `<anonymous>`; a `base` at the same place precedes
    call           a callee; `tail` is the last name of a callee, whose other names are before it
    source, bound  the target of an import, and a name that it binds, if the statement needs no further analysis.
                   `source` is a string. `source.file` is one from the directory of the file, `source.word` a word
    importer       the string that a call imports: `require("a")`
    property       a function that a decorator turns into a property
    command        a callee that is called as it is written
    comment        a comment; without this capture, comments count as code
    use            a name that is used; only for the names that a file uses without an import (used_names.py)
    element, component    the name of an element of markup in code, and one that names a callee
    macro, decorator, import    see the methods of this class and of relations.py

Names come from `LanguageSyntax.declared_names`, which can return other symbol types than those of the captures.
A callee that is not a chain of names needs an entry in callees.py.

Rules for all languages: a function in a class is a method, and a variable in a class is a field. Variables and
constants in a function are local and not recorded. Parameters are not recorded either. A symbol extends from its name
to the end of its definition. If a callee ends with a chain of names, the dot before it stays: `f(x).g()` calls `.g`.

The module is one class, long as it is, because the effect of a capture depends on other captures.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import cache
from typing import cast

import msgspec
from tree_sitter import Node

from codebatch.model.record import ANONYMOUS, Symbol, SymbolType
from codebatch_workers.symbols.file_outline import FileOutline
from codebatch_workers.symbols.language_symbols import OTHER_DECLARATION, LanguageSymbols
from codebatch_workers.symbols.macros import MacroBodies, MacroDefinition
from codebatch_workers.symbols.parameters_and_visibility import (
    AccessSections,
    decorator_names,
    keyword_visibilities,
    parameter_namer,
)
from codebatch_workers.symbols.relations import EnclosingScope, FileRelations
from codebatch_workers.syntax.accessor_names import accessor_name
from codebatch_workers.syntax.names import (
    NAME_BYTES_MAX,
    DeclaredName,
    strip_generics,
    strip_marks,
)
from codebatch_workers.syntax.source import SourceFile

# A longer qualified name would repeat the names of its scopes, and could grow with the depth of nesting.
_QUALIFIED_CHARS_MAX = 1024

_FUNCTION_TYPES = frozenset({"function", "method", "constructor", "property"})
_CLASS_TYPES = frozenset({"class", "struct", "union", "interface", "trait", "enum"})
_LOCAL_IN_FUNCTION = frozenset({"variable", "constant", "field"})
_FIELD_IN_CLASS = frozenset({"variable"})
_MACROS_BYTES_MAX = 32 * 1024 * 1024

_BLANK_BYTES = frozenset(b" \t\r\n\f")

_CONSTANT_NAME = re.compile(r"_*[A-Z][A-Z0-9_]*\Z")


# The scope of a macro: in C and C++, macros do not belong to the definition around them.
_FILE_SCOPE = EnclosingScope("", "file")


class _EnclosingNode(msgspec.Struct, frozen=True, gc=False):
    """A node that encloses other nodes and can be a scope."""

    start: int
    minus_end: int
    symbol_type: SymbolType
    name: DeclaredName | None
    # `MACRO(name) {` is a function at top level, but a block within a function.
    is_macro: bool = False


class _SymbolDefinition(msgspec.Struct, frozen=True, gc=False):
    start: int
    end: int
    name: str
    symbol_type: SymbolType
    scope: str
    qualified: str


def file_outline(file: SourceFile) -> FileOutline:
    """Return the symbols and edges of a file. Without a tree, it has none, except for macros in a huge C header."""
    if file.syntax.declared_names is None or (file.tree is None and not _is_macro_header(file)):
        return FileOutline([], [])
    return file.derived(_build_outline)


def _is_macro_header(file: SourceFile) -> bool:
    """Return whether a C or C++ file is too large to be parsed, but small enough to search its text for macros."""
    return file.syntax.has_macros and file.file_class == "huge" and len(file.content) <= _MACROS_BYTES_MAX


def _build_outline(file: SourceFile) -> FileOutline:
    return scope_definitions(file).build_outline()


def scope_definitions(file: SourceFile) -> ScopeDefinitions:
    """Return the scopes of a file with a tree. The task `analyze` uses them to name functions."""
    return file.derived(ScopeDefinitions)


@cache
def _split_capture(capture: str) -> tuple[str, SymbolType]:
    """Split a capture such as `def.class` into the kind of capture and the symbol type."""
    kind, _, symbol_type = capture.partition(".")
    return kind, cast("SymbolType", symbol_type.replace("assigned", "function"))


class ScopeDefinitions:
    """The scopes of a file, computed on construction. `build_outline` then computes its symbols and edges."""

    def __init__(self, file: SourceFile) -> None:
        self.file = file
        self.utf8 = file.utf8
        self.language = file.language
        self.captures: Mapping[str, list[Node]] = file.captures
        self.rules = LanguageSymbols.of(self.language)
        assert file.syntax.declared_names is not None
        self.names_of = file.syntax.declared_names
        # Most grammars accept reserved words as names, although a reserved word never is a name.
        has_error = file.tree is not None and file.tree.root_node.has_error
        is_lenient = has_error or not self.rules.rejects_reserved_names
        self.reserved = file.syntax.reserved_words if is_lenient else frozenset()
        self.separator = self.rules.scope_separator
        self.starts: list[int] = [0]
        self.scopes: list[EnclosingScope] = [EnclosingScope("", "file")]
        self.definitions: dict[int, _SymbolDefinition] = {}
        self.assigned_names: set[tuple[str, str]] = set()
        self.macros: list[MacroDefinition] = []
        self._name_marks = file.syntax.name_marks
        self._trailing_bytes = _BLANK_BYTES | frozenset(self.rules.trailing_marks)
        self._comments = {node.end_byte: node.start_byte for node in self.captures.get("comment", ())}
        self._find_scopes()

    def function_name(self, start: int) -> str:
        """Return the qualified name of the function whose node begins at the offset `start`."""
        scope = self._scope_at(start)
        return scope.qualified if scope.start >= 0 else self._qualify_name(scope.qualified, ANONYMOUS)

    def function_name_offset(self, start: int) -> int:
        """Return the offset of the name of the function whose node begins at `start`, or `start` if it has none."""
        scope = self._scope_at(start)
        return scope.start if scope.start >= 0 else start

    def has_symbol(self, start: int) -> bool:
        """Return whether the function whose node begins at `start` is also a symbol."""
        return self._scope_at(start).start in self.definitions

    def qualified_scope(self, offset: int) -> str:
        """Return the qualified name of the scope at an offset. At file level, this is the empty string."""
        return self._scope_at(offset).qualified

    def build_outline(self) -> FileOutline:
        """Compute the symbols and edges. This changes the object, so it can be called only once."""
        for capture, nodes in self.captures.items():
            kind, symbol_type = _split_capture(capture)
            if kind == "leaf":
                self._add_leaves(nodes, symbol_type)
            elif kind in ("name", "pattern"):
                self._add_assigned(nodes, symbol_type, is_pattern=kind == "pattern")
        self._add_fields()
        relations = FileRelations(self.file, self.starts, self.scopes)
        for node, scope in relations.bound:
            self._add_symbol(DeclaredName(node.start_byte, node.end_byte, "import", ""), "import", scope, node.end_byte)
        bodies = self._add_macros()
        if self.file.tree is not None:
            relations.add_macro_calls(self.macros, self.reserved)
        return FileOutline(self._make_symbols(), relations.edge_records(bodies))

    # -- Scopes --------------------------------------------------------------------------------------------------------

    def _find_scopes(self) -> None:
        """Compute `starts` and `scopes`: `scopes[i]` applies from `starts[i]` to the next offset in `starts`."""
        stack: list[tuple[int, EnclosingScope]] = []
        current = self.scopes[0]
        # The last definition with an expression as its value: `f = () => …`. A function with the same end is the value.
        assigned: _EnclosingNode | None = None
        spans, written = self._enclosing_nodes()
        for span in spans:
            while stack and stack[-1][0] <= span.start:
                end, current = stack.pop()
                self._enter_scope(end, current)
            inner = current
            if span.name is not None and not (span.is_macro and current.symbol_type in _FUNCTION_TYPES):
                inner = self._define_scope(span, span.name, current)
                is_written = (span.start, span.minus_end) in written
                assigned = span if inner.symbol_type in _FUNCTION_TYPES and not is_written else None
            elif assigned is not None and span.minus_end == assigned.minus_end:
                assigned = None
            elif span.symbol_type == "function":
                inner = EnclosingScope(current.qualified, "function")
            stack.append((-span.minus_end, current))
            self._enter_scope(span.start, inner)
            current = inner
        while stack:
            end, current = stack.pop()
            self._enter_scope(end, current)

    def _enter_scope(self, offset: int, scope: EnclosingScope) -> None:
        if self.starts[-1] == offset:
            self.scopes[-1] = scope
        else:
            self.starts.append(offset)
            self.scopes.append(scope)

    def _enclosing_nodes(self) -> tuple[list[_EnclosingNode], set[tuple[int, int]]]:
        """Return the enclosing nodes, outer before inner, and the (start, negative end) of all function nodes."""
        properties = {node.start_byte for node in self.captures.get("property", ())}
        # The keys are (start, negative end), so that sorting puts outer nodes before inner ones.
        spans: dict[tuple[int, int], _EnclosingNode] = {}
        for capture, nodes in self.captures.items():
            kind, symbol_type = _split_capture(capture)
            if kind != "def":
                continue
            for node in nodes:
                names = self._declared_names(node, symbol_type)
                if not names or names[0].end - names[0].start > NAME_BYTES_MAX:
                    continue
                name = names[0]
                start, minus_end = node.start_byte, -node.end_byte
                if start in properties:
                    name = msgspec.structs.replace(name, symbol_type="property")
                is_macro = self.rules.macros is not None and self.rules.macros.is_block(node)
                spans[start, minus_end] = _EnclosingNode(start, minus_end, name.symbol_type, name, is_macro)
        functions = {(node.start_byte, -node.end_byte) for node in self.captures.get("function", ())}
        blocks = {(node.start_byte, -node.end_byte) for node in self.captures.get("block", ())}
        for start, minus_end in (functions | blocks) - spans.keys():
            spans[start, minus_end] = _EnclosingNode(start, minus_end, "function", None)
        for node in self.captures.get("accessor", ()):
            start, minus_end = node.start_byte, -node.end_byte
            text = accessor_name(node, self.utf8)
            spans[start, minus_end] = _EnclosingNode(
                start, minus_end, "property", DeclaredName(-1, start, "property", "", text)
            )
        for node in self.captures.get("impl", ()):
            type_node = node.child_by_field_name("type") or node.child_by_field_name("name")
            if type_node is not None:
                owner = strip_generics(self.utf8[type_node.start_byte : type_node.end_byte][:NAME_BYTES_MAX]).decode(
                    "utf-8", "replace"
                )
                name = DeclaredName(-1, -1, "class", "", owner)
                start, minus_end = node.start_byte, -node.end_byte
                spans[start, minus_end] = _EnclosingNode(start, minus_end, "class", name)
        return [spans[place] for place in sorted(spans)], functions

    def _define_scope(self, span: _EnclosingNode, name: DeclaredName, outer: EnclosingScope) -> EnclosingScope:
        """Record a definition that encloses others. Return the scope for the code within this definition."""
        if name.start < 0:
            return EnclosingScope(self._qualify_name(outer.qualified, name.text), span.symbol_type, name.end)
        definition = self._add_symbol(name, span.symbol_type, outer, -span.minus_end)
        return EnclosingScope(definition.qualified, definition.symbol_type, definition.start) if definition else outer

    def _scope_at(self, offset: int) -> EnclosingScope:
        return self.scopes[bisect_right(self.starts, offset) - 1]

    def _qualify_name(self, outer: str, name: str) -> str:
        """Return the qualified name for `name` in the scope `outer`. If it would be too long, return only `outer`."""
        if not outer:
            return name
        return f"{outer}{self.separator}{name}" if len(outer) + len(name) < _QUALIFIED_CHARS_MAX else outer

    def _declared_names(self, node: Node, symbol_type: SymbolType) -> list[DeclaredName]:
        names = self.names_of(node, symbol_type, self.utf8)
        return self._without_reserved(names) if self.reserved else names

    def _without_reserved(self, names: list[DeclaredName]) -> list[DeclaredName]:
        return [name for name in names if self.utf8[name.start : name.end] not in self.reserved]

    # -- Symbols -------------------------------------------------------------------------------------------------------

    def _add_symbol(
        self, name: DeclaredName, symbol_type: SymbolType, scope: EnclosingScope, end: int
    ) -> _SymbolDefinition | None:
        """Record a symbol and return it. If its name is invalid or already recorded, return None."""
        # Each name of a tree passes here, so repeated lookups of attributes are avoided.
        start, name_end, owner, utf8 = name.start, name.end, name.owner, self.utf8
        if self._name_marks and start >= 0 and utf8[start : start + 1] in self._name_marks:
            start, name_end = strip_marks(utf8, start, name_end)
        if not 0 < name_end - start <= NAME_BYTES_MAX or start in self.definitions:
            return None
        text = name.text or utf8[start:name_end].decode("utf-8", "replace")
        if symbol_type == "function" and (owner or scope.symbol_type in _CLASS_TYPES):
            symbol_type = "method"
        outer = self._qualify_name(scope.qualified, owner) if owner else scope.qualified
        if symbol_type == "method":
            is_constructor = self.rules.is_constructor
            symbol_type = "constructor" if is_constructor is not None and is_constructor(text, outer) else "method"
        elif symbol_type == "variable" and owner:
            symbol_type = "field"
        if end < name_end or end in self._comments or utf8[end - 1] in self._trailing_bytes:
            end = self._trim_trailing_comments(name_end, end)
        qualified = self._qualify_name(outer, text) if outer else text
        definition = self.definitions[start] = _SymbolDefinition(start, end, text, symbol_type, outer, qualified)
        return definition

    def _trim_trailing_comments(self, end_min: int, end: int) -> int:
        """Return the end of a definition without trailing comments and white space, which some grammars include."""
        while end > end_min and (end in self._comments or self.utf8[end - 1] in self._trailing_bytes):
            end = self._comments.get(end, end - 1)
        return max(end, end_min)

    def _add_leaves(self, nodes: list[Node], symbol_type: SymbolType) -> None:
        externs = self.captures.get("declared", ()) if symbol_type == "variable" else ()
        declared = {node.start_byte for node in externs}
        for node in nodes:
            start = node.start_byte
            scope = self._scope_at(start)
            if (symbol_type in _LOCAL_IN_FUNCTION and scope.symbol_type in _FUNCTION_TYPES) or start in declared:
                continue
            kind = "field" if symbol_type in _FIELD_IN_CLASS and scope.symbol_type in _CLASS_TYPES else symbol_type
            for name in self._declared_names(node, symbol_type):
                self._add_symbol(
                    name, name.symbol_type if name.symbol_type != symbol_type else kind, scope, node.end_byte
                )

    def _add_assigned(self, nodes: list[Node], symbol_type: SymbolType, *, is_pattern: bool) -> None:
        is_local_kind = symbol_type in _LOCAL_IN_FUNCTION
        for node in nodes:
            start = node.start_byte
            scope = self._scope_at(start)
            if is_local_kind and scope.symbol_type in _FUNCTION_TYPES:
                continue
            if symbol_type == "field" and scope.symbol_type == "file" and self.rules.has_unnamed_types:
                continue
            if is_pattern:
                names = self._declared_names(node, symbol_type)
            else:
                names = [DeclaredName(start, node.end_byte, symbol_type, "")]
                if self.reserved:
                    names = self._without_reserved(names)
            for name in names:
                self._add_first(name, symbol_type, scope)

    def _add_first(self, name: DeclaredName, symbol_type: SymbolType, scope: EnclosingScope) -> None:
        """Record the first assignment to a name in a scope as its definition. Ignore further assignments."""
        text = self.utf8[name.start : name.end].decode("utf-8", "replace")
        key = (scope.qualified, text)
        if key in self.assigned_names or text == "_":
            return
        self.assigned_names.add(key)
        if symbol_type in _FIELD_IN_CLASS and scope.symbol_type in _CLASS_TYPES:
            symbol_type = "field"
        elif symbol_type == "variable" and self.rules.capitals_are_constants and _CONSTANT_NAME.match(text):
            symbol_type = "constant"
        self._add_symbol(name, symbol_type, scope, name.end)

    def _add_fields(self) -> None:
        """Record the fields of a class that its methods set, and those that parameters of its constructor declare."""
        for node in self.captures.get("field", ()):
            scope = self._scope_at(node.start_byte)
            if scope.symbol_type in ("method", "constructor", "property"):
                self._add_first(DeclaredName(node.start_byte, node.end_byte, "field", ""), "field", _class_of(scope))
        for node in self.captures.get("parameter.field", ()):
            start, end = node.start_byte, node.end_byte
            scope = self._scope_at(start)
            if scope.symbol_type == "constructor" or self.rules.parameters.declare_fields:
                self._add_symbol(DeclaredName(start, end, "field", ""), "field", _class_of(scope), end)

    def _add_macros(self) -> MacroBodies:
        """Record macros. Drop symbols that the grammar found in their bodies. Return the bodies."""
        if self.rules.macros is not None:
            self.macros = self.rules.macros.find_macros(self.utf8, self.captures.get("comment", []))
        macros_found = self.macros
        bodies = MacroBodies(macros_found)
        if bodies:
            self.definitions = {start: symbol for start, symbol in self.definitions.items() if start not in bodies}
        for macro in macros_found:
            self.definitions.pop(macro.start, None)
            self._add_symbol(DeclaredName(macro.start, macro.name_end, "macro", ""), "macro", _FILE_SCOPE, macro.end)
        return bodies

    # -- Records -------------------------------------------------------------------------------------------------------

    def _make_symbols(self) -> list[Symbol]:
        path, path_b64 = self.file.path_fields
        position, lines, is_ascii = self.file.position, self.file.line_starts, self.file.is_ascii
        symbols = []
        starts = sorted(self.definitions)
        parameters = self._parameters_by_offset()
        decorators = decorator_names(self.captures, self.utf8, starts, self._is_in_parameters)
        read_declarations = self.rules.type_declarations
        declarations = {} if read_declarations is None else read_declarations(self.captures, self.utf8, starts)
        keywords = keyword_visibilities(self.captures, self.utf8, starts)
        sections = AccessSections(self.captures, self.utf8, lambda offset: self._scope_at(offset).qualified)
        kinds = {definition.qualified: definition.symbol_type for definition in self.definitions.values()}
        rule = self.rules.visibility
        last_line, says_visibility = len(lines), bool(keywords) or bool(sections)
        for start in starts:
            definition = self.definitions[start]
            name, symbol_type, scope, end = definition.name, definition.symbol_type, definition.scope, definition.end
            visibility = None
            if says_visibility:
                visibility = keywords.get(start) or (sections.visibility_at(scope, start) if sections else None)
            if visibility is None:
                visibility = "public" if rule is None else rule(name, symbol_type, kinds.get(scope, ""))
            line = bisect_right(lines, start)
            end_line = line if line == last_line or end < lines[line] else bisect_right(lines, end, line)
            if is_ascii:
                column, end_column = start - lines[line - 1] + 1, end - lines[end_line - 1] + 1
            else:
                column, end_column = position(start)[1], position(end)[1]
            declaration = declarations.get(start, OTHER_DECLARATION)
            symbols.append(
                Symbol(
                    path=path,
                    path_b64=path_b64,
                    name=name,
                    symbol_type=symbol_type,
                    qualified=definition.qualified,
                    scope=scope,
                    line=line,
                    column=column,
                    end_line=end_line,
                    end_column=end_column,
                    parameters=parameters.get(start, ()),
                    decorators=decorators.get(start, ()),
                    type_parameters=declaration.type_parameters,
                    is_partial=declaration.is_partial,
                    is_conditional=declaration.is_conditional,
                    visibility=visibility,
                )
            )
        return symbols

    def _parameters_by_offset(self) -> dict[int, tuple[str, ...]]:
        """Map the offset of a function's name to the names of its parameters."""
        names_by_function: dict[int, list[str]] = {}
        name_of = parameter_namer(self.utf8, self.rules.parameters)
        # Most parameters are in the same scope as the previous parameter, so the scope is looked up only if needed.
        function, scope_end = -1, 0
        for node in self.captures.get("parameter", ()):
            start = node.start_byte
            if start >= scope_end:
                following = bisect_right(self.starts, start)
                scope = self.scopes[following - 1]
                function = scope.start if scope.symbol_type in _FUNCTION_TYPES else -1
                scope_end = self.starts[following] if following < len(self.starts) else len(self.utf8)
            if function >= 0 and (name := name_of(node, start)):
                names_by_function.setdefault(function, []).append(name)
        names = {start: tuple(parameters) for start, parameters in names_by_function.items()}
        names.update({macro.start: tuple(macro.parameters) for macro in self.macros if macro.parameters})
        return names

    def _is_in_parameters(self, offset: int) -> bool:
        """Return whether a decorator at an offset belongs to a parameter."""
        return self.rules.parameters.have_decorators and self._scope_at(offset).symbol_type in (
            "method",
            "constructor",
        )


def _class_of(method: EnclosingScope) -> EnclosingScope:
    return EnclosingScope(method.qualified.rpartition(".")[0], "class")
