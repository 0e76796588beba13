"""Uses of names in Java, resolved by scope, imports, bases and declared types.

Java has separate names for types, fields and methods, and the place of a name decides which of them it means. The type
of an expression is found if every step states it: the declared type of a variable, field or method, a constructor, a
cast. An overload is chosen only by the number of arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

from tree_sitter import Node

from codebatch.model.analysis.uses import EXTERNAL, UNKNOWN, Certainty, Resolved, least_certain
from codebatch_workers.languages.jvm.java_overloads import candidates, parameter_of_result_type
from codebatch_workers.languages.jvm.java_types import (
    EXTERNAL_TYPE,
    OBJECT_METHODS,
    JavaMembers,
    JavaType,
    JavaTypes,
    Member,
    TypeResult,
    declared_type_node,
    is_static_import,
    node_text,
    type_body,
    type_name,
)
from codebatch_workers.syntax.nodes import innermost
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.language_resolver import LanguageResolver, UseContext

_STEPS_MAX = 40
_METHODS = frozenset({"method"})
_FIELDS = frozenset({"constant", "enum_member", "field", "variable"})
_COMMENTS = frozenset({"block_comment", "line_comment"})
_LOCAL_KINDS = frozenset({"parameter", "variable"})
_EXTERNAL_EXPRESSIONS = frozenset({"class_literal", "string_literal"})


class JavaUses(LanguageResolver):
    """Resolves uses in Java files."""

    def __init__(self, context: UseContext) -> None:
        super().__init__(context)
        self._types = JavaTypes(context.facts_of)

    def resolve(self, facts: SourceFacts, node: Node, scope: str) -> Resolved:
        parent, name = node.parent, node_text(facts, node)
        if parent is None:
            return UNKNOWN
        if node.type == "type_identifier":
            return _as_resolved(self._find_type_node(facts, node))
        if parent.type in ("marker_annotation", "annotation", "record_pattern"):
            return _as_resolved(self._types.find_type(facts, node, name))
        if parent.type == "method_invocation" and parent.child_by_field_name("name") == node:
            return _resolved_members(*self._find_called(facts, parent, 0))
        if parent.type == "method_reference" and parent.named_children[-1] == node and parent.named_child_count > 1:
            return self._resolve_method_reference(facts, parent, name)
        if parent.type == "field_access" and parent.child_by_field_name("field") == node:
            return self._resolve_field_access(facts, parent, name)
        if parent.type in ("switch_label", "element_value_pair", "labeled_statement", "break_statement"):
            return self._resolve_label(facts, node, name)
        if parent.type in ("continue_statement", "scoped_identifier", "package_declaration"):
            return UNKNOWN
        if self._local(facts, node) is not None:
            return UNKNOWN
        found = self._find_field(facts, node, name)
        if found is not None:
            return _resolved_members(found)
        if _is_before_dot(node):
            return _as_resolved(self._types.find_type(facts, node, name))
        return UNKNOWN

    def _find_type_node(self, facts: SourceFacts, node: Node) -> TypeResult:
        """Return the type that a type name means. It can be the last name of a chain such as `a.B.C`."""
        parent = node.parent
        created = parent.parent if parent is not None and parent.type == "generic_type" else parent
        if created is not None and created.type == "object_creation_expression" and created.children[0].type != "new":
            return None  # In `a.new B()`, the class of `a` decides what B is.
        if parent is None or parent.type != "scoped_type_identifier" or parent.named_children[0] == node:
            return self._types.find_type(facts, node, node_text(facts, node))
        before = facts.file.utf8[parent.start_byte : node.end_byte]
        written = type_name(parent, before.rjust(node.end_byte))
        return self._types.find_type(facts, parent, written) if written else None

    # -- Methods -------------------------------------------------------------------------------------------------------

    def _find_called(
        self, facts: SourceFacts, call: Node, steps: int
    ) -> tuple[JavaMembers | None, int | None, Certainty]:
        """Return the methods that a call can mean, the number of its arguments, and an upper bound of the certainty.

        No members and the certainty `external` mean that the method is not in the snapshot.
        """
        name_node = call.child_by_field_name("name")
        name = "" if name_node is None else node_text(facts, name_node)
        owner = call.child_by_field_name("object")
        arguments = call.child_by_field_name("arguments")
        count = None if arguments is None else sum(child.type not in _COMMENTS for child in arguments.named_children)
        if owner is None:
            return self._find_unqualified(facts, call, name, count), count, "exact"
        if any(child.type == "super" for child in call.children if child != owner):
            return None, count, "name"
        if owner.type == "super":
            enclosing = next(self._types.enclosing_types(facts, call), None)
            found = None if enclosing is None else self._types.members(enclosing, name, _METHODS, with_own=False)
            return found, count, "exact"
        of_type, is_static = self._type_of(facts, owner, steps + 1)
        if not isinstance(of_type, JavaType):
            return None, count, "name" if of_type is None else "external"
        certainty: Certainty = "exact" if is_static or owner.type == "this" else "inferred"
        found = self._types.members(of_type, name, _METHODS)
        if not found.found and (found.is_open or name in OBJECT_METHODS):
            return None, count, "external"
        return found, count, least_certain(certainty, of_type.certainty)

    def _find_unqualified(self, facts: SourceFacts, call: Node, name: str, count: int | None) -> JavaMembers | None:
        """Return the methods with a name of the innermost enclosing type that has one, or of static imports."""
        is_open = False
        for enclosing in self._types.enclosing_types(facts, call):
            members = self._types.members(enclosing, name, _METHODS)
            if members.found:
                return JavaMembers(members.found, members.is_open or is_open)
            if name in OBJECT_METHODS:
                return JavaMembers((), is_open=True)
            is_open = is_open or members.is_open
        imported = self._find_static_imports(facts, name, _METHODS)
        if imported is None:
            return JavaMembers((), is_open=True) if is_open else None
        return JavaMembers(imported.found, imported.is_open or is_open)

    def _find_static_imports(self, facts: SourceFacts, name: str, kinds: frozenset[str]) -> JavaMembers | None:
        """Return the members with a name that static imports make visible, or None if there are none."""
        found: list[Member] = []
        is_open = has_import = False
        for imported in facts.imports:
            if imported.local not in ("", name) or "." not in imported.target:
                continue
            is_star = not imported.local
            if is_star and not is_static_import(facts, imported.line):
                continue
            owner = self._types.linked_owner(facts, facts.links_of(imported), imported.target)
            if isinstance(owner, JavaType):
                members = self._types.members(owner, name, kinds)
                found += members.found
                is_open = is_open or members.is_open
                has_import = has_import or bool(members.found) or not is_star
            else:
                has_import = has_import or not is_star
                is_open = True
        return JavaMembers(found, is_open) if has_import or found else None

    def _resolve_method_reference(self, facts: SourceFacts, node: Node, name: str) -> Resolved:
        owner = node.named_children[0]
        written = type_name(owner, facts.file.utf8)
        of_type: TypeResult
        if written:
            of_type, is_static = self._types.find_type(facts, owner, written), True
        elif owner.type == "super":
            return UNKNOWN
        else:
            of_type, is_static = self._type_of(facts, owner, 0)
        if not isinstance(of_type, JavaType):
            return UNKNOWN if of_type is None else EXTERNAL
        members = self._types.members(of_type, name, _METHODS)
        if not members.found:
            return EXTERNAL if members.is_open or name in OBJECT_METHODS else UNKNOWN
        certainty: Certainty = "exact" if is_static or owner.type == "this" else "inferred"
        return _resolved_members(members, None, least_certain(certainty, of_type.certainty))

    # -- Fields --------------------------------------------------------------------------------------------------------

    def _resolve_field_access(self, facts: SourceFacts, node: Node, name: str) -> Resolved:
        linked = self._types.find_type(facts, node, node_text(facts, node)) if _is_chain(node) else None
        owner = node.child_by_field_name("object")
        if owner is None:
            return UNKNOWN
        of_type, is_static = self._type_of(facts, owner, 0)
        if isinstance(of_type, JavaType):
            members = self._types.members(of_type, name, _FIELDS)
            if members.found:
                certainty: Certainty = "exact" if is_static or owner.type == "this" else "inferred"
                return _resolved_members(members, None, least_certain(certainty, of_type.certainty), is_field=True)
            if is_static:
                nested = self._types.nested_type(of_type, name)
                return EXTERNAL if nested is None and members.is_open else _as_resolved(nested)
            return EXTERNAL if members.is_open else UNKNOWN
        if isinstance(linked, JavaType):
            return _as_resolved(linked)
        return UNKNOWN if of_type is None else EXTERNAL

    def _local(self, facts: SourceFacts, node: Node) -> Node | None:
        """Return the definition of the local variable that a name at a node means, unless a field hides it."""
        name = node_text(facts, node)
        found = facts.local_names.definition(node.start_byte, name.encode(), _LOCAL_KINDS)
        if found is None:
            return None
        for enclosing in self._types.enclosing_types(facts, node):
            body = type_body(enclosing)
            if body is None or body.start_byte < found.start:
                return found.node
            if self._types.members(enclosing, name, _FIELDS).found:
                return None
        return found.node

    def _find_field(self, facts: SourceFacts, node: Node, name: str) -> JavaMembers | None:
        """Return the field of the innermost enclosing type that has it, or of static imports."""
        is_open = False
        for enclosing in self._types.enclosing_types(facts, node):
            members = self._types.members(enclosing, name, _FIELDS)
            if members.found:
                return JavaMembers(members.found[:1], members.is_open or is_open)
            is_open = is_open or members.is_open
        imported = self._find_static_imports(facts, name, _FIELDS)
        if imported is None or not imported.found:
            return None
        return JavaMembers(imported.found, imported.is_open or is_open)

    def _resolve_label(self, facts: SourceFacts, node: Node, name: str) -> Resolved:
        """Resolve `case NAME` by the type of the value after `switch`, and the key of an annotation by its type."""
        parent = node.parent
        if parent is not None and parent.type == "element_value_pair":
            if parent.child_by_field_name("key") != node:
                found = self._find_field(facts, node, name)
                return UNKNOWN if found is None else _resolved_members(found)
            return UNKNOWN
        if parent is None or parent.type != "switch_label":
            return UNKNOWN
        switch = innermost(parent, ("switch_expression",))
        condition = None if switch is None else switch.child_by_field_name("condition")
        of_type, _ = self._type_of(facts, condition, 0) if condition is not None else (None, False)
        if not isinstance(of_type, JavaType):
            return UNKNOWN
        constants = self._types.members(of_type, name, frozenset({"enum_member"}))
        return _resolved_members(constants, None, "inferred") if constants.found else UNKNOWN

    # -- Types of expressions ------------------------------------------------------------------------------------------

    def _type_of(self, facts: SourceFacts, node: Node, steps: int) -> tuple[TypeResult, bool]:
        """Return the type of an expression, and whether the expression is the name of the type."""
        if steps > _STEPS_MAX:
            return None, False
        kind = node.type
        if kind == "parenthesized_expression":
            return self._type_of(facts, node.named_children[-1], steps + 1)
        if kind == "this":
            return next(self._types.enclosing_types(facts, node), None), False
        if kind in _EXTERNAL_EXPRESSIONS:
            return EXTERNAL_TYPE, False
        if kind == "identifier":
            return self._type_of_name(facts, node, steps)
        if kind == "field_access":
            return self._type_of_field_access(facts, node, steps)
        if kind in ("object_creation_expression", "cast_expression"):
            type_node = node.child_by_field_name("type")
            is_inner = kind == "object_creation_expression" and node.children[0].type != "new"
            return (None if type_node is None or is_inner else self._declared(facts, type_node)), False
        if kind == "method_invocation":
            members, count, certainty = self._find_called(facts, node, steps + 1)
            if members is None:
                # The result of a method outside the snapshot can have any type.
                return None, False
            return self._type_of_result(facts, node, candidates(members, count)[0], certainty, steps), False
        return None, False

    def _type_of_result(
        self, facts: SourceFacts, call: Node, methods: Sequence[Member], certainty: Certainty, steps: int
    ) -> TypeResult:
        """Return the type of a call's result. For `<T> T f(T a)`, it is the type of the argument."""
        arguments = call.child_by_field_name("arguments")
        if len(methods) == 1 and arguments is not None:
            index = parameter_of_result_type(methods[0])
            values = [child for child in arguments.named_children if child.type not in _COMMENTS]
            if index is not None and index < len(values):
                return self._type_of(facts, values[index], steps + 1)[0]
        return self._common_type(methods, certainty, steps)

    def _type_of_name(self, facts: SourceFacts, node: Node, steps: int) -> tuple[TypeResult, bool]:
        local = self._local(facts, node)
        if local is not None:
            return self._type_of_variable(facts, local, steps), False
        name = node_text(facts, node)
        field = self._find_field(facts, node, name)
        if field is not None:
            return self._common_type(field.found, "inferred" if field.is_open else "exact", steps), False
        return self._types.find_type(facts, node, name), True

    def _type_of_field_access(self, facts: SourceFacts, node: Node, steps: int) -> tuple[TypeResult, bool]:
        owner, field = node.child_by_field_name("object"), node.child_by_field_name("field")
        if owner is None or field is None:
            return None, False
        of_type, is_static = self._type_of(facts, owner, steps + 1)
        if field.type == "this":
            return of_type, False
        if isinstance(of_type, JavaType):
            members = self._types.members(of_type, node_text(facts, field), _FIELDS)
            if members.found:
                return self._common_type(members.found[:1], of_type.certainty, steps), False
            if is_static:
                return self._types.nested_type(of_type, node_text(facts, field)), True
            return (EXTERNAL_TYPE if members.is_open else None), False
        if _is_chain(node):
            linked = self._types.find_type(facts, node, node_text(facts, node))
            if isinstance(linked, JavaType):
                return linked, True
        return of_type, is_static

    def _common_type(self, members: Sequence[Member], certainty: Certainty, steps: int = 0) -> TypeResult:
        """Return the declared type of members, if it is the same for all of them."""
        types = [self._member_type(member, steps) for member in members]
        first = types[0] if types else None
        if isinstance(first, JavaType):
            same = all(
                isinstance(one, JavaType)
                and one.symbol is not None
                and first.symbol is not None
                and (one.facts.path, one.symbol.qualified) == (first.facts.path, first.symbol.qualified)
                for one in types
            )
            return JavaType(first.facts, first.symbol, least_certain(first.certainty, certainty)) if same else None
        return first if all(one is first for one in types) else None

    def _member_type(self, member: Member, steps: int) -> TypeResult:
        if member.symbol.symbol_type == "enum_member":
            return next(self._types.enclosing_types(member.facts, member.node), None)
        return self._type_of_variable(member.facts, member.node.child_by_field_name("name") or member.node, steps)

    def _type_of_variable(self, facts: SourceFacts, name: Node, steps: int) -> TypeResult:
        """Return the declared type of a variable, field, method or parameter. `var` has the type of its value."""
        node: Node | None = name.parent
        if node is not None and node.type in ("lambda_expression", "inferred_parameters"):
            return None
        declarator = node if node is not None and node.type == "variable_declarator" else None
        if declarator is not None:
            if declarator.child_by_field_name("dimensions") is not None:
                return None
            node = declarator.parent
        type_node = None if node is None else declared_type_node(node)
        if type_node is None or node is None or node.child_by_field_name("dimensions") is not None:
            return None
        if node_text(facts, type_node) == "var":
            holder = declarator or node
            value = holder.child_by_field_name("value") if holder.type != "enhanced_for_statement" else None
            return None if value is None else self._type_of(facts, value, steps + 1)[0]
        return None if node.type == "spread_parameter" else self._declared(facts, type_node)

    def _declared(self, facts: SourceFacts, type_node: Node) -> TypeResult:
        if type_node.type.endswith("_type") and type_node.type not in ("generic_type", "annotated_type"):
            # An array, or a primitive type.
            return None
        written = type_name(type_node, facts.file.utf8)
        return self._types.find_type(facts, type_node, written) if written else None


