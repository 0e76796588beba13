"""Uses of names in C#, resolved by namespaces, types, and stated types of expressions.

The place of a name decides whether it means a type or a member. The type of an expression is known if each step states
it: the declared type of a variable, field, property or method, a constructor, a cast. An overload is chosen only by the
number of arguments. Extension methods are not found.
"""

from __future__ import annotations

import re

import msgspec
from tree_sitter import Node

from codebatch.model.analysis.uses import UNKNOWN, Certainty, Resolved, least_certain
from codebatch.model.record import Symbol
from codebatch_workers.languages.csharp.stated_types import (
    CSharpMembers,
    CSharpTypes,
    local_definition,
    written_type,
)
from codebatch_workers.syntax.nodes import is_field
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.file_symbol import FileSymbol, SymbolMeaning
from codebatch_workers.uses.language_resolver import LanguageResolver, LanguageUses
from codebatch_workers.uses.language_rules import CLASS_TYPES, FUNCTION_TYPES, ArgumentRules, LanguageRules

_STEPS_MAX = 24
# Places of a type that are not the field `type` of a node.
_TYPE_PLACES = frozenset(
    {"base_list", "type_argument_list", "type_parameter_constraint", "explicit_interface_specifier"}
)
_MEMBER_PLACES = frozenset({"member_access_expression", "member_binding_expression"})
# Nodes in which a name is a value: a local variable, or a member of an enclosing type.
_VALUE_PLACES = frozenset(
    {
        *("argument", "arrow_expression_clause", "as_expression", "assignment_expression", "await_expression"),
        *("binary_expression", "cast_expression", "conditional_access_expression", "conditional_expression"),
        *("element_access_expression", "equals_value_clause", "foreach_statement", "if_statement", "interpolation"),
        *("is_pattern_expression", "lambda_expression", "parenthesized_expression", "postfix_unary_expression"),
        *("prefix_unary_expression", "return_statement", "switch_expression", "switch_statement", "throw_expression"),
        *("variable_declarator", "while_statement"),
    }
)
_WRAPPED_RESULTS = frozenset({"Task", "ValueTask"})
_PASSING_EXPRESSIONS = frozenset({"checked_expression", "parenthesized_expression", "postfix_unary_expression"})


class _Value(msgspec.Struct, frozen=True):
    """The type of an expression. `is_static` is set if the expression is the type itself, and not an object."""

    of_type: SymbolMeaning
    is_static: bool = False


class CSharpUses(LanguageResolver):
    """The resolution of uses in C#."""

    def resolve(self, facts: SourceFacts, node: Node, scope: str) -> Resolved:
        found = _CSharpUse(CSharpTypes(self.facts_of)).find(facts, node) if node.type == "identifier" else None
        if found is None or not found.symbols:
            return UNKNOWN
        definitions = {symbol.definition for symbol in found.symbols}
        is_one = len(definitions) == 1 or all(symbol.symbol.is_partial for symbol in found.symbols)
        return Resolved(found.certainty if is_one else "name", tuple(sorted(definitions)))


