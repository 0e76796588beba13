"""Facts about one file that the resolution of uses needs: definitions, imports, bases and links to other files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Literal

from tree_sitter import Node

from codebatch.model.analysis.uses import Certainty, Definition
from codebatch.model.record import Edge, Symbol
from codebatch_workers.symbols.file_exports import ModuleExport
from codebatch_workers.symbols.file_outline import FileOutline
from codebatch_workers.symbols.imported_names import LocalImport
from codebatch_workers.symbols.language_symbols import LanguageSymbols
from codebatch_workers.symbols.local_names import LocalNames
from codebatch_workers.symbols.outline import file_outline
from codebatch_workers.syntax.bindings import BoundName, FileBindings, find_bindings
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.uses.chains import NameChain, chain_at, node_chain
from codebatch_workers.uses.declarations import Declaration, bound_declaration, function_node, pattern_of
from codebatch_workers.uses.language_rules import CLASS_TYPES, FUNCTION_TYPES, FieldOrigin, LanguageRules
from codebatch_workers.uses.local_imports import local_imports
from codebatch_workers.uses.lookup_budget import LookupBudget

_NO_RULES = LanguageRules()
# Nodes whose first part is a label, in languages whose rules have no labels: arguments with names, keys of literals.
_LABEL_OWNERS = frozenset({"argument", "field", "field_designator", "field_initializer", "pair", "value_argument"})

_DECLARATORS = frozenset({"operator_name", "pointer_declarator", "qualified_identifier", "template_function"})


class SourceFacts:
    """Facts about a file.

    `links` are the `depends` edges of the file. `budget` bounds the lookups of definitions. `rules` are those of the
    language of the file, or None if uses are not resolved in it.

    The class has many methods, because each fact is computed from the same tree and cached with it.
    """

    def __init__(
        self, path: str, file: SourceFile, links: Sequence[Edge], budget: LookupBudget, rules: LanguageRules | None
    ) -> None:
        self.path = path
        self._budget = budget
        self.file = file
        self.language = file.language
        self.rules = rules or _NO_RULES
        self.is_resolved = rules is not None and rules.is_resolved and file.tree is not None
        self._outline: FileOutline = file_outline(file)
        self.symbols: dict[str, list[Symbol]] = defaultdict(list)
        # `const a = require("a")` is a variable and an import.
        imported = {(name.local, name.line) for name in self.imports} if self.has_exports else set()
        for symbol in self._outline.symbols:
            if symbol.symbol_type != "import" and (symbol.name, symbol.line) not in imported:
                self.symbols[symbol.qualified].append(symbol)
        self.implicit_links: dict[str, list[Edge]] = defaultdict(list)
        self.explicit_links: dict[str, list[Edge]] = defaultdict(list)
        self.links_by_line: dict[int, list[Edge]] = defaultdict(list)
        for edge in links:
            (self.implicit_links if edge.implicit else self.explicit_links)[edge.imported].append(edge)
            if not edge.implicit:
                self.links_by_line[edge.line].append(edge)

    @cached_property
    def separator(self) -> str:
        """The text between the components of qualified names in symbol records."""
        return LanguageSymbols.of(self.language).scope_separator

    @cached_property
    def imports(self) -> Sequence[LocalImport]:
        """The names that imports bind in the file, and the imports of all names of a module."""
        return local_imports(self.file, self.rules.bind_import)

    def links_of(self, imported: LocalImport) -> Sequence[Edge]:
        """Return the `depends` edges of an import.

        If several names are imported from one file in one line, only the first has an edge. Raises TooManyLookups.
        """
        self._budget.spend()
        target, line, modules = imported.target, imported.line, self.rules.modules
        if target in self.explicit_links or modules is None:
            return self.explicit_links.get(target, ())
        module = target.rpartition(".")[0]
        return [
            edge
            for edge in self.links_by_line.get(line, ())
            if edge.imported.rpartition(".")[0] == module
            and not modules.is_module(edge.imported, self.path, edge.target)
        ]

    @cached_property
    def bindings(self) -> FileBindings | None:
        """All names that the file binds, if the language has rules for them."""
        return find_bindings(self.file) if self.rules.has_bindings and self.is_resolved else None

    @cached_property
    def _imports_by_start(self) -> dict[int, list[LocalImport]]:
        imports: dict[int, list[LocalImport]] = defaultdict(list)
        for imported in self.imports:
            imports[imported.start].append(imported)
        return imports

    @cached_property
    def _symbols_by_place(self) -> dict[tuple[int, int], Symbol]:
        return {(symbol.line, symbol.column): symbol for symbol in self.all_symbols}

    def bound_names(self, name: str, offset: int | None) -> Sequence[BoundName]:
        """Return the definitions of a name that is used at an offset, or at the outermost level of the file."""
        bindings = self.bindings
        if bindings is None or not bindings.scopes:
            return ()
        if offset is None:
            return bindings.scopes[0].names.get(name.encode(), ())
        if name in self.rules.names_of_class_bodies and bindings.scope_at(offset).is_class:
            return ()
        found = bindings.find_definitions(offset, name.encode())
        return () if found is None else found[1]

    def plain_definitions(self, name: Node) -> Sequence[BoundName]:
        """Return the definitions of a name, if all of them are local variables and parameters without a symbol."""
        found = self.bound_names(self.text(name), name.start_byte)
        is_plain = all(not self.imports_at(one.start) and self.symbol_at(one.start) is None for one in found)
        return found if is_plain else ()

    def is_local_variable(self, offset: int, name: str) -> bool:
        """Return whether a name that is used at an offset is a local variable, which no import binds."""
        if not self.local_names.receiver(offset, name.encode()):
            return False
        return not any(self.imports_at(bound.start) for bound in self.bound_names(name, offset))

    def is_local(self, bound: BoundName) -> bool:
        """Return whether a definition is in a function or a block."""
        scope = None if self.bindings is None else self.bindings.scope_at(bound.start)
        return scope is not None and scope.parent is not None and not scope.is_class

    def is_builtin(self, name: str) -> bool:
        """Return whether a name that the file does not bind is built into the language."""
        return name in self.rules.builtins and not self.has_star_imports

    @property
    def has_star_imports(self) -> bool:
        """Whether an import binds names that it does not list."""
        return any(not imported.local for imported in self.imports)

    def star_visibility(self, name: str) -> Certainty:
        """Return how certain it is that an import of all names binds a name. The result is `name` if it does not."""
        return "exact" if self.rules.modules is None else self.rules.modules.star_visibility(self.file, name)

    def imports_at(self, start: int) -> Sequence[LocalImport]:
        """Return the imports that bind the name at an offset."""
        return self._imports_by_start.get(start, ())

    def symbol_at(self, start: int) -> Symbol | None:
        """Return the definition whose name is at an offset."""
        return self._symbols_by_place.get(self.file.position(start))

    @cached_property
    def has_exports(self) -> bool:
        """Whether other files see only the names that a file exports."""
        return LanguageSymbols.of(self.language).exports is not None

    @cached_property
    def exports(self) -> Sequence[ModuleExport]:
        """The names that a module exports, in languages with exports."""
        read_exports = LanguageSymbols.of(self.language).exports
        return () if read_exports is None else read_exports(self.file).exports

    @cached_property
    def local_names(self) -> LocalNames:
        """The local variables and parameters of the file."""
        return LocalNames(
            self.file,
            self.rules.read_type,
            is_sequential=self.rules.is_sequential,
            capitals_construct=self.rules.capitals_construct,
        )

    @cached_property
    def bases(self) -> dict[str, list[str]]:
        """The bases of each class as written, by the qualified name of the class."""
        bases: dict[str, list[str]] = defaultdict(list)
        for edge in self._outline.edges:
            if edge.edge_type == "inherits":
                bases[edge.source].append(edge.target)
        return bases

    def imports_of(self, local: str) -> Iterable[LocalImport]:
        """Return the imports that bind a local name."""
        return [imported for imported in self.imports if imported.local == local]

    @property
    def all_symbols(self) -> Iterator[Symbol]:
        """All definitions of the file."""
        return chain.from_iterable(self.symbols.values())

    def symbols_named(self, qualified: str) -> Sequence[Symbol]:
        """Return the definitions with a qualified name. Raises TooManyLookups."""
        self._budget.spend()
        return self.symbols.get(qualified, ())

    def scopes(self, scope: str) -> Iterator[str]:
        """Yield the qualified names of a scope and of all scopes around it, the innermost first."""
        while scope:
            yield scope
            scope = scope.rpartition(self.separator)[0]

    def enclosing_class(self, scope: str) -> str | None:
        """Return the qualified name of the innermost class that encloses a scope."""
        return next((outer for outer in self.scopes(scope) if self.is_class(outer)), None)

    def is_class(self, qualified: str) -> bool:
        """Return whether the file defines a class with a qualified name."""
        return bool(self.classes_named(qualified))

    def classes_named(self, qualified: str) -> list[Symbol]:
        """Return the classes and other types that the file defines with a qualified name."""
        return [symbol for symbol in self.symbols_named(qualified) if symbol.symbol_type in CLASS_TYPES]

    def suffix_symbols(self, components: Sequence[str]) -> Sequence[Symbol]:
        """Return the definitions that the longest possible end of a chain of names names."""
        for first in range(len(components)):
            symbols = self.symbols_named(self.separator.join(components[first:]))
            if symbols:
                return symbols
        return ()

    def type_of(self, symbol: Symbol) -> str:
        """Return the declared type of a variable or field, or the class of which its value is constructed."""
        name = self.name_of(symbol)
        return "" if name is None else self.local_names.declared_type(name)

    def node_at(self, offset: int) -> Node | None:
        """Return the name at an offset."""
        tree = self.file.tree
        return None if tree is None else tree.root_node.named_descendant_for_byte_range(offset, offset + 1)

    def name_at(self, start: int, end: int) -> Node | None:
        """Return the node of the name that has the given offsets, or None if there is no such node."""
        tree = self.file.tree
        node = None if tree is None else tree.root_node.named_descendant_for_byte_range(start, end)
        return None if node is None or (node.start_byte, node.end_byte) != (start, end) else node

    def name_of(self, symbol: Symbol) -> Node | None:
        """Return the node of the name of a symbol."""
        return self.node_at(self.offset(symbol))

    def declaration_of(self, symbol: Symbol) -> Node | None:
        """Return the node that declares a symbol: the parent of its name. For a variable, this is one declarator."""
        name = self.name_of(symbol)
        return None if name is None else name.parent

    def function_of(self, symbol: Symbol) -> Node | None:
        """Return the function that a symbol declares: its declaration, or the function that it is set to."""
        name = self.name_of(symbol)
        return None if name is None else function_node(name)

    def text(self, node: Node) -> str:
        """Return the text of a node."""
        return self.file.utf8[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def chain_of(self, name: Node) -> NameChain:
        """Return the chain of names that ends with a name."""
        return self.chain_at(name.start_byte, name.end_byte)

    def chain_at(self, start: int, end: int) -> NameChain:
        """Return the chain of names whose last name is at the given offsets."""
        name = None if self.bindings is None else self.name_at(start, end)
        if name is not None:
            return node_chain(name, self.file.utf8)
        return chain_at(self.file.utf8, start, end, has_arrows=self.rules.has_arrows)

    def declaration(self, bound: BoundName) -> Declaration:
        """Return what the definition of a name states about its value."""
        return bound_declaration(bound, self.file.utf8, self.rules.values.read_loop)

    def origin_of(self, member: Symbol) -> FieldOrigin:
        """Return the code that introduces a member of a class."""
        name = self.name_of(member) if member.symbol_type == "field" else None
        return "declared" if name is None or self.rules.field_origin is None else self.rules.field_origin(name)

    def is_label(self, name: Node) -> bool:
        """Return whether a name is that of an argument or the key of a value."""
        parent = name.parent
        if parent is None or parent.type not in self.rules.labels:
            return False
        label = parent.child_by_field_name("name") or parent.child_by_field_name("key") or parent.named_children[0]
        return label.start_byte == name.start_byte

    def meaning(self, chain: NameChain, start: int) -> Literal["", "local", "label"]:
        """Return whether the unresolved reference at an offset is a local variable or a label, as in NameUse."""
        node = self.node_at(start)
        parent = None if node is None else node.parent
        if node is None or parent is None:
            return ""
        if parent.type != "pair_pattern" and (self.is_label(node) or _is_first_of_pair(node, parent)):
            return "label"
        if len(chain.names) > 1 or chain.is_open or chain.is_absolute or pattern_of(node) is not None:
            return ""
        if self.rules.is_local_name is not None:
            return "local" if self.rules.is_local_name(node) else ""
        name = chain.names[0]
        is_local = self.local_names.receiver(start, name.encode()) != "" and self.local_symbol(start, name) is None
        return "local" if is_local else ""

    def local_symbol(self, offset: int, name: str) -> Symbol | None:
        """Return the only definition of a local variable, if it is one, such as a function expression."""
        bound = self.bound_names(name, offset)
        return self.symbol_at(bound[0].start) if len(bound) == 1 else None

    def definition(self, symbol: Symbol) -> Definition:
        """Return a symbol of the file as a definition."""
        place = (self.path, symbol.line, symbol.column)
        return Definition(
            *place, symbol.qualified, symbol.name, symbol.symbol_type, is_signature=self._is_signature(symbol)
        )

    def _is_signature(self, symbol: Symbol) -> bool:
        """Return whether a symbol declares a function whose code another definition has, or is a setter."""
        signatures = self.rules.signatures if symbol.symbol_type in FUNCTION_TYPES else frozenset()
        is_scripted_method = symbol.symbol_type == "method" and self.rules.has_bindings
        name = self.name_of(symbol) if signatures or is_scripted_method else None
        function = None if name is None else self.function_at(name)
        around = None if function is None else function.parent
        types = {node.type for node in (function, around) if node is not None}
        is_setter = function is not None and is_scripted_method and any(one.type == "set" for one in function.children)
        return is_setter or not signatures.isdisjoint({*types, *symbol.decorators})

    def function_at(self, name: Node) -> Node | None:
        """Return the declaration of the function with a name, without a node for its result type in C++."""
        around = name.parent
        while around is not None and around.type in _DECLARATORS:
            around = around.parent
        return around

    def offset(self, symbol: Symbol) -> int:
        """Return the offset of the name of a symbol."""
        return self.offset_at(symbol.line, symbol.column)

    def offset_at(self, line: int, column: int) -> int:
        """Return the offset of a place in the file."""
        start = self.file.line_starts[line - 1]
        if self.file.is_ascii:
            return start + column - 1
        text = self.file.utf8[start : start + 4 * column].decode("utf-8", "ignore")
        return start + len(text[: column - 1].encode())


def _is_first_of_pair(node: Node, parent: Node) -> bool:
    children = parent.named_children if parent.type in _LABEL_OWNERS else []
    has_value = len(children) > 1 or parent.type == "field_designator"
    return has_value and children[0].start_byte == node.start_byte
