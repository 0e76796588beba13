"""The decision whether an occurrence of a name is a use of certain symbols."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from codebatch.errors import InvalidInput
from codebatch.model.analysis.language_facts import LanguageFacts
from codebatch.model.analysis.uses import Certainty, Definition, NameUse, least_certain
from codebatch.model.entry import path_row
from codebatch.operations import ignore_note
from codebatch.operations.queries.batch_query import try_find_item
from codebatch.plugins.worker_services import ProjectUses, fact_services
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.filters import path_bytes
from codebatch.query.sources.records import BatchRecords

SymbolKey = tuple[str, str]
"""A symbol: the path of its file and its qualified name."""

DefinitionPlace = tuple[str, int, int]
"""A definition: the path of its file, its line and its column."""

_FUNCTION_TYPES = frozenset({"constructor", "function", "macro", "method"})
_TYPES_WITHOUT_LABELS = frozenset(
    {
        "class",
        "constructor",
        "enum",
        "function",
        "interface",
        "macro",
        "method",
        "module",
        "namespace",
        "struct",
        "trait",
    }
)
"""Types of definitions that neither the name of an argument nor the key of a literal can mean."""
_BASE_OBJECTS = frozenset({"base", "parent", "super"})


class OverriddenMethod(msgspec.Struct, frozen=True):
    """A method that another one overrides or implements: its qualified name, and how certain this is."""

    qualified: str
    certainty: Certainty


class SymbolUse(msgspec.Struct, frozen=True):
    """A use of a symbol. `candidates` is the number of definitions to which it can refer; 1 if it is resolved.

    If the use refers to a method that the symbol overrides, `through` is the qualified name of this method.
    """

    path: bytes
    use: NameUse
    certainty: Certainty
    candidates: int
    through: str = ""

    @property
    def row(self) -> JsonRecord:
        """The use as a dictionary."""
        place: JsonRecord = {"line": self.use.line, "column": self.use.column}
        end: JsonRecord = {"end_line": self.use.end_line, "end_column": self.use.end_column}
        kind: JsonRecord = {"role": self.use.role, "scope": self.use.scope, "target": self.use.target}
        return {
            **path_row(self.path), **place, **end, **kind, "resolution": self.certainty, "candidates": self.candidates,
            "through": self.through,
        }  # fmt: skip


def definitions_at(records: BatchRecords, name: str, definitions: Sequence[JsonRecord], place: str) -> list[JsonRecord]:
    """Return the definitions of a name at a place `path:line` or `path`. Without a place, return all.

    The path is relative to the current directory or to the project, as in `find_item`. Raises InvalidInput if there are
    none at the place.
    """
    if not place:
        return list(definitions)
    path, _, line = place.rpartition(":") if re.search(r":\d+\Z", place) else (place, "", "")
    file = try_find_item(records, path, ignore_note)
    chosen = [
        definition
        for definition in definitions
        if file is not None and path_bytes(definition) == file[0] and (not line or definition["line"] == int(line))
    ]
    if not chosen:
        hint = f"list its definitions with: codebatch def {name}"
        raise InvalidInput(f"{name} is not defined at {place}", hint=hint)
    return chosen


def symbol_keys(definitions: Sequence[JsonRecord]) -> frozenset[SymbolKey]:
    """Return the keys of the symbols that `symbol` records define."""
    return frozenset((os.fsdecode(path_bytes(record)), str(record["qualified"])) for record in definitions)


def language_facts(uses: ProjectUses, path: str) -> LanguageFacts:
    """Return the facts about the language of a file."""
    return fact_services().language_facts(uses.language_of(path))


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The definitions that a question selects, if its name has others too. Each is a path, a line and a column.

    `definitions` also has those that are `excluded`: they have the qualified name of a selected one.
    """

    definitions: Sequence[DefinitionPlace] = ()
    excluded: frozenset[DefinitionPlace] = frozenset()

    @staticmethod
    def of(selected: Sequence[JsonRecord], known: Sequence[JsonRecord], *, is_narrow: bool) -> Selection:
        """Return the selection of some definitions among all with a name. `is_narrow` is set if others can exist."""
        keys, places = symbol_keys(selected), {definition_place(record) for record in selected}
        equal = [definition_place(record) for record in known if symbol_keys([record]) <= keys]
        excluded = frozenset(equal) - places
        return Selection(definitions=equal if is_narrow else (), excluded=excluded)

    def select(self, found: Sequence[Definition]) -> tuple[list[Definition], int]:
        """Return the selected ones of some definitions, and the number of others that a use can mean as well.

        The parts of a class, a variable, or a function and its signatures are one.
        """
        others = [one for one in found if (one.path, one.line, one.column) in self.excluded]
        selected = [one for one in found if one not in others]
        kinds = {one.is_signature for one in selected}
        return selected, sum(one.symbol_type in _FUNCTION_TYPES and one.is_signature in kinds for one in others)

    def can_be_meant(self, use: SymbolUse, uses: ProjectUses) -> bool:
        """Return whether a call by name, or of another method, can mean a selected definition by its arguments."""
        is_open = use.through or (use.certainty == "name" and not use.use.resolved.definitions)
        if not is_open or use.use.role != "call" or not self.definitions:
            return True
        place = (use.use.line, use.use.column)
        fitting = uses.select_callable(os.fsdecode(use.path), place, self.definitions)
        return not self.excluded.issuperset(fitting)


