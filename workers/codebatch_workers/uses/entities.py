"""Meanings of names: definitions and modules, with the certainty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from codebatch.model.analysis.uses import Certainty, Definition, least_certain
from codebatch.model.record import Symbol
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.language_rules import CLASS_TYPES, VALUE_TYPES


class ModuleEntity(msgspec.Struct, frozen=True):
    """The files of a module: one, or those of a package."""

    files: tuple[SourceFacts, ...]


class DefinedEntity(msgspec.Struct, frozen=True):
    """Definitions with one qualified name in one file."""

    facts: SourceFacts
    symbols: tuple[Symbol, ...]


Entity = ModuleEntity | DefinedEntity


class Meaning(msgspec.Struct, frozen=True):
    """The meaning of a name. If there are no entities, it is external, or unknown."""

    certainty: Certainty
    entities: tuple[Entity, ...] = ()


EXTERNAL_MEANING = Meaning("external")


def definitions_of(found: Meaning) -> list[Definition]:
    """Return the definitions that a name means. There are none if it means a module."""
    defined = [entity for entity in found.entities if isinstance(entity, DefinedEntity)]
    return [entity.facts.definition(symbol) for entity in defined for symbol in entity.symbols]


def merge_meanings(found: Iterable[Meaning | None]) -> Meaning | None:
    """Return what a name means that has several meanings. Return None if it has none."""
    all_found = [one for one in found if one is not None]
    if len(all_found) <= 1:
        return all_found[0] if all_found else None
    entities: dict[object, Entity] = {}
    for one in all_found:
        for entity in one.entities:
            entities.setdefault(_entity_key(entity), entity)
    certainty = all_found[0].certainty
    for one in all_found[1:]:
        certainty = least_certain(certainty, one.certainty)
    if len(entities) > 1 or (entities and certainty == "external"):
        certainty = "name"
    return Meaning(certainty, tuple(entities.values()))


def common_meaning(found: Sequence[Meaning | None]) -> Meaning | None:
    """Return what all of several values mean. Return None if one of them is unknown, or if they differ."""
    merged = merge_meanings(found)
    return None if None in found or merged is None or merged.certainty == "name" else merged


def only_definition(found: Meaning | None) -> DefinedEntity | None:
    """Return the definitions that a name means, if all have one qualified name in one file."""
    entity = found.entities[0] if found is not None and len(found.entities) == 1 else None
    return entity if isinstance(entity, DefinedEntity) else None


def without_types(entity: Entity) -> Entity:
    """Leave out interfaces and type aliases if there is also a value with their name."""
    if isinstance(entity, ModuleEntity):
        return entity
    values = tuple(symbol for symbol in entity.symbols if symbol.symbol_type not in ("interface", "type"))
    return DefinedEntity(entity.facts, values) if values else entity


def _entity_key(entity: Entity) -> object:
    if isinstance(entity, ModuleEntity):
        return tuple(facts.path for facts in entity.files)
    return entity.facts.path, entity.symbols[0].qualified


def is_member(member: Meaning, owner: DefinedEntity) -> bool:
    """Return whether a class itself defines a member."""
    places = {(owner.facts.path, symbol.qualified) for symbol in owner.symbols}
    return all(
        isinstance(entity, DefinedEntity) and (entity.facts.path, entity.symbols[0].scope) in places
        for entity in member.entities
    )


def has_variables(member: Meaning) -> bool:
    """Return whether a member is a variable."""
    symbols = [symbol for entity in member.entities if isinstance(entity, DefinedEntity) for symbol in entity.symbols]
    return any(symbol.symbol_type in VALUE_TYPES for symbol in symbols)


def is_getter(entity: DefinedEntity) -> bool:
    """Return whether the symbols of an entity are methods that are read like fields."""
    symbol = entity.symbols[0]
    declaration = entity.facts.declaration_of(symbol) if symbol.symbol_type == "method" else None
    return declaration is not None and any(child.type == "get" for child in declaration.children)


def types_of(entity: DefinedEntity) -> DefinedEntity:
    """Return the classes and types among the definitions with one name."""
    return DefinedEntity(entity.facts, tuple(symbol for symbol in entity.symbols if symbol.symbol_type in CLASS_TYPES))
