"""Uses of names in Kotlin and Scala.

Types are resolved by scope, imports and the names of the package. A member is at most `inferred`, because a type can
have extensions and overloads. A name without a prefix in a lambda can be a member of the lambda's receiver, so it is
resolved only if the file imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from tree_sitter import Node

from codebatch.model.analysis.uses import EXTERNAL, UNKNOWN, Certainty, Resolved, least_certain, resolve_to
from codebatch.model.record import Edge, Symbol
from codebatch_workers.symbols.imported_names import ImportedName, LocalImport
from codebatch_workers.symbols.local_names import constructed_class, type_text
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.uses.chain_types import ChainType
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.language_resolver import LanguageResolver
from codebatch_workers.uses.language_rules import CLASS_TYPES, LINK_CERTAINTY

_STEPS_MAX = 12
_LANGUAGES = frozenset({"kotlin", "scala"})
_FactsOf = Callable[[str], SourceFacts | None]
_LOCAL_KINDS = frozenset({"parameter", "variable"})
_TYPE_PARAMETERS = frozenset({"type_parameter"})
_NAME_NODES = frozenset({"identifier", "type_identifier"})
_CLASS_BODIES = frozenset({"class_body", "enum_class_body", "template_body"})
_OBJECT_NODES = frozenset({"object_declaration", "object_definition"})


class KotlinUses(LanguageResolver):
    """The resolution of uses in Kotlin and Scala."""

    def resolve(self, facts: SourceFacts, name: Node, scope: str) -> Resolved:
        chain = facts.chain_of(name)
        if name.type not in _NAME_NODES or chain.is_open or _is_label(name):
            return UNKNOWN
        resolved = _KotlinFile(facts, self.facts_of).resolve(name, chain.names, chain.start, scope)
        is_extended = resolved is EXTERNAL and len(chain.names) > 1 and self._has_extension(chain.names[-1])
        return UNKNOWN if is_extended else resolved

    def _has_extension(self, name: str) -> bool:
        """Return whether a file adds a member with a name to types that are defined elsewhere."""
        files = (facts for facts in map(self.facts_of, self.files_with_name(name)) if facts is not None)
        nodes = (
            facts.name_of(symbol)
            for facts in files
            for symbol in (facts.all_symbols if facts.language in _LANGUAGES else ())
            if symbol.name == name
        )
        return any(node is not None and _is_extension(node) for node in nodes)


class _KotlinFile:
    """Resolves names in one file."""

    def __init__(self, facts: SourceFacts, facts_of: _FactsOf) -> None:
        self._facts = facts
        self._facts_of = facts_of

    def resolve(self, node: Node, names: Sequence[str], offset: int, scope: str) -> Resolved:
        """Return the definitions to which the last name of a chain refers. `offset` is that of its first name."""
        facts, first = self._facts, names[0]
        local = facts.local_names.definition(offset, first.encode(), _LOCAL_KINDS)
        if local is not None:
            symbol = facts.symbol_at(local.start)
            if len(names) == 1:
                return UNKNOWN if symbol is None else _resolved("inferred", facts, [symbol], node)
            written = facts.local_names.declared_type(local.node)
            found = self.find_type(written.split("."), offset, scope, 0) if written else None
            if found is None or found.count < len(written.split(".")):
                return UNKNOWN
            return self._members(found, names[1:], "inferred", node)
        if first == "this":
            owner = None if len(names) == 1 or _has_other_receiver(node) else facts.enclosing_class(scope)
            if owner is None:
                return UNKNOWN
            return self._members(ChainType("inferred", facts, owner, 1), names[1:], "inferred", node)
        found = self.find_type(names, offset, scope, 0) if first[:1].isupper() or len(names) > 1 else None
        if found is not None:
            return self._members(found, names[found.count :], found.certainty, node)
        return self._plain_name(first, scope, node) if len(names) == 1 else UNKNOWN

    def find_type(self, names: Sequence[str], offset: int, scope: str, steps: int) -> ChainType | None:
        """Return the type that the longest possible beginning of a chain names at an offset."""
        facts = self._facts
        if steps > _STEPS_MAX or facts.local_names.definition(offset, names[0].encode(), _TYPE_PARAMETERS) is not None:
            return None
        doubt: Certainty = "exact"
        for outer in facts.scopes(scope):
            for count in range(len(names), 0, -1):
                qualified = ".".join([outer, *names[:count]])
                if facts.is_class(qualified):
                    return ChainType(doubt, facts, qualified, count)
            if facts.is_class(outer):
                inherited, is_open = self._inherited(outer, names[0], steps + 1)
                if inherited is not None:
                    certainty = least_certain(doubt, inherited.certainty)
                    return ChainType(certainty, inherited.facts, inherited.qualified, 1)
                doubt = "inferred" if is_open else doubt
        found = self._find_in_file(names)
        if found is None:
            return None
        # Implicit links already take the bases of the file's classes into account.
        return msgspec.structs.replace(found, certainty=least_certain(found.certainty, doubt))

    def _inherited(self, owner: str, name: str, steps: int) -> tuple[ChainType | None, bool]:
        """Return the nested type that a class of the file inherits, and whether a base is unknown."""
        is_open = False
        symbol = self._facts.classes_named(owner)[0]
        for written in self._facts.bases.get(owner, ()) if steps <= _STEPS_MAX else ():
            names = written.split(".")
            base = self.find_type(names, self._facts.offset(symbol), symbol.scope, steps + 1)
            if base is None or not base.qualified or base.count < len(names):
                is_open = True
                continue
            qualified = f"{base.qualified}.{name}"
            if base.facts.is_class(qualified):
                return ChainType(base.certainty, base.facts, qualified, 1), is_open
            found, is_base_open = _KotlinFile(base.facts, self._facts_of)._inherited(base.qualified, name, steps + 1)
            is_open = is_open or is_base_open
            if found is not None:
                return found, is_open
        return None, is_open

    def _find_in_file(self, names: Sequence[str]) -> ChainType | None:
        """Return the type that a chain names at the outermost level of the file."""
        facts = self._facts
        imports = list(facts.imports_of(names[0]))
        if imports:
            edges = [edge for imported in imports for edge in facts.links_of(imported)]
            if edges and all(edge.resolution == "external" for edge in edges):
                return ChainType("external", facts, "", len(names))
            target = imports[0].target.split(".")
            return self._linked(edges, [*target, *names[1:]], len(target) - 1) if len(imports) == 1 else None
        for count in range(len(names), 0, -1):
            written = ".".join(names[:count])
            if facts.is_class(written):
                return ChainType("exact", facts, written, count)
        for count in range(len(names), 0, -1):
            edges = facts.implicit_links.get(".".join(names[:count]), [])
            if edges:
                return self._linked(edges, names, 0)
        return None

    def _linked(self, edges: Sequence[Edge], names: Sequence[str], hidden: int) -> ChainType | None:
        """Return the type in a linked file that a part of a chain names. The first `hidden` names are not written."""
        target = self._facts_of(edges[0].target) if len({edge.target for edge in edges}) == 1 else None
        if target is None:
            return None
        for first in range(len(names)):
            for last in range(len(names), first, -1):
                qualified = ".".join(names[first:last])
                if last > hidden and target.is_class(qualified):
                    return ChainType(LINK_CERTAINTY[edges[0].resolution], target, qualified, last - hidden)
        return None

    @staticmethod
    def _members(found: ChainType, names: Sequence[str], certainty: Certainty, node: Node) -> Resolved:
        """Return the type itself if there are no names, or its member if there is one name."""
        certainty, symbols = found.find(names, certainty)
        return _resolved(certainty, found.facts, symbols, node) if found.qualified else EXTERNAL

    def _plain_name(self, name: str, scope: str, node: Node) -> Resolved:
        """Return the imported function or value, the member of an enclosing type, or a name of the file or package."""
        facts = self._facts
        imports = list(facts.imports_of(name))
        edges = [edge for imported in imports for edge in facts.links_of(imported)]
        edges = edges or facts.implicit_links.get(name, [])
        if imports and edges and all(edge.resolution == "external" for edge in edges):
            return EXTERNAL
        if not imports:
            if _has_other_receiver(node):
                return UNKNOWN
            for outer in (*facts.scopes(scope), ""):
                qualified = f"{outer}.{name}" if outer else name
                symbols = [one for one in facts.symbols_named(qualified) if one.symbol_type not in CLASS_TYPES]
                if symbols:
                    return _resolved("inferred", facts, symbols, node)
                if outer and facts.bases.get(outer):
                    # The member can be one of a base.
                    return UNKNOWN
        target = self._facts_of(edges[0].target) if len({edge.target for edge in edges}) == 1 else None
        defined = imports[0].target.rpartition(".")[2] if imports else name
        return UNKNOWN if target is None else _resolved("inferred", target, target.symbols_named(defined), node)


def _resolved(certainty: Certainty, facts: SourceFacts, symbols: Sequence[Symbol], node: Node) -> Resolved:
    if len(symbols) == 2 and facts.language == "scala":
        # A class and its companion object have one name. The first is a type, and the second a value.
        is_type = node.type == "type_identifier"
        symbols = [symbol for symbol in symbols if _is_object(facts, symbol) != is_type] or symbols
    return resolve_to(certainty, map(facts.definition, symbols))


def _is_object(facts: SourceFacts, symbol: Symbol) -> bool:
    declaration = facts.declaration_of(symbol)
    return declaration is not None and declaration.type in _OBJECT_NODES


def _is_label(node: Node) -> bool:
    """Return whether a name is that of an argument: `f(name = 1)`."""
    parent, following = node.parent, node.next_sibling
    is_argument = parent is not None and parent.type in ("assignment_expression", "value_argument")
    return is_argument and following is not None and following.type == "="


def _has_other_receiver(node: Node) -> bool:
    """Return whether `this` at a node can be another object than that of the enclosing class in Kotlin."""
    outer: Node | None = node.parent
    while outer is not None and outer.type not in _CLASS_BODIES:
        if outer.type in ("lambda_literal", "object_literal"):
            return True
        if _has_receiver(outer):
            return True
        outer = outer.parent
    return (
        outer is not None
        and outer.parent is not None
        and outer.parent.type in ("object_literal", "instance_expression")
    )


def _has_receiver(declaration: Node) -> bool:
    """Return whether a node declares a function or property of a type that precedes its name, in Kotlin."""
    if declaration.type not in ("function_declaration", "property_declaration"):
        return False
    for child in declaration.named_children:
        if child.type in ("identifier", "variable_declaration"):
            return False
        if child.type in ("user_type", "nullable_type", "parenthesized_type"):
            return True
    return False


def _is_extension(name: Node) -> bool:
    """Return whether a definition is an extension, or a member of an implicit class."""
    around = name.parent
    while around is not None:
        if around.type == "extension_definition" or _has_receiver(around):
            return True
        modifiers = around.named_children[:1] if around.type == "class_definition" else []
        if any(child.type == "modifiers" and b"implicit" in (child.text or b"") for child in modifiers):
            return True
        around = around.parent
    return False


def kotlin_type(name: Node, utf8: bytes) -> str:
    """Return the type after a parameter or variable in Kotlin, or the class of which its value is constructed."""
    following = name.next_named_sibling
    if following is None and name.parent is not None and name.parent.type == "variable_declaration":
        value = name.parent.next_named_sibling
        return "" if value is None else constructed_class(value, utf8, capitals_construct=True)
    if following is not None and following.type == "nullable_type" and following.named_children:
        following = following.named_children[0]
    return type_text(following, utf8) if following is not None and following.type == "user_type" else ""


def bind_kotlin_import(file: SourceFile, _statement: Node, imported: ImportedName, target: str) -> LocalImport | None:
    """Return the import of one name in Kotlin or Scala."""
    if imported.bound is not None or target.endswith("*"):
        return None
    bound = _renamed(imported.node) or imported.node
    local = file.utf8[bound.start_byte : bound.end_byte].decode("utf-8", "replace").rpartition(".")[2]
    line = file.position(imported.node.start_byte)[0]
    return LocalImport(local, target, "", line, bound.end_byte - len(local.encode()))


def _renamed(imported: Node) -> Node | None:
    """Return the node of the local name if an import in Kotlin or Scala gives it: `C as D`, `C => D`."""
    following, parent = imported.next_named_sibling, imported.parent
    if parent is not None and parent.type.endswith("_renamed_identifier"):
        return parent.child_by_field_name("alias")
    return following if parent is not None and parent.type == "import" else None
