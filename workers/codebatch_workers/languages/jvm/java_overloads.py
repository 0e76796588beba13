"""The methods of Java that a call can mean, by the number of its arguments, and overriding."""

from __future__ import annotations

from collections.abc import Sequence

from tree_sitter import Node

from codebatch.model.analysis.uses import Certainty
from codebatch_workers.languages.jvm.java_types import JavaMembers, Member, declared_type_node, node_text, type_name
from codebatch_workers.uses.file_facts import SourceFacts


def candidates(members: JavaMembers, count: int | None) -> tuple[list[Member], Certainty]:
    """Return the methods that a call with a number of arguments can mean, and how certain the choice is.

    Methods that another one overrides are left out. If a parameter has the type of a type parameter, it is not certain
    that one method overrides the other.
    """
    found: list[tuple[Member, list[str]]] = []
    certainty: Certainty = "exact"
    for member in members.found:
        types, is_variable = _parameters(member)
        if count is not None and len(types) != count and not (is_variable and count >= len(types) - 1):
            continue
        overriding = [known for one, known in found if _owner(one) != _owner(member) and _overrides(known, types)]
        if not overriding:
            found.append((member, types))
        elif types not in overriding:
            certainty = "inferred"
    return [member for member, _ in found], certainty


def _owner(member: Member) -> tuple[str, str]:
    return member.facts.path, member.symbol.scope


def _parameters(member: Member) -> tuple[list[str], bool]:
    """Return the simple names of the parameter types, `?` for type parameters, and whether the last one repeats."""
    parameters = member.node.child_by_field_name("parameters")
    types: list[str] = []
    is_variable = False
    for child in parameters.named_children if parameters is not None else ():
        if child.type not in ("formal_parameter", "spread_parameter"):
            continue
        is_variable = child.type == "spread_parameter"
        type_node = declared_type_node(child)
        if type_node is None:
            type_node = next((part for part in child.named_children if part.type.endswith("_type")), child)
        written = type_name(type_node, member.facts.file.utf8)
        types.append(
            "?"
            if _is_type_parameter_of_class(member.facts, type_node, written)
            else written.rpartition(".")[2] or node_text(member.facts, type_node)
        )
    return types, is_variable


def parameter_of_result_type(method: Member) -> int | None:
    """Return the index of the only parameter whose type is the result type, if that is the method's type parameter."""
    utf8, result = method.facts.file.utf8, method.node.child_by_field_name("type")
    name = b"" if result is None else utf8[result.start_byte : result.end_byte]
    own = method.node.child_by_field_name("type_parameters")
    declared = [] if own is None else [parameter.named_children[0] for parameter in own.named_children]
    if not any(utf8[node.start_byte : node.end_byte] == name for node in declared if node.type == "type_identifier"):
        return None
    parameters = method.node.child_by_field_name("parameters")
    types = [] if parameters is None else [declared_type_node(child) for child in parameters.named_children]
    indexes = [i for i, node in enumerate(types) if node is not None and utf8[node.start_byte : node.end_byte] == name]
    return (
        indexes[0]
        if len(indexes) == 1
        and parameters is not None
        and b"..." not in utf8[parameters.start_byte : parameters.end_byte]
        else None
    )


def _is_type_parameter_of_class(facts: SourceFacts, node: Node, name: str) -> bool:
    found = facts.local_names.definition(node.start_byte, name.encode(), frozenset({"type_parameter"}))
    place = found.node if found is not None else None
    while place is not None and place.type in ("type_identifier", "type_parameter", "type_parameters"):
        place = place.parent
    return place is not None and place.type.endswith("_declaration") and place.type != "method_declaration"


def _overrides(types: Sequence[str], others: Sequence[str]) -> bool:
    return len(types) == len(others) and all(
        one == other or "?" in (one, other) for one, other in zip(types, others, strict=True)
    )
