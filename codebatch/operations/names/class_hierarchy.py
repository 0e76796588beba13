"""Classes, the bases that they declare, and the methods that override those of a base.

A base is resolved at the place where a class names it. A base that is not resolved can be each class with its name. In
Go, a type also implements each interface whose methods it has.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from codebatch.model.analysis.language_facts import LanguageFacts
from codebatch.model.analysis.uses import Certainty, NameUse, least_certain
from codebatch.model.record import ANONYMOUS
from codebatch.operations.names.symbol_use import Overridden, SymbolKey, symbol_keys
from codebatch.plugins.worker_services import ProjectUses, fact_services
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.filters import RecordFilter, last_name, path_bytes
from codebatch.query.sources.records import BatchRecords

CLASSES_FOLLOWED_MAX = 200
"""Maximum number of classes that are followed for one question."""
_METHOD_TYPES = frozenset({"method", "property", "function"})
CLASS_TYPES = frozenset({"class", "struct", "interface", "trait", "type", "enum", "module"})


class Bases(msgspec.Struct, frozen=True):
    """All bases of a class, also of inherited ones: those in the batch, and the names of others."""

    known: Mapping[SymbolKey, Certainty]
    outer: frozenset[str]


class _TypesOfFile(NamedTuple):
    """The classes of a file by their qualified names, its `inherits` edges, and its methods."""

    classes: Mapping[str, JsonRecord]
    bases: Sequence[JsonRecord]
    methods: Sequence[JsonRecord]


class ClassHierarchy:
    """The classes of a batch and their bases. The records of a file are read once. Methods raise StoreCorrupt."""

    def __init__(self, records: BatchRecords, uses: ProjectUses) -> None:
        self._records = records
        self._uses = uses
        self._by_path: dict[str, _TypesOfFile] = {}
        self._structural: dict[SymbolKey, Mapping[SymbolKey, Certainty]] = {}
        self._type_names: dict[str, bool] = {}
        self._parts: dict[SymbolKey, Mapping[SymbolKey, Certainty]] = {}

    def overridden(self, methods: Sequence[JsonRecord], same_name: Sequence[JsonRecord]) -> dict[SymbolKey, Overridden]:
        """Return the methods among `same_name` that one of `methods` overrides. All have one name."""
        chosen = symbol_keys(methods)
        others = [record for record in same_name if is_method(record) and symbol_keys([record]).isdisjoint(chosen)]
        found: dict[SymbolKey, Overridden] = {}
        for method in filter(is_method, methods) if others else ():
            bases = self.bases(owner_of(method)).known
            for other in others:
                certainty = self._certainty(bases, other) or self._is_implemented(other, method)
                if certainty:
                    found[symbol_key(other)] = Overridden(str(other["qualified"]), certainty)
        return found

    def outer_bases(self, method: JsonRecord) -> list[str]:
        """Return the names of the bases of the class of a method that the batch does not define."""
        return sorted(self.bases(owner_of(method)).outer) if is_method(method) else []

    def bases(self, class_: SymbolKey) -> Bases:
        """Return all bases of a class."""
        known: dict[SymbolKey, Certainty] = {}
        outer = set[str]()
        pending: list[tuple[SymbolKey, Certainty]] = [(class_, "exact")]
        while pending and len(known) <= CLASSES_FOLLOWED_MAX:
            current, certainty = pending.pop()
            for part, part_certainty in self.parts(current).items():
                for edge in self.declared_bases(part[0]):
                    if edge["source"] not in (part[1], anonymous_class(part[1])):
                        continue
                    base_certainty, bases = self._resolve(part[0], edge)
                    least = least_certain(least_certain(certainty, part_certainty), base_certainty)
                    new = [base for base in bases if base not in known and base != class_]
                    known |= dict.fromkeys(new, least)
                    pending += [(base, least) for base in new]
                    if not bases:
                        outer.add(str(last_name(edge["target"])))
        return Bases(known, frozenset(outer))

    def parts(self, class_: SymbolKey) -> Mapping[SymbolKey, Certainty]:
        """Return the declarations that are one class: those with its qualified name, if the language merges them.

        So are a class in a header and its methods in another file.
        """
        if class_ not in self._parts:
            is_merged = self._facts(class_[0]).merges_declarations
            parts: dict[SymbolKey, Certainty] = {class_: "exact"}
            if is_merged or self.class_at(class_) is None:
                named = set(map(symbol_key, self._classes(str(last_name(class_[1])), class_[0])))
                others = {other for other in named if other[1] == class_[1]} - {class_}
                near = {other for other in others if _in_package(other) == _in_package(class_)}
                found = others if is_merged or not near else near
                parts |= dict.fromkeys(found, "inferred" if is_merged or len(found) == 1 else "name")
            self._parts[class_] = parts
        return self._parts[class_]

    def declared_bases(self, path: str) -> Sequence[JsonRecord]:
        """Return the `inherits` edges of a file."""
        return self._types_in(path).bases

    def class_at(self, class_: SymbolKey) -> JsonRecord | None:
        """Return the definition of a class in its file."""
        return self._types_in(class_[0]).classes.get(class_[1])

    def is_type(self, name: str) -> bool:
        """Return whether a name with a capital letter, as most types have, is that of a type."""
        if name not in self._type_names:
            records = self._named(name) if name[:1].isupper() else ()
            self._type_names[name] = any(map(_is_class, records))
        return self._type_names[name]

    def structural_types(self, interface: SymbolKey) -> Mapping[SymbolKey, Certainty]:
        """Return the types that have all methods of an interface, in languages where these implement it.

        A type has the path of one of its methods. If the interface has a base that the batch does not define, the types
        may lack methods.
        """
        if interface not in self._structural:
            self._structural[interface] = self._types_with_methods(interface) if self._is_open(interface) else {}
        return self._structural[interface]

    def _types_with_methods(self, interface: SymbolKey) -> Mapping[SymbolKey, Certainty]:
        bases = self.bases(interface)
        declared = {interface, *bases.known}
        methods = [method for path, _ in declared for method in self._types_in(path).methods]
        needed = {str(method["name"]) for method in methods if owner_of(method) in declared}
        if not needed:
            return {}
        named = RecordFilter(kinds=("symbol",), names=tuple(needed), symbol_types=("method",))
        names: dict[SymbolKey, set[str]] = defaultdict(set)
        types: dict[SymbolKey, SymbolKey] = {}
        for record in self._records.iter_records("symbols", named, is_auxiliary=True):
            owner = owner_of(record)
            names[_in_package(owner)].add(str(record["name"]))
            types.setdefault(_in_package(owner), owner)
        certainty: Certainty = "name" if bases.outer else "inferred"
        return {
            type_: certainty
            for package, type_ in types.items()
            if type_ not in declared
            and needed <= names[package].union(*(names[_in_package(base)] for base in self.bases(type_).known))
            and not self._is_open(type_)
            and self._uses.language_of(type_[0]) == self._uses.language_of(interface[0])
        }

    def _is_open(self, class_: SymbolKey) -> bool:
        """Return whether a type is an interface that other types implement by their methods alone."""
        record = self.class_at(class_) if self._facts(class_[0]).has_structural_types else None
        return record is not None and record["symbol_type"] == "interface"

    def _certainty(self, bases: Mapping[SymbolKey, Certainty], method: JsonRecord) -> Certainty | None:
        """Return how certain it is that a method belongs to one of some bases. Return None if it does not."""
        owners = self.parts(owner_of(method)) if bases else {}
        certainties = [least_certain(bases[key], certainty) for key, certainty in owners.items() if key in bases]
        return min(certainties, key=("exact", "inferred", "name").index, default=None)

    def _is_implemented(self, declared: JsonRecord, method: JsonRecord) -> Certainty | None:
        """Return how certain it is that the type of a method has all methods of the interface that declares another."""
        package = _in_package(owner_of(method))
        types = self.structural_types(owner_of(declared))
        return next((certainty for type_, certainty in types.items() if _in_package(type_) == package), None)

    def _resolve(self, path: str, edge: JsonRecord) -> tuple[Certainty, Sequence[SymbolKey]]:
        """Return the classes that a base at the place of an edge can be, and how certain this is."""
        name = str(last_name(edge["target"]))
        uses = [use for use in self._uses.uses_in(path, name) if names_base(use, edge)]
        if any(use.resolved.certainty == "external" for use in uses):
            return "external", ()
        resolved = next((use.resolved for use in uses if use.resolved.definitions), None)
        if resolved is not None:
            found = {(each.path, each.qualified) for each in resolved.definitions if each.symbol_type in CLASS_TYPES}
            return resolved.certainty, sorted(found)
        return "name", sorted(set(map(symbol_key, self._classes(name, path))))

    def _classes(self, name: str, path: str) -> Iterator[JsonRecord]:
        """Yield the classes with a name that code in a file can use."""
        language = self._uses.language_of(path)
        for record in self._named(name):
            other = self._uses.language_of(symbol_key(record)[0]) if _is_class(record) else ""
            if other and fact_services().call_each_other(language, other):
                yield record

    def _named(self, name: str) -> Iterable[JsonRecord]:
        return self._records.iter_records("symbols", RecordFilter(names=(name,)), is_auxiliary=True)

    def _facts(self, path: str) -> LanguageFacts:
        return fact_services().language_facts(self._uses.language_of(path))

    def _types_in(self, path: str) -> _TypesOfFile:
        if path not in self._by_path:
            encoded = os.fsencode(path)
            item = self._records.find_items([encoded]).get(encoded)
            records = [] if item is None else self._records.item_records("symbols", item) or []
            self._by_path[path] = _TypesOfFile(
                {str(record["qualified"]): record for record in reversed(records) if _is_class(record)},
                [record for record in records if record["kind"] == "edge" and record["edge_type"] == "inherits"],
                [record for record in records if is_method(record)],
            )
        return self._by_path[path]


def is_method(record: JsonRecord) -> bool:
    """Return whether a definition is a method of a class."""
    return record["kind"] == "symbol" and record["symbol_type"] in _METHOD_TYPES and bool(record.get("scope"))


def owner_of(method: JsonRecord) -> SymbolKey:
    """Return the class of a method, as a symbol in the file of the method."""
    return os.fsdecode(path_bytes(method)), str(method["scope"])


def symbol_key(record: JsonRecord) -> SymbolKey:
    """Return the key of a definition."""
    return os.fsdecode(path_bytes(record)), str(record["qualified"])


def anonymous_class(scope: str) -> str:
    """Return the qualified name of classes without a name in a scope. Its methods are symbols of the scope itself."""
    return f"{scope}.{ANONYMOUS}" if scope else ANONYMOUS


def names_base(use: NameUse, edge: JsonRecord) -> bool:
    """Return whether a use is the name of a base in an `inherits` edge of its file."""
    return (
        use.line == edge["line"]
        and use.role in ("call", "reference")
        and last_name(use.target) == last_name(edge["target"])
    )


def _is_class(record: JsonRecord) -> bool:
    return record["kind"] == "symbol" and record["symbol_type"] in CLASS_TYPES


def _in_package(type_: SymbolKey) -> SymbolKey:
    """Return the key of a type in its package: all files of its directory."""
    return os.path.dirname(type_[0]), type_[1]
