"""Types in C# files: the meaning of a type as written, and the members of a type."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec
from tree_sitter import Node

from codebatch.model.analysis.uses import Certainty, least_certain
from codebatch.model.record import Edge, Symbol
from codebatch_workers.syntax.bindings import BoundName, find_bindings
from codebatch_workers.syntax.nodes import ancestors
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.file_symbol import FileSymbol, SymbolMeaning
from codebatch_workers.uses.language_rules import CLASS_TYPES, LINK_CERTAINTY, NAMESPACE_TYPES

_STEPS_MAX = 16
_TYPE_NODES = frozenset({"identifier", "generic_name", "qualified_name", "alias_qualified_name"})
_DECLARATIONS = frozenset(
    {
        *("class_declaration", "enum_declaration", "interface_declaration"),
        *("record_declaration", "struct_declaration"),
    }
)
# By convention, only names of interfaces begin so. A class does not inherit members of interfaces.
_INTERFACE_NAME = re.compile(r"I[A-Z]")


class CSharpMembers(msgspec.Struct, frozen=True):
    """The members with a name of the nearest class that has any.

    `is_open` is set if an unknown class could have a member of this name that comes first. `inherited` has the members
    of further bases.
    """

    found: tuple[FileSymbol, ...] = ()
    is_open: bool = False
    inherited: tuple[FileSymbol, ...] = ()


class CSharpTypes:
    """The types of one snapshot. `facts_of` returns the facts of a file, or None."""

    def __init__(self, facts_of: Callable[[str], SourceFacts | None]) -> None:
        self._facts_of = facts_of

    def find_type_node(self, facts: SourceFacts, node: Node) -> SymbolMeaning | None:
        """Return what the node of a type means. Return None if it is unknown, or not one type of the snapshot."""
        while node.type == "nullable_type" and (inner := node.child_by_field_name("type")) is not None:
            node = inner
        if node.type not in _TYPE_NODES:
            return None
        written, arity = written_type(facts, node)
        return self.find_type(facts, node, written, arity)

    def find_type(
        self, facts: SourceFacts, node: Node, written: str, arity: int = 0, *, is_attribute: bool = False
    ) -> SymbolMeaning | None:
        """Return what a type as written at a node means."""
        parts = written.removeprefix("global::").split(".")
        if len(parts) == 1:
            bound = local_definition(facts, node, parts[0])
            if bound is not None and bound.kind == "type_parameter":
                return None
        for count in range(len(parts), 0, -1):
            outer_arity = arity if count == len(parts) else 0
            found = self._find_outermost(facts, node, ".".join(parts[:count]), outer_arity, is_attribute=is_attribute)
            if found is not None:
                return self._find_nested(found, parts[count:])
        return None

    def enclosing_types(self, facts: SourceFacts, node: Node) -> Iterator[SymbolMeaning]:
        """Yield the types around a node, the innermost first."""
        for above in ancestors(node):
            name = above.child_by_field_name("name") if above.type in _DECLARATIONS else None
            symbol = None if name is None else facts.symbol_at(name.start_byte)
            if symbol is not None:
                yield self._with_other_parts(facts, symbol)

    # -- Lookup --------------------------------------------------------------------------------------------------------

    def _find_outermost(
        self, facts: SourceFacts, node: Node, written: str, arity: int, *, is_attribute: bool
    ) -> SymbolMeaning | None:
        names = (f"{written}Attribute", written) if is_attribute else (written,)
        if "." not in written:
            for name in names:
                for enclosing in self.enclosing_types(facts, node):
                    nested = self._find_nested(enclosing, [name])
                    if nested is not None:
                        return nested if nested.symbols[0].symbol.type_parameters == arity else None
            for name in names:
                own = _own_types(facts, node, name, arity)
                if own:
                    is_one = len(own) == 1 or all(symbol.is_partial for symbol in own)
                    return self._with_other_parts(facts, own[0]) if is_one else None
            for imported in facts.imports_of(written):
                return self._follow(facts.links_of(imported), (imported.target.rpartition(".")[2],), None)
        last_names = tuple(name.rpartition(".")[2] for name in names)
        return self._follow(facts.implicit_links.get(written, ()), last_names, arity)

    def _follow(self, edges: Sequence[Edge], names: Sequence[str], arity: int | None) -> SymbolMeaning | None:
        """Return the type to which links lead. They are the parts of one type, or different types."""
        certainty: Certainty = "exact"
        for name in names:
            parts: list[FileSymbol] = []
            for edge in edges:
                target = self._facts_of(edge.target) if edge.resolution != "external" else None
                found = [] if target is None else _types_named(target, name, arity)
                if target is not None and found:
                    certainty = least_certain(certainty, LINK_CERTAINTY[edge.resolution])
                    parts.extend(FileSymbol(target, symbol) for symbol in found)
            if parts:
                is_one = len(parts) == 1 or all(part.symbol.is_partial for part in parts)
                return SymbolMeaning(certainty if is_one else "name", tuple(parts))
        return None

    def _find_nested(self, outer: SymbolMeaning, names: Sequence[str]) -> SymbolMeaning | None:
        found = outer
        for name in names:
            nested = tuple(
                FileSymbol(part.facts, symbol)
                for part in found.symbols
                for symbol in part.facts.symbols_named(f"{part.symbol.qualified}.{name}")
                if symbol.symbol_type in CLASS_TYPES
            )
            if not nested or (len(nested) > 1 and not all(part.symbol.is_partial for part in nested)):
                return None
            found = SymbolMeaning(found.certainty, nested)
        return found

    def _with_other_parts(self, facts: SourceFacts, symbol: Symbol) -> SymbolMeaning:
        if not symbol.is_partial:
            return SymbolMeaning("exact", (FileSymbol(facts, symbol),))
        own = [FileSymbol(facts, part) for part in facts.symbols_named(symbol.qualified) if part.is_partial]
        linked = self._follow(facts.implicit_links.get(symbol.name, ()), (symbol.name,), symbol.type_parameters)
        others = () if linked is None else tuple(part for part in linked.symbols if part.facts is not facts)
        return SymbolMeaning("exact", (*own, *others))

    # -- Members -------------------------------------------------------------------------------------------------------

    def members(self, owner: SymbolMeaning, name: str, steps: int = 0, *, with_own: bool = True) -> CSharpMembers:
        """Return the members with a name of a type, or of its bases."""
        found = tuple(
            FileSymbol(part.facts, symbol)
            for part in owner.symbols
            for symbol in part.facts.symbols_named(f"{part.symbol.qualified}.{name}")
            if symbol.symbol_type != "constructor"
        )
        if any(_shares_its_name(part) for part in owner.symbols):
            return CSharpMembers(is_open=True)
        # A part in another file is known only if this file uses the name of the type.
        is_open = len(owner.symbols) == 1 and owner.symbols[0].symbol.is_partial
        if with_own and found and not any(symbol.symbol.symbol_type in ("method", "function") for symbol in found):
            return CSharpMembers(found)
        inherited = self._inherited(owner, name, steps) if steps < _STEPS_MAX else CSharpMembers(is_open=True)
        if with_own and found:
            further = (*inherited.found, *inherited.inherited)
            return CSharpMembers(found, is_open or inherited.is_open, further)
        return CSharpMembers(inherited.found, is_open or inherited.is_open, inherited.inherited)

    def _inherited(self, owner: SymbolMeaning, name: str, steps: int) -> CSharpMembers:
        is_interface = owner.symbols[0].symbol.symbol_type == "interface"
        found: list[FileSymbol] = []
        is_open = False
        for part, node in _base_nodes(owner):
            base = self.find_type_node(part.facts, node)
            written, _ = written_type(part.facts, node)
            if base is None or base.certainty == "name":
                is_open = is_open or is_interface or not _INTERFACE_NAME.match(written.rpartition(".")[2])
            elif is_interface or base.symbols[0].symbol.symbol_type != "interface":
                members = self.members(base, name, steps + 1)
                found += (*members.found, *members.inherited)
                is_open = is_open or members.is_open or base.certainty != "exact"
        unique = {symbol.place: symbol for symbol in found}
        nearest = tuple(symbol for symbol in unique.values() if found and symbol.symbol.scope == found[0].symbol.scope)
        return CSharpMembers(nearest, is_open, tuple(symbol for symbol in unique.values() if symbol not in nearest))


def written_type(facts: SourceFacts, node: Node) -> tuple[str, int]:
    """Return the name of a type without its type arguments, and the number of the arguments of its last name."""
    if node.type == "generic_name":
        arguments = next((child for child in node.named_children if child.type == "type_argument_list"), None)
        count = 0 if arguments is None else arguments.named_child_count or 1 + facts.text(arguments).count(",")
        return facts.text(node.named_children[0]).lstrip("@"), count
    if node.type == "qualified_name":
        qualifier, name = node.child_by_field_name("qualifier"), node.child_by_field_name("name")
        if qualifier is not None and name is not None:
            last, arity = written_type(facts, name)
            return f"{written_type(facts, qualifier)[0]}.{last}", arity
    return "".join(facts.text(node).split()).lstrip("@"), 0


def local_definition(facts: SourceFacts, node: Node, name: str) -> BoundName | None:
    """Return the definition of a local variable, parameter or type parameter that a name at a node means, or None."""
    bindings = find_bindings(facts.file)
    scope = None if bindings is None or not bindings.scopes else bindings.scope_at(node.start_byte)
    while scope is not None and scope.parent is not None:
        found = [
            bound
            for bound in scope.names.get(name.encode(), ())
            if bound.start <= node.start_byte or bound.kind in ("function", "type_parameter")
        ]
        if found:
            return found[-1]
        scope = scope.parent
    return None


def _base_nodes(owner: SymbolMeaning) -> Iterator[tuple[FileSymbol, Node]]:
    for part in owner.symbols:
        declaration = part.declaration
        for bases in declaration.named_children if declaration is not None else ():
            for base in bases.named_children if bases.type == "base_list" else ():
                node = base.child_by_field_name("type") if base.type == "primary_constructor_base_type" else base
                if node is not None and node.type in _TYPE_NODES:
                    yield part, node


def _own_types(facts: SourceFacts, node: Node, name: str, arity: int) -> list[Symbol]:
    """Return the types of the file outside other types that a name at a node means."""
    types = _types_named(facts, name, arity)
    namespaces = [symbol for symbol in facts.all_symbols if _is_namespace(symbol)]
    if len(namespaces) < 2 or not types:
        return types
    around = _namespace_around(facts, node)
    return [symbol for symbol in types if f"{around}.".startswith(f"{symbol.scope}." if symbol.scope else "")]


def _namespace_around(facts: SourceFacts, node: Node) -> str:
    namespaces = (above for above in ancestors(node) if above.type == "namespace_declaration")
    names = [facts.text(name) for outer in namespaces if (name := outer.child_by_field_name("name")) is not None]
    return ".".join(reversed(names))


def _types_named(facts: SourceFacts, name: str, arity: int | None) -> list[Symbol]:
    """Return the types of a file outside other types that have a name and a number of type parameters."""
    return [
        symbol
        for symbol in facts.all_symbols
        if symbol.name == name
        and symbol.symbol_type in CLASS_TYPES
        and (arity is None or symbol.type_parameters == arity)
        and (not symbol.scope or any(_is_namespace(outer) for outer in facts.symbols_named(symbol.scope)))
    ]


def _is_namespace(symbol: Symbol) -> bool:
    return symbol.symbol_type in NAMESPACE_TYPES


def _shares_its_name(part: FileSymbol) -> bool:
    """Return whether a file has types with the same name. Their members have equal qualified names."""
    types = [symbol for symbol in part.facts.symbols_named(part.symbol.qualified) if symbol.symbol_type in CLASS_TYPES]
    return len({symbol.type_parameters for symbol in types}) > 1
