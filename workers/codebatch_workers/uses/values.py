"""Objects that expressions have as their values, as far as the code states it in a few steps.

The steps are declared types, constructed objects, results of functions, and members. An object is represented by its
class. The module is for Python, JavaScript and TypeScript; other languages use `symbols/local_names.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from tree_sitter import Node

from codebatch.model.record import Symbol
from codebatch_workers.symbols.outline import scope_definitions
from codebatch_workers.syntax.bindings import BoundName
from codebatch_workers.uses.declarations import (
    Declaration,
    name_declaration,
    nearest_definition,
    pattern_declaration,
    pattern_of,
    returned_values,
    without_qualifier,
)
from codebatch_workers.uses.elements import Elements
from codebatch_workers.uses.entities import (
    DefinedEntity,
    Entity,
    Meaning,
    ModuleEntity,
    common_meaning,
    is_getter,
    merge_meanings,
    only_definition,
    types_of,
    without_types,
)
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.language_rules import CLASS_TYPES, FUNCTION_TYPES, VALUE_TYPES

_STEPS_MAX = 24
_BUDGET = 400
"""Maximum number of expressions and types that are evaluated for one use."""
_MEMBERS = {"attribute": "attribute", "member_expression": "property", "nested_type_identifier": "name"}
_OWNERS = {"attribute": "object", "member_expression": "object", "nested_type_identifier": "module"}
_NAMES = frozenset({"identifier", "this", "type_identifier"})
_CALLS = frozenset({"call", "call_expression"})
_CHOICES = {"binary_operator", "boolean_operator", "binary_expression", "conditional_expression", "ternary_expression"}
_EMPTY_TYPES = frozenset({"literal_type", "none", "null", "predefined_type", "undefined"})
_PLAIN_CHAIN = re.compile(r"[\w.]+\Z")


class NameResolver(Protocol):
    """The resolution of names that the evaluation of expressions needs."""

    def find_name(self, facts: SourceFacts, name: str, steps: int, offset: int | None) -> Meaning | None: ...
    def find_member_of_all(self, found: Meaning, name: str, steps: int) -> Meaning | None: ...
    def find_own_object(self, facts: SourceFacts, scope: str) -> Meaning | None: ...
    def find_bases(self, facts: SourceFacts, scope: str) -> Meaning | None: ...
    def find_imported_chain(self, facts: SourceFacts, node: Node) -> Meaning | None: ...


class Values:
    """Evaluates expressions and types. It has many methods, because expressions contain types and each other."""

    def __init__(self, names: NameResolver) -> None:
        self._names = names
        self._elements = Elements(self)
        self._budget = 0

    def begin_use(self) -> None:
        """Reset the limit for one use."""
        self._budget = _BUDGET

    def owner_of(self, facts: SourceFacts, name: Node) -> Meaning | None:
        """Return the object whose member a name is. Return None if it is unknown."""
        owner = None if name.parent is None else name.parent.child_by_field_name(_OWNERS.get(name.parent.type, ""))
        pattern = pattern_of(name)
        if pattern is not None:
            found = self._of_declaration(
                facts, pattern_declaration(pattern, facts.file.utf8, facts.rules.values.read_loop), 0
            )
        else:
            found = None if owner is None else self.object_of(facts, owner, 0)
        # A type outside the snapshot proves nothing: the code can have checked for a class of the snapshot.
        return None if found is None or found.certainty in ("name", "external") else Meaning("inferred", found.entities)

    def of_symbol(self, facts: SourceFacts, symbol: Symbol, steps: int) -> Meaning | None:
        """Return the object that a variable, field or property has as its value."""
        offset = facts.offset(symbol)
        name = facts.node_at(offset)
        if name is None or steps > _STEPS_MAX:
            return None
        if symbol.symbol_type in ("property", "method"):
            return self._result(facts, symbol, None, steps)
        definitions = [bound for bound in facts.bound_names(symbol.name, offset) if facts.symbol_at(bound.start)]
        if any(bound.start == offset for bound in definitions):
            found = self._of_definitions(facts, list(facts.bound_names(symbol.name, offset)), None, steps)
        else:
            found = self._of_declaration(facts, name_declaration(name), steps)
        return None if found is None or found.certainty == "external" else found

    # -- Expressions ---------------------------------------------------------------------------------------------------

    def object_of(self, facts: SourceFacts, node: Node, steps: int) -> Meaning | None:
        """Return the object that is the value of an expression."""
        self._budget -= 1
        if steps > _STEPS_MAX or self._budget < 0:
            return None
        kind = node.type
        if kind in _NAMES or kind in _MEMBERS:
            return self._as_object(self.entity_of(facts, node, steps), steps)
        if kind in _CALLS:
            return self._call(facts, node, steps)
        if kind == "new_expression":
            constructor = node.child_by_field_name("constructor")
            return None if constructor is None else self._classes(self.entity_of(facts, constructor, steps + 1))
        if kind in ("as_expression", "satisfies_expression", "type_assertion"):
            children = node.named_children
            if len(children) < 2:
                return None
            stated = children[0].named_children[0] if kind == "type_assertion" else children[1]
            return self.of_type(facts, stated, steps + 1)
        if kind in ("non_null_expression", "parenthesized_expression", "await_expression", "await"):
            return self.object_of(facts, node.named_children[0], steps + 1) if node.named_child_count == 1 else None
        if kind in ("named_expression", "assignment_expression"):
            value = node.child_by_field_name("value") or node.child_by_field_name("right")
            return None if value is None else self.object_of(facts, value, steps + 1)
        if kind in ("subscript", "subscript_expression"):
            collection = node.child_by_field_name("value") or node.child_by_field_name("object")
            return None if collection is None else self._elements.element(facts, collection, steps + 1, is_entry=True)
        if kind in _CHOICES:
            return self._choice(facts, node, steps)
        return None

    def _choice(self, facts: SourceFacts, node: Node, steps: int) -> Meaning | None:
        operator = node.child_by_field_name("operator")
        operands = [node.child_by_field_name(field) for field in ("left", "right", "consequence", "alternative")]
        parts = [part for part in operands if part is not None]
        if node.type == "conditional_expression":
            parts = [node.named_children[0], *node.named_children[2:3]]
        elif node.type != "ternary_expression" and (operator is None or facts.text(operator) not in ("or", "||", "??")):
            return None
        found = [self.object_of(facts, part, steps + 1) for part in parts if part.type not in ("none", "null")]
        return common_meaning(found)

    def entity_of(self, facts: SourceFacts, node: Node, steps: int) -> Meaning | None:
        """Return what a name or a member means: a class, a module, a function, or the object of a variable."""
        self._budget -= 1
        if steps > _STEPS_MAX or self._budget < 0:
            return None
        if node.type in _MEMBERS:
            chain = self._names.find_imported_chain(facts, node)
            if chain is not None:
                return chain
            owner, member = (node.child_by_field_name(table[node.type]) for table in (_OWNERS, _MEMBERS))
            value = None if owner is None or member is None else self.object_of(facts, owner, steps + 1)
            return self._names.find_member_of_all(value, facts.text(member), steps + 1) if value and member else None
        name = facts.text(node)
        if name in facts.rules.own_object:
            return self._names.find_own_object(facts, _scope_of(facts, node))
        if node.type not in _NAMES:
            return None
        definitions = facts.plain_definitions(node)
        if definitions:
            return self._of_definitions(facts, definitions, node.start_byte, steps + 1)
        return self._names.find_name(facts, name, steps + 1, node.start_byte)

    def _as_object(self, found: Meaning | None, steps: int) -> Meaning | None:
        """Replace the variables among the entities by their values. Functions have no known members."""
        if found is None or found.certainty in ("name", "external"):
            return found if found is not None and found.certainty == "external" else None
        values: list[Meaning | None] = []
        for entity in map(without_types, found.entities):
            symbol = entity.symbols[0] if isinstance(entity, DefinedEntity) else None
            if symbol is None or symbol.symbol_type in CLASS_TYPES or symbol.symbol_type == "namespace":
                values.append(Meaning(found.certainty, (entity,)))
            elif isinstance(entity, DefinedEntity) and (symbol.symbol_type in VALUE_TYPES or is_getter(entity)):
                values.append(self.of_symbol(entity.facts, symbol, steps + 1))
        return _union(values)

    def _classes(self, found: Meaning | None) -> Meaning | None:
        classes = [entity for entity in (found.entities if found else ()) if _is_class(entity)]
        return Meaning("inferred", tuple(classes)) if classes and found and found.certainty != "name" else None

    def _call(self, facts: SourceFacts, node: Node, steps: int) -> Meaning | None:
        function = node.child_by_field_name("function")
        if function is None:
            return None
        text = facts.text(function)
        arguments = node.child_by_field_name("arguments")
        special = facts.rules.call_objects.get(text)
        if special == "bases":
            return self._names.find_bases(facts, _scope_of(facts, node))
        if special == "first_argument" and arguments and arguments.named_children:
            return self.of_type(facts, arguments.named_children[0], steps + 1)
        if special == "itself":
            return self.object_of(facts, function, steps + 1)
        if function.type in _NAMES and facts.plain_definitions(function):
            return None
        return self._results(self.entity_of(facts, function, steps + 1), facts, function, steps)

    def _results(self, found: Meaning | None, facts: SourceFacts, function: Node, steps: int) -> Meaning | None:
        """Return the objects that a call of an entity returns."""
        if found is None or found.certainty in ("name", "external") or len(found.entities) != 1:
            return None
        entity = without_types(found.entities[0])
        if isinstance(entity, ModuleEntity):
            return None
        symbol = entity.symbols[0]
        if symbol.symbol_type in CLASS_TYPES:
            return Meaning("inferred", (entity,)) if facts.rules.calls_construct else None
        if symbol.symbol_type in VALUE_TYPES:
            return self._alias_results(entity, steps)
        if symbol.symbol_type not in FUNCTION_TYPES:
            return None
        owner = function.child_by_field_name(_OWNERS.get(function.type, ""))
        receiver = None if owner is None else self.object_of(facts, owner, steps + 1)
        found_results = [self._result(entity.facts, one, receiver, steps + 1) for one in entity.symbols]
        merged = merge_meanings(found_results)
        return None if merged is None or merged.certainty == "name" else merged

    def _alias_results(self, entity: DefinedEntity, steps: int) -> Meaning | None:
        """Return what a call of a variable returns that is a function, or another name of a class or function."""
        facts, symbol = entity.facts, entity.symbols[0]
        if facts.function_of(symbol) is not None:
            return self._result(facts, symbol, None, steps + 1)
        name = facts.name_of(symbol)
        declaration = None if name is None else name_declaration(name)
        if declaration is None or declaration.kind != "value" or declaration.node is None:
            return None
        is_name = declaration.node.type in _NAMES or declaration.node.type in _MEMBERS
        found = self.entity_of(facts, declaration.node, steps + 1) if is_name else None
        only = only_definition(found)
        target = None if only is None else without_types(only)
        if isinstance(target, DefinedEntity) and target.symbols[0].symbol_type not in CLASS_TYPES:
            return self._results(found, facts, declaration.node, steps + 1)
        return self._classes(found) if facts.rules.calls_construct else None

    def _result(self, facts: SourceFacts, symbol: Symbol, receiver: Meaning | None, steps: int) -> Meaning | None:
        """Return the object that a function returns: by its declared type, or by its `return` statements."""
        function, rules = facts.function_of(symbol), facts.rules.values
        self._budget -= 1
        if function is None or steps > _STEPS_MAX or self._budget < 0:
            return None
        declared = function.child_by_field_name("return_type")
        if declared is not None:
            own_types = rules.own_types(function, facts.file.utf8) if rules.own_types else ()
            if facts.text(declared).lstrip(": ") in own_types:
                return receiver or self._names.find_own_object(facts, symbol.qualified)
            return self.of_type(facts, declared, steps + 1)
        has_opaque_decorator = rules.has_opaque_decorator is not None and rules.has_opaque_decorator(
            function, facts.file.utf8
        )
        values = None if has_opaque_decorator else returned_values(function)
        if not values:
            return None
        found = [self.object_of(facts, value, steps + 2) for value in values]
        return common_meaning(found)

    # -- Definitions ---------------------------------------------------------------------------------------------------

    def _of_definitions(
        self, facts: SourceFacts, definitions: Sequence[BoundName], offset: int | None, steps: int
    ) -> Meaning | None:
        """Return the object of a variable. If its definitions differ, the one that reaches the offset counts."""
        declarations = [(bound, facts.declaration(bound)) for bound in definitions]
        typed = [declaration for _, declaration in declarations if declaration.kind == "type"]
        if typed:
            return self._of_declaration(facts, typed[0], steps)
        stated = [(bound, declaration) for bound, declaration in declarations if declaration.kind != "empty"]
        if len(stated) > 1 and offset is not None:
            nearest = nearest_definition([bound for bound, _ in stated], offset)
            if nearest is not None:
                return self._of_declaration(facts, facts.declaration(nearest), steps)
        found = [self._of_declaration(facts, declaration, steps) for _, declaration in stated]
        return common_meaning(found)

    def _of_declaration(self, facts: SourceFacts, declaration: Declaration, steps: int) -> Meaning | None:
        if declaration.kind == "type" and declaration.node is not None:
            declaration = without_qualifier(declaration, facts.file.utf8, facts.rules.values.qualifiers)
        if declaration.node is None or steps > _STEPS_MAX:
            return None
        if declaration.kind in ("element", "entry"):
            is_entry = declaration.kind == "entry"
            return self._elements.element(facts, declaration.node, steps + 1, is_entry=is_entry)
        if declaration.kind == "argument":
            return self._elements.argument(facts, declaration.node, steps + 1)
        found = (
            self.of_type(facts, declaration.node, steps + 1)
            if declaration.kind == "type"
            else self.object_of(facts, declaration.node, steps + 1)
        )
        if declaration.kind == "with" and found is not None and found.certainty != "external":
            found = self._entered(found, facts.rules.values.entering_methods, steps)
        if declaration.member and found is not None and found.certainty != "external":
            return self._as_object(self._names.find_member_of_all(found, declaration.member, steps + 1), steps + 1)
        return found

    def _entered(self, manager: Meaning, entering_methods: Sequence[str], steps: int) -> Meaning | None:
        """Return the object that a `with` statement binds."""
        methods = (self._names.find_member_of_all(manager, name, steps + 1) for name in entering_methods)
        entered = next((method for method in methods if method is not None), None)
        entity = only_definition(entered)
        return None if entity is None else self._result(entity.facts, entity.symbols[0], manager, steps + 1)

    # -- Types ---------------------------------------------------------------------------------------------------------

    def of_type(self, facts: SourceFacts, node: Node, steps: int) -> Meaning | None:
        """Return the classes that a written type names."""
        self._budget -= 1
        if steps > _STEPS_MAX or self._budget < 0:
            return None
        kind, children = node.type, node.named_children
        if kind in ("type", "type_annotation", "parenthesized_type", "readonly_type", "parenthesized_expression"):
            return self.of_type(facts, children[0], steps + 1) if children else None
        if kind in ("generic_type", "subscript") and children:
            return self._generic(facts, node, steps)
        if kind in ("union_type", "binary_operator"):
            parts = [part for part in children if part.type not in _EMPTY_TYPES]
            return _union([self.of_type(facts, part, steps + 1) for part in parts])
        if kind == "intersection_type":
            return _union(list(filter(None, (self.of_type(facts, part, steps + 1) for part in children))))
        if kind == "type_query" and children:
            return self.object_of(facts, children[0], steps + 1)
        if kind == "string":
            return self._quoted(facts, node, steps)
        if kind == "this_type":
            return self._names.find_own_object(facts, _scope_of(facts, node))
        if kind in _NAMES or kind in _MEMBERS:
            return self._named_type(facts, node, steps)
        return None

    def _named_type(self, facts: SourceFacts, node: Node, steps: int) -> Meaning | None:
        definitions = facts.bound_names(facts.text(node), node.start_byte) if node.type in _NAMES else ()
        if any(definition.kind == "type_parameter" for definition in definitions):
            parameter = definitions[0].node.parent
            constraint = None if parameter is None else parameter.child_by_field_name("constraint")
            inner = None if constraint is None or not constraint.named_children else constraint.named_children[0]
            return None if inner is None else self.of_type(facts, inner, steps + 1)
        found = self.entity_of(facts, node, steps + 1)
        if found is None or found.certainty in ("name", "external"):
            return found if found is not None and found.certainty == "external" else None
        classes = [types_of(entity) for entity in found.entities if isinstance(entity, DefinedEntity)]
        return _union([self._expanded(entity, found, steps) for entity in classes if entity.symbols])

    def _expanded(self, entity: DefinedEntity, found: Meaning, steps: int) -> Meaning | None:
        """Replace a type alias by the type that it names."""
        types = entity.symbols
        if any(symbol.symbol_type != "type" for symbol in types):
            return Meaning(found.certainty, (entity,))
        declaration = entity.facts.declaration_of(types[0])
        value = None if declaration is None else declaration.child_by_field_name("value")
        if value is None or value.type == "object_type":
            return Meaning(found.certainty, (entity,))
        return self.of_type(entity.facts, value, steps + 1)

    def _generic(self, facts: SourceFacts, node: Node, steps: int) -> Meaning | None:
        name = node.named_children[0]
        written, rules = facts.text(name).rpartition(".")[2], facts.rules.values
        is_union = written in rules.unions
        if not is_union and written not in rules.wrappers and written not in rules.class_wrappers:
            return self.of_type(facts, name, steps + 1)
        arguments = [part for part in node.named_children[1:] if part.type != "comment"]
        if len(arguments) == 1 and arguments[0].type in ("type_arguments", "type_parameter"):
            arguments = arguments[0].named_children
        parts = [part for part in arguments if facts.text(part) != "None"]
        return _union([self.of_type(facts, part, steps + 1) for part in (parts if is_union else parts[:1])])

    def _quoted(self, facts: SourceFacts, node: Node, steps: int) -> Meaning | None:
        """Return the class that a Python type in quotes names."""
        text = facts.text(node).strip("\"'").removesuffix("| None").strip()
        if not _PLAIN_CHAIN.match(text):
            return None
        names = text.split(".")
        found = self._names.find_name(facts, names[0], steps + 1, node.start_byte)
        for name in names[1:]:
            found = None if found is None else self._names.find_member_of_all(found, name, steps + 1)
        return self._classes(found)


def _scope_of(facts: SourceFacts, node: Node) -> str:
    return scope_definitions(facts.file).qualified_scope(node.start_byte)


def _is_class(entity: Entity) -> bool:
    return isinstance(entity, DefinedEntity) and any(symbol.symbol_type in CLASS_TYPES for symbol in entity.symbols)


def _union(found: Iterable[Meaning | None]) -> Meaning | None:
    """Return all entities of several values. Return None if one of the values is unknown."""
    entities: list[Entity] = []
    for one in found:
        if one is None or one.certainty == "name":
            return None
        entities.extend(entity for entity in one.entities if entity not in entities)
    return Meaning("inferred", tuple(entities)) if entities else None
