"""Types of Java code: their names, their members and their bases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
from tree_sitter import Node

from codebatch.model.analysis.uses import Certainty, least_certain
from codebatch.model.record import Edge, Symbol
from codebatch_workers.syntax.names import strip_generics
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.language_rules import LINK_CERTAINTY

_BASES_MAX = 100
_TYPE_SYMBOLS = frozenset({"class", "enum", "interface"})
_CLASS_BODIES = frozenset({"annotation_type_body", "class_body", "enum_body", "interface_body"})
_ENUM_METHODS = frozenset(
    {"compareTo", "describeConstable", "getDeclaringClass", "name", "ordinal", "valueOf", "values"}
)
_BETWEEN_MEMBER_AND_BODY = frozenset(
    {"constant_declaration", "enum_body_declarations", "field_declaration", "formal_parameters", "spread_parameter"}
)
OBJECT_METHODS = frozenset(
    {"clone", "equals", "finalize", "getClass", "hashCode", "notify", "notifyAll", "toString", "wait"}
)


class JavaType(msgspec.Struct, frozen=True):
    """A class or interface. `certainty` is that of the name that refers to it.

    An anonymous class has a body instead of a symbol, and the type that it extends.
    """

    facts: SourceFacts
    symbol: Symbol | None
    certainty: Certainty = "exact"
    body: Node | None = None
    base: Node | None = None


class _External(msgspec.Struct, frozen=True):
    """A type or member outside the snapshot."""


EXTERNAL_TYPE = _External()
TypeResult = JavaType | _External | None


class Member(msgspec.Struct, frozen=True):
    """A field or method of a type. `node` is its declaration."""

    facts: SourceFacts
    symbol: Symbol
    node: Node
    certainty: Certainty


class JavaMembers(msgspec.Struct, frozen=True):
    """The members of a type with one name. `is_open` is set if a base is unknown that could have such a member."""

    found: Sequence[Member]
    is_open: bool


class JavaTypes:
    """Finds types and members. `facts_of` returns the facts of a file, or None."""

    def __init__(self, facts_of: Callable[[str], SourceFacts | None]) -> None:
        self._facts_of = facts_of
        self._bases: dict[tuple[str, str], Sequence[TypeResult]] = {}

    # -- Names of types ------------------------------------------------------------------------------------------------

    def find_type(self, facts: SourceFacts, node: Node, written: str) -> TypeResult:
        """Return the type that a name means at a node. The name can be a chain: `a.b.C.D`."""
        names = written.split(".")
        for count in range(len(names), 1, -1):
            linked = self._linked_type(facts, facts.implicit_links.get(".".join(names[:count]), ()), names[count - 1])
            if linked is not None:
                return self._nested(linked, names[count:])
        return self._nested(self._find_simple(facts, node, names[0]), names[1:])

    def _nested(self, owner: TypeResult, names: Sequence[str]) -> TypeResult:
        for name in names:
            owner = self.nested_type(owner, name) if isinstance(owner, JavaType) else owner
        return owner

    def nested_type(self, owner: JavaType, name: str) -> TypeResult:
        """Return the nested type of a type or of its bases."""
        is_open = False
        for one in self._with_bases(owner):
            if not isinstance(one, JavaType):
                is_open = True
                continue
            for symbol in _own_symbols(one, name):
                if symbol.symbol_type in _TYPE_SYMBOLS:
                    certainty = least_certain(one.certainty, "inferred" if is_open else "exact")
                    return JavaType(one.facts, symbol, certainty)
        return EXTERNAL_TYPE if is_open else None

    def _find_simple(self, facts: SourceFacts, node: Node, name: str) -> TypeResult:
        local = facts.local_names.definition(node.start_byte, name.encode(), frozenset({"type_parameter"}))
        if local is not None:
            return None
        doubt: Certainty = "exact"
        for owner in self.enclosing_types(facts, node):
            if owner.symbol is not None and owner.symbol.name == name:
                return owner
            nested = self.nested_type(owner, name)
            if isinstance(nested, JavaType):
                return _doubted(nested, doubt)
            if nested is not None:
                doubt = "inferred"
        types = (one for one in facts.all_symbols if one.name == name and one.symbol_type in _TYPE_SYMBOLS)
        if any(self._is_local(facts, symbol) for symbol in types):
            # A class in a method. The method can be another one.
            return None
        found = self._find_in_file(facts, name)
        return _doubted(found, doubt) if isinstance(found, JavaType) else found

    @staticmethod
    def _is_local(facts: SourceFacts, symbol: Symbol) -> bool:
        return any(outer.symbol_type in ("method", "constructor") for outer in facts.symbols_named(symbol.scope))

    def _find_in_file(self, facts: SourceFacts, name: str) -> TypeResult:
        own = [symbol for symbol in facts.symbols_named(name) if symbol.symbol_type in _TYPE_SYMBOLS]
        if own:
            return JavaType(facts, own[0]) if len(own) == 1 else None
        imports = list(facts.imports_of(name))
        if imports:
            edges = [edge for imported in imports for edge in facts.links_of(imported)]
            found = self._linked_type(facts, edges, name)
            if found is not None:
                return found
            return EXTERNAL_TYPE if any(edge.resolution == "external" for edge in edges) else None
        if name in facts.implicit_links:
            return self._linked_type(facts, facts.implicit_links[name], name)
        for imported in facts.imports:
            if not imported.local and is_static_import(facts, imported.line):
                owner = self.linked_owner(facts, facts.links_of(imported), imported.target)
                nested = self.nested_type(owner, name) if isinstance(owner, JavaType) else None
                if isinstance(nested, JavaType):
                    return nested
        # A name that no file defines comes from `java.lang`, or from a package that is imported with a star.
        return EXTERNAL_TYPE

    def _linked_type(self, facts: SourceFacts, edges: Sequence[Edge], name: str) -> TypeResult:
        """Return the type with a name in the files to which the edges lead."""
        found: list[JavaType] = []
        for edge in edges:
            target = self._facts_of(edge.target) if edge.resolution != "external" else None
            if target is None or target.language != "java":
                continue
            types = [symbol for symbol in target.symbols_named(name) if symbol.symbol_type in _TYPE_SYMBOLS]
            if not types and not edge.implicit:
                # A nested type, which the import names with its outer types.
                types = _suffix_types(target, edge.imported)[:1]
            found.extend(JavaType(target, symbol, LINK_CERTAINTY[edge.resolution]) for symbol in types)
        distinct = {(one.facts.path, one.symbol.qualified if one.symbol else ""): one for one in found}
        return next(iter(distinct.values())) if len(distinct) == 1 else None

    def linked_owner(self, facts: SourceFacts, edges: Sequence[Edge], target: str) -> TypeResult:
        """Return the type `a.B` for a static import of `a.B.member`."""
        certain = [edge for edge in edges if edge.resolution != "external"]
        if not certain:
            return EXTERNAL_TYPE if edges else None
        found = self._facts_of(certain[0].target) if len(certain) == 1 else None
        if found is None or found.language != "java":
            return None
        types = _suffix_types(found, target.rpartition(".")[0])
        return JavaType(found, types[0], LINK_CERTAINTY[certain[0].resolution]) if types else None

    # -- Enclosing types, bases, members -------------------------------------------------------------------------------

    def enclosing_types(self, facts: SourceFacts, node: Node) -> Iterator[JavaType]:
        """Yield the types whose bodies contain a node, the innermost first."""
        inner: Node | None = node
        while inner is not None:
            outer = inner.parent
            if outer is not None and inner.type in _CLASS_BODIES:
                name = outer.child_by_field_name("name")
                symbol = facts.symbol_at(name.start_byte) if name is not None else None
                if outer.type == "object_creation_expression":
                    yield JavaType(facts, None, body=inner, base=outer.child_by_field_name("type"))
                elif outer.type == "enum_constant":
                    yield JavaType(facts, None, body=inner)
                elif symbol is not None:
                    yield JavaType(facts, symbol)
            inner = outer

    def _with_bases(self, owner: JavaType) -> Iterator[TypeResult]:
        """Yield a type and all its bases, nearer ones first. An unknown base is yielded as None or external."""
        open_types: list[TypeResult] = [owner]
        known: set[object] = set()
        while open_types and len(known) < _BASES_MAX:
            one = open_types.pop(0)
            if isinstance(one, JavaType):
                key = (one.facts.path, one.symbol.qualified if one.symbol is not None else id(one))
                if key in known:
                    continue
                known.add(key)
                open_types.extend(self.bases(one))
            yield one

    def bases(self, owner: JavaType) -> Sequence[TypeResult]:
        """Return the bases of a type that its declaration names."""
        if owner.symbol is None:
            written = "" if owner.base is None else type_name(owner.base, owner.facts.file.utf8)
            return [self.find_type(owner.facts, owner.base, written) if owner.base is not None and written else None]
        key = owner.facts.path, owner.symbol.qualified
        if key not in self._bases:
            declaration = owner.facts.declaration_of(owner.symbol)
            names = owner.facts.bases.get(owner.symbol.qualified, ())
            self._bases[key] = [declaration and self.find_type(owner.facts, declaration, name) for name in names]
        return [_doubted(base, owner.certainty) if isinstance(base, JavaType) else base for base in self._bases[key]]

    def members(self, owner: JavaType, name: str, kinds: frozenset[str], *, with_own: bool = True) -> JavaMembers:
        """Return the members of a type and its bases with a name, those of nearer types first.

        Private members of bases, and members that only the package of a base sees, are left out.
        """
        found: list[Member] = []
        is_open = False
        package = _package(owner.facts)
        for index, one in enumerate(self._with_bases(owner)):
            if not isinstance(one, JavaType):
                is_open = True
                continue
            is_enum = one.symbol is not None and one.symbol.symbol_type == "enum"
            if is_enum and name in _ENUM_METHODS and "method" in kinds:
                # These methods are final in `Enum`, or belong to each enumeration.
                return JavaMembers((), is_open=True)
            is_open = is_open or one.certainty == "name"
            for symbol in _own_symbols(one, name) if index or with_own else ():
                is_visible = index == 0 or (
                    symbol.visibility != "private"
                    and (symbol.visibility != "internal" or _package(one.facts) == package)
                )
                node = one.facts.declaration_of(symbol) if symbol.symbol_type in kinds and is_visible else None
                if node is not None:
                    found.append(Member(one.facts, symbol, node, one.certainty))
            if found and "method" not in kinds:
                # A field hides those of bases, and methods do not.
                break
        return JavaMembers(found, is_open)


def _doubted(found: JavaType, doubt: Certainty) -> JavaType:
    return msgspec.structs.replace(found, certainty=least_certain(found.certainty, doubt))


def _own_symbols(owner: JavaType, name: str) -> Sequence[Symbol]:
    """Return the definitions with a name in the body of a type."""
    named = (
        [symbol for symbol in owner.facts.all_symbols if symbol.name == name]
        if owner.symbol is None
        else owner.facts.symbols_named(f"{owner.symbol.qualified}.{name}")
    )
    body = type_body(owner)
    return [symbol for symbol in named if _body_of(owner.facts, symbol) == body]


def type_body(owner: JavaType) -> Node | None:
    """Return the body of a type."""
    declaration = None if owner.symbol is None else owner.facts.declaration_of(owner.symbol)
    return owner.body if declaration is None else declaration.child_by_field_name("body")


def _body_of(facts: SourceFacts, symbol: Symbol) -> Node | None:
    """Return the body of the type that directly contains a definition."""
    declaration = facts.declaration_of(symbol)
    node = None if declaration is None else declaration.parent
    while node is not None and node.type in _BETWEEN_MEMBER_AND_BODY:
        node = node.parent
    if node is not None and node.type == "record_declaration":
        return node.child_by_field_name("body")
    return node if node is not None and node.type in _CLASS_BODIES else None


def type_name(node: Node, utf8: bytes) -> str:
    """Return the name of a type without type arguments and annotations. Return "" if the type is not a class."""
    if node.type == "annotated_type":
        node = node.named_children[-1]
    if node.type not in ("generic_type", "scoped_type_identifier", "type_identifier"):
        return ""
    text = strip_generics(utf8[node.start_byte : node.end_byte])
    return b"".join(text.split()).decode("utf-8", "replace") if b"@" not in text else ""


def declared_type_node(node: Node) -> Node | None:
    """Return the node of the type in a declaration."""
    found = node.child_by_field_name("type") or node.child_by_field_name("right")
    if found is not None:
        return found
    catch_type = next((child for child in node.named_children if child.type == "catch_type"), None)
    if catch_type is not None:
        return catch_type.named_children[0] if catch_type.named_child_count == 1 else None
    types = ("type_identifier", "generic_type", "scoped_type_identifier", "array_type")
    return next((child for child in node.named_children if child.type in types), None)


def is_static_import(facts: SourceFacts, line: int) -> bool:
    """Return whether the import at a line is a static one."""
    start = facts.file.line_starts[line - 1]
    return facts.file.utf8[start : start + 100].lstrip().removeprefix(b"import").lstrip().startswith(b"static")


def node_text(facts: SourceFacts, node: Node) -> str:
    """Return the text of a node without white space."""
    return b"".join(facts.file.utf8[node.start_byte : node.end_byte].split()).decode("utf-8", "replace")


def _suffix_types(facts: SourceFacts, qualified: str) -> list[Symbol]:
    """Return the types that the longest possible end of a qualified name names."""
    return [symbol for symbol in facts.suffix_symbols(qualified.split(".")) if symbol.symbol_type in _TYPE_SYMBOLS]


def _package(facts: SourceFacts) -> str:
    return next((symbol.qualified for symbol in facts.all_symbols if symbol.symbol_type == "module"), "")