def definition_place(record: JsonRecord) -> DefinitionPlace:
    """Return the place of a definition."""
    line, column = record["line"], record["column"]
    assert isinstance(line, int)
    assert isinstance(column, int)
    return os.fsdecode(path_bytes(record)), line, column


def is_other(use: NameUse, definitions: Sequence[JsonRecord]) -> bool:
    """Return whether an unresolved reference does not mean the definitions: it is a local variable, or a label.

    A framework can pass the result of a decorated function as the argument with its name, as pytest does.
    """
    if use.meaning == "label":
        return bool(definitions) and not any(map(_has_labels, definitions))
    return use.meaning == "local" and not any(record.get("decorators") for record in definitions)


def _has_labels(definition: JsonRecord) -> bool:
    if definition["symbol_type"] == "method":
        return fact_services().path_facts(path_bytes(definition)).has_methods_in_literals
    return definition["symbol_type"] not in _TYPES_WITHOUT_LABELS


def classify(
    path: bytes, use: NameUse, symbols: Collection[SymbolKey], candidates: int, selection: Selection | None = None
) -> SymbolUse | None:
    """Return a use of one of the symbols, or None if the use refers to something else.

    If a question selects some of the definitions of a symbol, the others are something else.

    A use that is not resolved can refer to any of `candidates` symbols. If this is 0, it is taken to refer to others.
    """
    resolved = use.resolved
    places = {(found.path, found.qualified) for found in resolved.definitions}
    if not places.isdisjoint(symbols):
        own = [found for found in resolved.definitions if (found.path, found.qualified) in symbols]
        selected, others = (own, 0) if selection is None else selection.select(own)
        if not selected:
            return None
        certainty = "name" if others else resolved.certainty
        return SymbolUse(path, use, certainty, len(places) + others)
    if resolved.certainty != "name" or places or not candidates or use.role == "definition":
        return None
    return SymbolUse(path, use, "name", candidates)


def classify_through(
    path: bytes, use: NameUse, overridden: Mapping[SymbolKey, OverriddenMethod], is_only_type: Callable[[str], bool]
) -> SymbolUse | None:
    """Return the use of a method that the requested one overrides, or None if the call is bound to the former.

    Which of the methods a value has is known at best from its type, so the use is not `exact`. `is_only_type`
    returns whether a name is that of a type in the batch, and of no value.
    """
    places = [(found.path, found.qualified) for found in use.resolved.definitions]
    through = next((overridden[place] for place in places if place in overridden), None)
    if through is None or use.role not in ("call", "reference") or _is_bound(path, use.target, is_only_type):
        return None
    certainty = least_certain(least_certain("inferred", use.resolved.certainty), through.certainty)
    return SymbolUse(path, use, certainty, len(places), through.qualified)


def _is_bound(path: bytes, target: str, is_only_type: Callable[[str], bool]) -> bool:
    """Return whether a call as written names a type, and so calls its method: `super().f`, `parent::f`, `Base.f`."""
    owner = ["", *re.findall(r"\w+", target)][-2]
    return owner in _BASE_OBJECTS or (not fact_services().path_facts(path).calls_by_type and is_only_type(owner))