class _CSharpUse:
    """The resolution of names in C# files."""

    def __init__(self, types: CSharpTypes) -> None:
        self._types = types

    def find(self, facts: SourceFacts, node: Node) -> SymbolMeaning | None:
        """Return what a name means, by the place of its node."""
        name, whole = facts.text(node).lstrip("@"), node
        parent = node.parent
        if parent is not None and parent.type == "generic_name":
            whole, parent = parent, parent.parent
        if parent is None:
            return None
        if parent.type == "qualified_name":
            return self._find_in_qualified_name(facts, whole, parent)
        if _is_type_place(parent, whole):
            return self._types.find_type_node(facts, whole)
        if parent.type == "attribute" and is_field(parent, "name", whole):
            return self._types.find_type(facts, node, name, is_attribute=True)
        if parent.type == "invocation_expression" and is_field(parent, "function", whole):
            return self._find_unqualified(facts, node, name, parent)
        if parent.type in _MEMBER_PLACES and is_field(parent, "name", whole):
            return self._find_member(facts, parent, name, 0)
        if parent.type == "member_access_expression":
            return self._find_owner(facts, whole, name)
        is_assigned = parent.type == "assignment_expression" and is_field(parent, "left", whole)
        initializer = parent.parent if is_assigned else None
        if initializer is not None and initializer.type == "initializer_expression":
            return self._find_initialized(facts, initializer, name)
        if parent.type in _VALUE_PLACES and not is_field(parent, "name", whole):
            return self._find_value(facts, node, name)
        return None

    def _find_in_qualified_name(self, facts: SourceFacts, node: Node, parent: Node) -> SymbolMeaning | None:
        """Return the type that a part of `a.B.C` means. The part can be a namespace."""
        if is_field(parent, "qualifier", node):
            written = facts.text(node)
        else:
            written = written_type(facts, parent)[0]
        above: Node | None = parent
        while above is not None and above.type == "qualified_name":
            above = above.parent
        if above is None or above.type in (
            "using_directive",
            "namespace_declaration",
            "file_scoped_namespace_declaration",
        ):
            return None
        arity = written_type(facts, node)[1]
        is_attribute = above.type == "attribute"
        found = self._types.find_type(facts, parent, written, arity, is_attribute=is_attribute)
        named = found is not None and found.symbols[0].symbol.name.removesuffix("Attribute" if is_attribute else "")
        last = written.rpartition(".")[2].removesuffix("Attribute" if is_attribute else "")
        return found if named == last else None

    # -- Members -------------------------------------------------------------------------------------------------------

    def _find_unqualified(self, facts: SourceFacts, node: Node, name: str, call: Node) -> SymbolMeaning | None:
        """Return what is called by a name without a receiver: a local function, or a member of an enclosing type."""
        bound = local_definition(facts, node, name)
        if bound is not None:
            symbol = facts.symbol_at(bound.start) if bound.kind == "function" else None
            return None if symbol is None else SymbolMeaning("exact", (FileSymbol(facts, symbol),))
        return self._find_in_enclosing(facts, node, name, call)

    def _find_in_enclosing(self, facts: SourceFacts, node: Node, name: str, call: Node | None) -> SymbolMeaning | None:
        is_open = False
        for enclosing in self._types.enclosing_types(facts, node):
            members = self._types.members(enclosing, name)
            if members.found:
                found = _choose(members, call)
                return found and SymbolMeaning(
                    least_certain(found.certainty, "inferred" if is_open else "exact"), found.symbols
                )
            is_open = is_open or members.is_open
        return None

    def _find_member(self, facts: SourceFacts, access: Node, name: str, steps: int) -> SymbolMeaning | None:
        """Return the member after a dot."""
        call = access.parent
        if access.type == "member_binding_expression":
            conditional = access.parent
            if conditional is None or conditional.type != "conditional_access_expression":
                return None
            receiver, call = conditional.child_by_field_name("condition"), conditional.parent
            function = conditional
        else:
            receiver, function = access.child_by_field_name("expression"), access
        if call is None or call.type != "invocation_expression" or not is_field(call, "function", function):
            call = None
        if receiver is None:
            return None
        if receiver.type == "base":
            enclosing = next(self._types.enclosing_types(facts, access), None)
            return None if enclosing is None else _choose(self._types.members(enclosing, name, with_own=False), call)
        value = self._type_of(facts, receiver, steps + 1)
        if value is None:
            return None
        members = self._types.members(value.of_type, name)
        certainty: Certainty = "exact" if value.is_static or receiver.type == "this" else "inferred"
        found = _choose(members, call)
        return found and SymbolMeaning(
            least_certain(found.certainty, least_certain(certainty, value.of_type.certainty)), found.symbols
        )

    def _find_owner(self, facts: SourceFacts, node: Node, name: str) -> SymbolMeaning | None:
        """Return the member or type that a name before a dot means."""
        if local_definition(facts, node, name) is not None:
            return None
        member = self._find_in_enclosing(facts, node, name, None)
        written, arity = written_type(facts, node)
        found = self._types.find_type(facts, node, written, arity)
        if member is None:
            return found
        # A property can have the name of its type. Then the name means both.
        return None if found is not None else member

    def _find_value(self, facts: SourceFacts, node: Node, name: str) -> SymbolMeaning | None:
        if local_definition(facts, node, name) is not None:
            return None
        found = self._find_in_enclosing(facts, node, name, None)
        if found is None or any(symbol.symbol.symbol_type in CLASS_TYPES for symbol in found.symbols):
            return None
        return found

    def _find_initialized(self, facts: SourceFacts, initializer: Node, name: str) -> SymbolMeaning | None:
        """Return the member that an object initializer sets."""
        creation = initializer.parent
        type_node = None
        if creation is not None and creation.type == "object_creation_expression":
            type_node = creation.child_by_field_name("type")
        owner = None if type_node is None else self._types.find_type_node(facts, type_node)
        if owner is None:
            return None
        found = _choose(self._types.members(owner, name), None)
        return found and SymbolMeaning(least_certain(found.certainty, owner.certainty), found.symbols)

    # -- Types of expressions ------------------------------------------------------------------------------------------

    def _type_of(self, facts: SourceFacts, node: Node, steps: int) -> _Value | None:
        """Return the type of an expression, if the code states it."""
        if steps > _STEPS_MAX:
            return None
        kind = node.type
        if kind == "this":
            enclosing = next(self._types.enclosing_types(facts, node), None)
            return None if enclosing is None else _Value(enclosing)
        if kind in ("identifier", "generic_name"):
            return self._type_of_name(facts, node, steps)
        if kind in _PASSING_EXPRESSIONS and node.named_child_count == 1:
            return self._type_of(facts, node.named_children[0], steps + 1)
        if kind in ("object_creation_expression", "cast_expression"):
            return self._object_of(facts, node.child_by_field_name("type"))
        if kind == "as_expression":
            return self._object_of(facts, node.child_by_field_name("right"))
        if kind == "await_expression" and node.named_child_count == 1:
            return self._type_of_call(facts, node.named_children[0], steps, is_awaited=True)
        if kind == "invocation_expression":
            return self._type_of_call(facts, node, steps, is_awaited=False)
        if kind == "member_access_expression":
            return self._type_of_access(facts, node, steps)
        return None

    def _object_of(self, facts: SourceFacts, type_node: Node | None) -> _Value | None:
        found = None if type_node is None else self._types.find_type_node(facts, type_node)
        return None if found is None or found.certainty == "name" else _Value(found)

    def _type_of_name(self, facts: SourceFacts, node: Node, steps: int) -> _Value | None:
        written, arity = written_type(facts, node)
        bound = local_definition(facts, node, written)
        if bound is not None:
            return self._type_of_local(facts, bound.node, steps) if bound.kind in ("variable", "parameter") else None
        member = self._find_in_enclosing(facts, node, written, None)
        if member is not None:
            return self._type_of_member(member)
        found = self._types.find_type(facts, node, written, arity)
        return None if found is None or found.certainty == "name" else _Value(found, is_static=True)

    def _type_of_local(self, facts: SourceFacts, name: Node, steps: int) -> _Value | None:
        declaration = name.parent
        if declaration is not None and declaration.type == "variable_declarator":
            values = [child for child in declaration.named_children if child != name]
            declaration = declaration.parent
            type_node = None if declaration is None else declaration.child_by_field_name("type")
            if type_node is not None and type_node.type == "implicit_type":
                value = self._type_of(facts, values[-1], steps + 1) if values else None
                return None if value is None or value.is_static else value
        type_node = None if declaration is None else declaration.child_by_field_name("type")
        return self._object_of(facts, type_node)

    def _type_of_call(self, facts: SourceFacts, call: Node, steps: int, *, is_awaited: bool) -> _Value | None:
        function = call.child_by_field_name("function") if call.type == "invocation_expression" else None
        if function is None:
            return None
        name = function.child_by_field_name("name") if function.type == "member_access_expression" else function
        if name is None or name.type != "identifier":
            return None
        written = facts.text(name).lstrip("@")
        if function.type == "member_access_expression":
            found = self._find_member(facts, function, written, steps + 1)
        else:
            found = self._find_unqualified(facts, name, written, call)
        return None if found is None else self._type_of_member(found, is_awaited=is_awaited)

    def _type_of_access(self, facts: SourceFacts, access: Node, steps: int) -> _Value | None:
        name = access.child_by_field_name("name")
        if name is None or name.type != "identifier":
            return None
        text = "".join(facts.text(access).split())
        if self._is_qualified_type(facts, access):
            found = self._types.find_type(facts, access, text)
            if found is not None:
                return None if found.certainty == "name" else _Value(found, is_static=True)
        member = self._find_member(facts, access, facts.text(name).lstrip("@"), steps + 1)
        return None if member is None else self._type_of_member(member)

    def _is_qualified_type(self, facts: SourceFacts, access: Node) -> bool:
        """Return whether a chain of names begins neither with a local variable nor with a member."""
        first: Node | None = access
        while first is not None and first.type == "member_access_expression":
            first = first.child_by_field_name("expression")
        if first is None or first.type != "identifier":
            return False
        name = facts.text(first)
        return (
            local_definition(facts, first, name) is None and self._find_in_enclosing(facts, first, name, None) is None
        )

    def _type_of_member(self, found: SymbolMeaning, *, is_awaited: bool = False) -> _Value | None:
        """Return the type with which a member is declared."""
        if len(found.symbols) != 1 or found.certainty == "name":
            return None
        member = found.symbols[0]
        if member.symbol.symbol_type in CLASS_TYPES:
            return _Value(SymbolMeaning(found.certainty, (member,)), is_static=True)
        declaration = member.declaration
        if declaration is not None and declaration.type == "enum_member_declaration":
            return None
        if declaration is not None and declaration.type == "variable_declarator":
            declaration = declaration.parent
        if declaration is None:
            return None
        stated = declaration.child_by_field_name("returns") or declaration.child_by_field_name("type")
        if is_awaited and stated is not None:
            stated = _wrapped_type(member.facts, stated)
        value = self._object_of(member.facts, stated)
        return value and _Value(
            SymbolMeaning(least_certain(found.certainty, value.of_type.certainty), value.of_type.symbols)
        )


