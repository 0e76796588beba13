"""Uses of names in PHP, resolved by namespaces, imports, bases, traits, and stated types.

The place of a name decides whether it means a class, a function, or a member of a class. An object has the type of its
parameter, property or method, or the class of which it is constructed. An object can be one of a subclass, so its
members are at most `inferred`. Members of a class that is named (`Price::of()`, `self::of()`) can be `exact`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from tree_sitter import Node

from codebatch.model.analysis.uses import EXTERNAL, UNKNOWN, Certainty, Resolved, least_certain, resolve_to
from codebatch.model.record import Edge, Symbol
from codebatch_workers.languages.php.classes import bases_of, class_around, traits_of
from codebatch_workers.languages.php.names import imported_names
from codebatch_workers.symbols.imported_names import ImportedName, LocalImport
from codebatch_workers.syntax.bindings import BoundName, find_bindings
from codebatch_workers.syntax.nodes import is_field
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.file_symbol import FileSymbol, SymbolMeaning
from codebatch_workers.uses.language_resolver import LanguageResolver, LanguageUses
from codebatch_workers.uses.language_rules import CLASS_TYPES, LINK_CERTAINTY, LanguageRules

_STEPS_MAX = 24
_FUNCTIONS = frozenset({"function"})
_METHODS = frozenset({"method", "constructor"})
_PROPERTIES = frozenset({"field"})
_CONSTANTS = frozenset({"constant", "enum_member"})
_NAME_NODES = frozenset({"name", "qualified_name", "relative_name"})
_CLASS_PLACES = frozenset(
    {
        *("attribute", "base_clause", "class_interface_clause"),
        *("named_type", "object_creation_expression", "use_declaration"),
    }
)
_MEMBER_CALLS = frozenset({"member_call_expression", "nullsafe_member_call_expression"})
_MEMBER_ACCESSES = frozenset({"member_access_expression", "nullsafe_member_access_expression"})
_FactsOf = Callable[[str], SourceFacts | None]


class PhpUses(LanguageResolver):
    """The resolution of uses in PHP."""

    def resolve(self, facts: SourceFacts, node: Node, scope: str) -> Resolved:
        if node.type not in ("name", "variable_name") or node.parent is None:
            return UNKNOWN
        if node.type == "name" and node.parent.type == "variable_name":
            node = node.parent
        found = _PhpUse(facts, self.facts_of).find(node)
        if found is None:
            return UNKNOWN
        if found.certainty == "external":
            return EXTERNAL
        return resolve_to(found.certainty, (symbol.definition for symbol in found.symbols))


class _PhpUse:
    """The resolution of names in one file."""

    def __init__(self, facts: SourceFacts, facts_of: _FactsOf) -> None:
        self._facts = facts
        self._facts_of = facts_of

    def find(self, node: Node) -> SymbolMeaning | None:
        """Return what a name means, by the place of its node."""
        parent = node.parent
        if parent is None:
            return None
        if node.type == "variable_name":
            is_static = parent.type == "scoped_property_access_expression" and is_field(parent, "name", node)
            return (
                self._find_static_member(parent, _text(self._facts, node).lstrip("$"), _PROPERTIES)
                if is_static
                else None
            )
        if parent.type in ("qualified_name", "relative_name"):
            if parent.named_children[-1] != node:
                return None
            node, parent = parent, parent.parent or parent
        written = _text(self._facts, node)
        if parent.type in _CLASS_PLACES or _is_class_before_member(parent, node):
            return self._find_class(self._facts, written, node)
        if parent.type == "function_call_expression" and is_field(parent, "function", node):
            return self._find_function(written)
        if parent.type in _MEMBER_CALLS and is_field(parent, "name", node):
            return self._find_object_member(parent, written, _METHODS)
        if parent.type in _MEMBER_ACCESSES and is_field(parent, "name", node):
            return self._find_object_member(parent, written, _PROPERTIES)
        if parent.type == "scoped_call_expression" and is_field(parent, "name", node):
            return self._find_static_member(parent, written, _METHODS)
        if parent.type == "class_constant_access_expression" and parent.named_children[-1] == node:
            return self._find_static_member(parent, written, _CONSTANTS)
        return None

    # -- Classes and functions -----------------------------------------------------------------------------------------

    def _find_class(self, facts: SourceFacts, written: str, node: Node) -> SymbolMeaning | None:
        lower = written.lower()
        if lower in ("self", "static"):
            own = class_around(facts, node)
            # In a trait, `self` is the class that uses the trait.
            is_certain = lower == "self" and own is not None and own.symbol.symbol_type != "trait"
            return None if own is None else SymbolMeaning("exact" if is_certain else "inferred", (own,))
        if lower == "parent":
            own = class_around(facts, node)
            bases = [] if own is None else list(bases_of(own))
            return self._find_class(facts, bases[0], node) if len(bases) == 1 else None
        return self._find_defined(facts, written, CLASS_TYPES)

    def _find_function(self, written: str) -> SymbolMeaning | None:
        return self._find_defined(self._facts, written, _FUNCTIONS)

    def _find_defined(self, facts: SourceFacts, written: str, kinds: frozenset[str]) -> SymbolMeaning | None:
        """Return the classes or functions that a name as written means in a file."""
        if "\\" not in written:
            imported = _import_of(facts, written, is_function=kinds is _FUNCTIONS)
            if imported is not None:
                return self._follow(facts.links_of(imported), imported.target, kinds)
        own = _outermost(facts, _without_own_namespace(facts, written), kinds)
        if own:
            return SymbolMeaning("exact" if len(own) == 1 else "name", tuple(own))
        return self._follow(facts.implicit_links.get(written, ()), written, kinds)

    def _follow(self, edges: Sequence[Edge], written: str, kinds: frozenset[str]) -> SymbolMeaning | None:
        """Return the definitions to which links of a name lead."""
        name, found = written.rpartition("\\")[2], list[FileSymbol]()
        certainty: Certainty = "exact"
        for edge in edges:
            if edge.resolution == "external":
                return SymbolMeaning("external")
            target = self._facts_of(edge.target)
            defined = [] if target is None else _outermost(target, name, kinds)
            found.extend(defined)
            if defined:
                certainty = least_certain(certainty, LINK_CERTAINTY[edge.resolution])
        return SymbolMeaning(certainty, tuple(found)) if found else None

    # -- Members -------------------------------------------------------------------------------------------------------

    def _find_static_member(self, access: Node, name: str, kinds: frozenset[str]) -> SymbolMeaning | None:
        """Return the member after `::`."""
        scope = access.child_by_field_name("scope") or access.named_children[0]
        if scope.type not in _NAME_NODES and scope.type != "relative_scope":
            owner = self._type_of(self._facts, scope, 0)
        else:
            owner = self._find_class(self._facts, _text(self._facts, scope), scope)
        return self._find_member(owner, name, kinds, 0)

    def _find_object_member(self, access: Node, name: str, kinds: frozenset[str]) -> SymbolMeaning | None:
        """Return the member after `->`."""
        owner = access.child_by_field_name("object")
        found = None if owner is None else self._type_of(self._facts, owner, 0)
        return self._find_member(found, name, kinds, 0)

    def _find_member(
        self, owner: SymbolMeaning | None, name: str, kinds: frozenset[str], steps: int
    ) -> SymbolMeaning | None:
        if owner is None or owner.certainty == "external":
            return owner
        if len(owner.symbols) != 1 or owner.certainty == "name":
            return None
        found, _ = self._find_in_class(owner.symbols[0], name, kinds, steps)
        return found and SymbolMeaning(least_certain(found.certainty, owner.certainty), found.symbols)

    def _find_in_class(
        self, owner: FileSymbol, name: str, kinds: frozenset[str], steps: int
    ) -> tuple[SymbolMeaning | None, bool]:
        """Return the member of a class, of its traits or its bases, and whether an unknown class could have it."""
        qualified = f"{owner.symbol.qualified}.{name}"
        named = (
            owner.facts.symbols_named(qualified) if kinds is not _METHODS else _methods_named(owner.facts, qualified)
        )
        own = [symbol for symbol in named if symbol.symbol_type in kinds]
        if own:
            return SymbolMeaning("exact", tuple(FileSymbol(owner.facts, symbol) for symbol in own)), False
        traits, is_open = traits_of(owner)
        for written in (*traits, *bases_of(owner)) if steps < _STEPS_MAX else ():
            base = self._find_defined(owner.facts, written, CLASS_TYPES)
            if base is None or base.certainty in ("name", "external") or len(base.symbols) != 1:
                is_open = True
                continue
            found, is_base_open = self._find_in_class(base.symbols[0], name, kinds, steps + 1)
            if found is not None:
                certainty = least_certain(found.certainty, base.certainty)
                return SymbolMeaning(
                    least_certain(certainty, "inferred" if is_open else "exact"), found.symbols
                ), is_open
            is_open = is_open or is_base_open
        return None, is_open

    # -- Types of expressions ------------------------------------------------------------------------------------------

    def _type_of(self, facts: SourceFacts, node: Node, steps: int) -> SymbolMeaning | None:
        """Return the class of the value of an expression, if the code states it."""
        found = self._stated_type(facts, node, steps) if steps < _STEPS_MAX else None
        if found is None or found.certainty == "external":
            return found
        return SymbolMeaning(least_certain(found.certainty, "inferred"), found.symbols)

    def _stated_type(self, facts: SourceFacts, node: Node, steps: int) -> SymbolMeaning | None:
        kind = node.type
        if kind == "variable_name":
            if _text(facts, node) == "$this":
                return self._find_class(facts, "static", node)
            return self._local_type(facts, node, steps + 1)
        if kind in ("parenthesized_expression", "clone_expression") and node.named_child_count == 1:
            return self._type_of(facts, node.named_children[0], steps + 1)
        if kind == "assignment_expression" and (value := node.child_by_field_name("right")) is not None:
            return self._type_of(facts, value, steps + 1)
        if kind == "object_creation_expression":
            name = node.named_children[0] if node.named_children else node
            return self._find_class(facts, _text(facts, name), name) if name.type in _NAME_NODES else None
        if kind in _MEMBER_CALLS or kind in _MEMBER_ACCESSES:
            owner = node.child_by_field_name("object")
            return (
                None if owner is None else self._member_type(facts, node, self._type_of(facts, owner, steps + 1), steps)
            )
        if kind in ("scoped_call_expression", "scoped_property_access_expression"):
            scope = node.child_by_field_name("scope")
            if scope is not None and (scope.type in _NAME_NODES or scope.type == "relative_scope"):
                return self._member_type(facts, node, self._find_class(facts, _text(facts, scope), scope), steps)
        return None

    def _member_type(
        self, facts: SourceFacts, access: Node, owner: SymbolMeaning | None, steps: int
    ) -> SymbolMeaning | None:
        """Return the type that a property or the result of a method is declared with."""
        name = access.child_by_field_name("name")
        if name is None or name.type not in ("name", "variable_name"):
            return None
        kinds = _METHODS if access.type.endswith("call_expression") else _PROPERTIES
        member = self._find_member(owner, _text(facts, name).lstrip("$"), kinds, steps + 1)
        if member is None or len(member.symbols) != 1:
            return None
        definition = member.symbols[0]
        declaration = definition.declaration
        while declaration is not None and declaration.type in ("variable_name", "property_element"):
            declaration = declaration.parent
        stated = None if declaration is None else _stated_class(declaration)
        if stated is None:
            return None
        written = _text(definition.facts, stated)
        if written.lower() == "static":
            return owner
        found = self._find_class(definition.facts, written, stated)
        return found and SymbolMeaning(least_certain(found.certainty, member.certainty), found.symbols)

    def _local_type(self, facts: SourceFacts, node: Node, steps: int) -> SymbolMeaning | None:
        """Return the class of a local variable, if all its definitions in the function state the same class."""
        bindings = find_bindings(facts.file)
        bound = None if bindings is None else bindings.find_definitions(node.start_byte, _text(facts, node).encode())
        if bound is None or bound[0].parent is None:
            return None
        return self._common_type(facts, bound[1], steps)

    def _common_type(self, facts: SourceFacts, definitions: Sequence[BoundName], steps: int) -> SymbolMeaning | None:
        """Return the class that all definitions of a variable state, or None if they state no or several classes."""
        types = [self._bound_type(facts, definition, steps) for definition in definitions]
        classes = {tuple(one.place for one in found.symbols) for found in types if found is not None}
        return types[0] if None not in types and len(classes) == 1 else None

    def _bound_type(self, facts: SourceFacts, bound: BoundName, steps: int) -> SymbolMeaning | None:
        parent = bound.node.parent
        if parent is None:
            return None
        if parent.type == "anonymous_function_use_clause" and parent.parent is not None:
            outer = find_bindings(facts.file)
            found = outer and outer.find_definitions(parent.parent.start_byte - 1, bound.name)
            if not found or found[0].parent is None or bound in found[1]:
                return None
            return self._common_type(facts, found[1], steps + 1) if steps < _STEPS_MAX else None
        if parent.type == "assignment_expression":
            value = parent.child_by_field_name("right")
            return None if value is None else self._type_of(facts, value, steps + 1)
        stated = _stated_class(parent)
        return None if stated is None else self._find_class(facts, _text(facts, stated), stated)


def _stated_class(declaration: Node) -> Node | None:
    """Return the node of the class that a declaration states as its type. Return None if it is not one class."""
    if declaration.type == "variadic_parameter":
        return None
    stated = declaration.child_by_field_name("return_type") or declaration.child_by_field_name("type")
    while stated is not None and stated.type in ("optional_type", "type_list", "union_type"):
        # `Price|null` states one class, as `?Price` does.
        classes = [child for child in stated.named_children if child.type != "primitive_type"]
        stated = classes[0] if len(classes) == 1 and stated.named_child_count <= 2 else None
    return stated.named_children[0] if stated is not None and stated.type == "named_type" else None


def _is_class_before_member(parent: Node, node: Node) -> bool:
    if parent.type in ("scoped_call_expression", "scoped_property_access_expression"):
        return is_field(parent, "scope", node)
    if parent.type == "class_constant_access_expression":
        return parent.named_children[0] == node
    return (
        parent.type == "binary_expression"
        and is_field(parent, "right", node)
        and any(child.type == "instanceof" for child in parent.children)
    )


def _import_of(facts: SourceFacts, name: str, *, is_function: bool) -> LocalImport | None:
    """Return the import that binds a class or a function to a name, which is compared without case."""
    wanted = ("function" if is_function else "", name.lower().encode())
    for statement in facts.file.captures.get("import", ()):
        if wanted in imported_names(statement, facts.file.utf8):
            line = facts.file.position(statement.start_byte)[0]
            for imported in facts.imports:
                if imported.local.lower() == name.lower() and imported.line >= line:
                    return imported
    return None


def _outermost(facts: SourceFacts, name: str, kinds: frozenset[str]) -> list[FileSymbol]:
    """Return the classes or functions of a file that have a name, which is compared without case."""
    return [
        FileSymbol(facts, symbol)
        for symbol in facts.all_symbols
        if symbol.qualified.lower() == name.lower() and symbol.symbol_type in kinds and not symbol.scope
    ]


def _methods_named(facts: SourceFacts, qualified: str) -> Iterator[Symbol]:
    """Return the members of a file that have a qualified name, which is compared without case."""
    return (symbol for symbol in facts.all_symbols if symbol.qualified.lower() == qualified.lower())


def _text(facts: SourceFacts, node: Node) -> str:
    return "".join(facts.text(node).split())


def _without_own_namespace(facts: SourceFacts, written: str) -> str:
    """Return a name without the namespace of the file, or an empty text if it is not in it or the file has several."""
    namespaces = [symbol.name for symbol in facts.all_symbols if symbol.symbol_type == "namespace"]
    own = "\\".join(["", *namespaces, ""])
    name = written[len(own) :] if written.lower().startswith(own.lower()) else written
    return "" if "\\" in name or len(namespaces) > 1 else name


def _bind_import(file: SourceFile, _statement: Node, imported: ImportedName, target: str) -> LocalImport | None:
    """Return the import of a class or function without an alias."""
    if imported.bound is not None or imported.node.type not in ("name", "qualified_name"):
        return None
    local = target.rpartition("\\")[2]
    line = file.position(imported.node.start_byte)[0]
    return LocalImport(local, target, "", line, imported.node.end_byte - len(local.encode()))


USES = {
    "php": LanguageUses(
        LanguageRules(
            has_arrows=True,
            namespace_separator=b"\\",
            bind_import=_bind_import,
            not_overridable=re.compile(rb"\bprivate\b", re.IGNORECASE),
        ),
        PhpUses,
    )
}
