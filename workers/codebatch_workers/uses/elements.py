"""Elements of collections whose types the code states, in Python, JavaScript and TypeScript."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tree_sitter import Node

from codebatch_workers.uses.declarations import Declaration, name_declaration
from codebatch_workers.uses.entities import DefinedEntity, Meaning, common_meaning, only_definition
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.language_rules import FUNCTION_TYPES, VALUE_TYPES

_STEPS_MAX = 24
_TRANSPARENT = frozenset(
    {"await", "await_expression", "non_null_expression", "parenthesized_expression", "readonly_type", "type"}
    | {"type_annotation", "parenthesized_type"}
)
_COMPREHENSIONS = frozenset({"generator_expression", "list_comprehension", "set_comprehension"})
_LITERALS = frozenset({"array", "list", "set", "tuple"})
_ITEMS_MAX = 8

_Typed = tuple[SourceFacts, Node]


class Evaluator(Protocol):
    """The evaluation of expressions and types that elements need."""

    def object_of(self, facts: SourceFacts, node: Node, steps: int) -> Meaning | None: ...
    def entity_of(self, facts: SourceFacts, node: Node, steps: int) -> Meaning | None: ...
    def of_type(self, facts: SourceFacts, node: Node, steps: int) -> Meaning | None: ...


class Elements:
    """Finds the types of elements and of arguments."""

    def __init__(self, values: Evaluator) -> None:
        self._values = values

    def element(self, facts: SourceFacts, node: Node, steps: int, *, is_entry: bool = False) -> Meaning | None:
        """Return the object that is an element of a collection, or an entry of a mapping."""
        if node.type in _COMPREHENSIONS:
            body = node.child_by_field_name("body")
            return None if body is None else self._values.object_of(facts, body, steps + 1)
        if node.type in _LITERALS:
            items = [item for item in node.named_children if item.type != "comment"]
            found = [self._values.object_of(facts, item, steps + 1) for item in items[:_ITEMS_MAX]]
            return common_meaning(found)
        typed = self._stated_type(facts, node, steps)
        if typed is None:
            literal = self._assigned_literal(facts, node)
            return None if literal is None else self.element(facts, literal, steps + 1)
        inner = self._element_type(*typed, steps, is_entry=is_entry)
        return None if inner is None else self._values.of_type(*inner, steps + 1)

    def argument(self, facts: SourceFacts, parameter: Node, steps: int) -> Meaning | None:
        """Return the object that a function gets as an argument, from the use or the type of the function."""
        function = parameter.parent
        siblings = [parameter]
        if function is not None and function.type == "formal_parameters":
            siblings, function = list(function.named_children), function.parent
        holder = None if function is None else function.parent
        if function is None or holder is None or steps > _STEPS_MAX:
            return None
        index = siblings.index(parameter)
        if holder.type == "arguments" and holder.parent is not None and index == 0:
            called = holder.parent.child_by_field_name("function")
            method = None if called is None else called.child_by_field_name("property")
            array = None if called is None else called.child_by_field_name("object")
            if array is not None and method is not None and facts.text(method) in facts.rules.values.calling_methods:
                return self.element(facts, array, steps + 1)
        stated = holder.child_by_field_name("type") if holder.type in ("variable_declarator", "pair") else None
        typed = None if stated is None else self._expanded(facts, stated, steps)
        if typed is None or typed[1].type != "function_type":
            return None
        parameters = typed[1].child_by_field_name("parameters")
        declared = parameters.named_children[index : index + 1] if parameters is not None else []
        inner = declared[0].child_by_field_name("type") if declared else None
        return None if inner is None else self._values.of_type(typed[0], inner, steps + 1)

    def _stated_type(self, facts: SourceFacts, node: Node, steps: int) -> _Typed | None:
        """Return the type that the code states for an expression, with its file."""
        if steps > _STEPS_MAX:
            return None
        if node.type in _TRANSPARENT and node.named_child_count == 1:
            return self._stated_type(facts, node.named_children[0], steps + 1)
        if node.type in ("as_expression", "satisfies_expression") and node.named_child_count > 1:
            return facts, node.named_children[1]
        if node.type in ("call", "call_expression"):
            return self._result_type(facts, node, steps)
        definitions = facts.plain_definitions(node) if node.type == "identifier" else ()
        if definitions:
            return self._first_stated([facts.declaration(bound) for bound in definitions], facts, steps)
        entity = only_definition(self._values.entity_of(facts, node, steps + 1))
        if entity is None or entity.symbols[0].symbol_type not in VALUE_TYPES | {"method"}:
            return None
        name, declared = entity.facts.name_of(entity.symbols[0]), _declared_result(entity)
        if name is None or declared is not None:
            return declared
        return self._first_stated([name_declaration(name)], entity.facts, steps)

    def _first_stated(self, declarations: Sequence[Declaration], facts: SourceFacts, steps: int) -> _Typed | None:
        """Return the first type that declarations of a variable state, or the type of its only value."""
        for declaration in declarations:
            if declaration.kind == "type" and declaration.node is not None and not declaration.member:
                return facts, declaration.node
        value = declarations[0].node if len(declarations) == 1 and declarations[0].kind == "value" else None
        return None if value is None else self._stated_type(facts, value, steps + 1)

    def _assigned_literal(self, facts: SourceFacts, node: Node) -> Node | None:
        """Return the list that a local variable is set to, in its only definition."""
        if node.type in ("call", "call_expression"):
            function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
            is_copy = function is not None and facts.text(function) in facts.rules.values.copies
            return arguments.named_children[0] if is_copy and arguments and arguments.named_child_count == 1 else None
        definitions = facts.bound_names(facts.text(node), node.start_byte) if node.type == "identifier" else ()
        declaration = facts.declaration(definitions[0]) if len(definitions) == 1 else None
        value = None if declaration is None or declaration.kind != "value" else declaration.node
        return value if value is not None and value.type in _COMPREHENSIONS | _LITERALS else None

    def _result_type(self, facts: SourceFacts, call: Node, steps: int) -> _Typed | None:
        function = call.child_by_field_name("function")
        found = None if function is None else self._values.entity_of(facts, function, steps + 1)
        entity = only_definition(found)
        is_function = entity is not None and entity.symbols[0].symbol_type in FUNCTION_TYPES
        return _declared_result(entity) if entity is not None and is_function else None

    def _element_type(self, facts: SourceFacts, node: Node, steps: int, *, is_entry: bool) -> _Typed | None:
        expanded = self._expanded(facts, node, steps)
        if expanded is None:
            return None
        facts, node = expanded
        if node.type == "array_type" and node.named_children:
            return facts, node.named_children[0]
        name = node.named_children[0] if node.type in ("generic_type", "subscript") and node.named_children else None
        if name is None:
            return None
        arguments = list(node.named_children[1:])
        if len(arguments) == 1 and arguments[0].type in ("type_arguments", "type_parameter"):
            arguments = list(arguments[0].named_children)
        text, rules = facts.text(name).rpartition(".")[2], facts.rules.values
        if not arguments:
            return None
        if text in rules.wrappers:
            return self._element_type(facts, arguments[0], steps + 1, is_entry=is_entry)
        if text in rules.mappings:
            return facts, arguments[-1 if is_entry else 0]
        is_uniform = text.lower() != "tuple" or (len(arguments) == 2 and facts.text(arguments[1]) == "...")
        return (facts, arguments[0]) if text in rules.collections and is_uniform else None

    def _expanded(self, facts: SourceFacts, node: Node, steps: int) -> _Typed | None:
        """Return a type without parentheses and empty alternatives. A name of a type is replaced by the type."""
        while node.type in _TRANSPARENT and node.named_child_count == 1:
            node = node.named_children[0]
        if steps > _STEPS_MAX:
            return None
        if node.type in ("union_type", "binary_operator"):
            parts = [part for part in node.named_children if part.type not in ("literal_type", "none")]
            return self._expanded(facts, parts[0], steps + 1) if len(parts) == 1 else None
        if node.type not in ("type_identifier", "identifier", "nested_type_identifier"):
            return facts, node
        entity = only_definition(self._values.entity_of(facts, node, steps + 1))
        if entity is None:
            return facts, node
        declaration = entity.facts.declaration_of(entity.symbols[0])
        is_alias = declaration is not None and declaration.type == "type_alias_declaration"
        value = declaration.child_by_field_name("value") if declaration is not None and is_alias else None
        return (facts, node) if value is None else self._expanded(entity.facts, value, steps + 1)


def _declared_result(entity: DefinedEntity) -> _Typed | None:
    function = entity.facts.function_of(entity.symbols[0])
    declared = None if function is None else function.child_by_field_name("return_type")
    return None if declared is None else (entity.facts, declared)