def _wrapped_type(facts: SourceFacts, node: Node) -> Node | None:
    """Return the type `T` of `Task<T>`."""
    if node.type != "generic_name" or facts.text(node.named_children[0]) not in _WRAPPED_RESULTS:
        return None
    arguments = node.named_children[-1].named_children
    return arguments[0] if len(arguments) == 1 else None


def _choose(members: CSharpMembers, call: Node | None) -> SymbolMeaning | None:
    """Return the members that a use can mean. For a call, the number of arguments chooses overloads."""
    if not members.found:
        return None
    certainty: Certainty = "inferred" if members.is_open else "exact"
    if any(member.symbol.symbol_type not in FUNCTION_TYPES for member in members.found):
        return SymbolMeaning(certainty, members.found)
    count = None if call is None else _argument_count(call)
    fitting = [member for member in members.found if count is None or _accepts(member.symbol, count)]
    others = [member for member in members.inherited if count is None or _accepts(member.symbol, count)]
    if len(fitting) == 1 and (not others or _overrides(fitting[0])):
        return SymbolMeaning(certainty, (fitting[0],))
    candidates = (*fitting, *others)
    if len(candidates) == 1:
        return SymbolMeaning("inferred", candidates)
    return SymbolMeaning("name", candidates or members.found)


def _argument_count(call: Node) -> int | None:
    arguments = call.child_by_field_name("arguments")
    if arguments is None:
        return None
    return sum(child.type == "argument" for child in arguments.named_children)


def _accepts(symbol: Symbol, count: int) -> bool:
    """Return whether a function can be called with a number of arguments."""
    parameters = symbol.parameters
    if parameters and parameters[-1].startswith("params "):
        return count >= len(parameters) - 1 - sum("=" in parameter for parameter in parameters)
    required = sum("=" not in parameter for parameter in parameters)
    return required <= count <= len(parameters)


def _overrides(member: FileSymbol) -> bool:
    declaration = member.declaration
    return declaration is not None and any(
        child.type == "modifier" and member.facts.text(child) in ("override", "new") for child in declaration.children
    )


def _is_type_place(parent: Node, node: Node) -> bool:
    if parent.type in _TYPE_PLACES:
        return True
    if parent.type == "as_expression":
        return is_field(parent, "right", node)
    return is_field(parent, "type", node) or is_field(parent, "returns", node)


_RULES = LanguageRules(
    is_sequential=True,
    arguments=ArgumentRules(are_checked=True, inherits_defaults=True),
    not_overridable=re.compile(rb"\A(?!.*\b(?:abstract|override|virtual)\b)", re.DOTALL),
)
USES = {"csharp": LanguageUses(_RULES, CSharpUses)}