def _is_chain(node: Node) -> bool:
    """Return whether a field access consists of names only: `a.b.C`."""
    owner: Node | None = node
    while owner is not None and owner.type == "field_access":
        owner = owner.child_by_field_name("object")
    return owner is not None and owner.type == "identifier"


def _is_before_dot(node: Node) -> bool:
    parent = node.parent
    return parent is not None and (
        (parent.type in ("field_access", "method_invocation") and parent.child_by_field_name("object") == node)
        or (parent.type == "method_reference" and parent.named_children[0] == node)
    )


def _as_resolved(found: TypeResult) -> Resolved:
    if isinstance(found, JavaType):
        return UNKNOWN if found.symbol is None else Resolved(found.certainty, (found.facts.definition(found.symbol),))
    return UNKNOWN if found is None else EXTERNAL


def _resolved_members(
    members: JavaMembers | None, count: int | None = None, certainty: Certainty = "exact", *, is_field: bool = False
) -> Resolved:
    if members is None or not members.found:
        is_external = certainty == "external" or (members is not None and members.is_open)
        return EXTERNAL if is_external else UNKNOWN
    chosen, choice = (list(members.found[:1]), certainty) if is_field else candidates(members, count)
    certainty = least_certain(certainty, choice)
    if not chosen:
        return EXTERNAL if members.is_open else UNKNOWN
    for member in chosen:
        certainty = least_certain(certainty, member.certainty)
    if members.is_open:
        certainty = least_certain(certainty, "inferred")
    if len(chosen) > 1:
        certainty = "name"
    return Resolved(certainty, tuple(sorted({one.facts.definition(one.symbol) for one in chosen})))
