"""Classes, the bases that they declare, and the methods that override those of a base.

A base is resolved at the place where a class names it, also through aliases of types. A base that is not resolved can
be each class with its name. In some languages, a type also implements each interface whose methods it has.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

import msgspec

from codebatch.model.analysis.uses import (
    ANONYMOUS_MARK,
    CERTAINTIES,
    MODULE_MARK,
    Certainty,
    SourceReader,
    least_certain,
)
from codebatch.model.record import ANONYMOUS
from codebatch.operations.names.symbol_use import (
    OverriddenMethod,
    SymbolKey,
    SymbolUse,
    definition_place,
    language_facts,
    symbol_keys,
)
from codebatch.operations.names.type_records import (
    CLASS_TYPES,
    anonymous_class,
    in_package,
    is_method,
    is_type,
    name_parts,
    names_base,
    owner_of,
    symbol_key,
)
from codebatch.plugins.worker_services import ProjectUses, fact_services
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.filters import RecordFilter, last_name, path_bytes
from codebatch.query.sources.records import BatchRecords

_CLASSES_FOLLOWED_MAX = 200
"""Maximum number of bases of a class, and of its subclasses, that are followed."""
_MORE_CLASSES = "a type that was not followed"
_ALIASES_FOLLOWED_MAX = 5
# Another name for a type, from the other name to the end of the name of the type: `Other = a.Name<T>;`.
_ALIAS = re.compile(
    r"\w+\s*(?:<[^;]*?>|\[[^=]*\])?\s*(?::[^=]*)?=\s*(?:[\w.:\\]*\W)?(\w+)\s*(?:<[^;]*>|\[[^;]*\])?\s*(?:$|[;&|#}]|//)"
)
_ALIAS_TYPES = frozenset({"constant", "type", "variable"})
_VALUE_TYPES = frozenset({"constant", "enum_member", "field", "property", "variable"})


class Bases(msgspec.Struct, frozen=True):
    """All bases of a class, also of inherited ones: those in the batch, and the names of others."""

    known: Mapping[SymbolKey, Certainty]
    outer: frozenset[str]


class _TypesOfFile(NamedTuple):
    """The classes of a file by their qualified names, its `inherits` edges, its methods, and possible aliases."""

    classes: Mapping[str, JsonRecord]
    bases: Sequence[JsonRecord]
    methods: Sequence[JsonRecord]
    aliases: Mapping[str, JsonRecord]


class ClassHierarchy:
    """The classes of a batch and their bases. The records of a file are read once. Methods raise StoreCorrupt.

    It has many methods because all of them use these records.
    """

    def __init__(self, records: BatchRecords, uses: ProjectUses, read: SourceReader) -> None:
        self._records = records
        self._uses = uses
        self._read = read
        self._by_path: dict[str, _TypesOfFile] = {}
        self._structural: dict[SymbolKey, Mapping[SymbolKey, Certainty]] = {}
        self._type_names: dict[str, bool] = {}
        self._base_names: dict[SymbolKey, frozenset[object]] = {}
        self._subclasses_by_name: dict[str, frozenset[SymbolKey]] = {}
        self._parts: dict[SymbolKey, Mapping[SymbolKey, Certainty]] = {}

    def find_overridden(
        self, methods: Sequence[JsonRecord], same_name: Sequence[JsonRecord]
    ) -> dict[SymbolKey, OverriddenMethod]:
        """Return the methods among `same_name` that one of `methods` overrides. All have one name.

        A method that a class inherits also implements the method of another base of the class. Which classes these are
        is known only by the names of the bases.
        """
        chosen = symbol_keys(methods)
        others = [record for record in same_name if is_method(record) and symbol_keys([record]).isdisjoint(chosen)]
        found: dict[SymbolKey, OverriddenMethod] = {}
        for method in filter(is_method, methods) if others else ():
            bases = self.method_bases(method).known
            subclasses = self._subclasses(method)
            for other in others:
                certainty = self._certainty(bases, other) or self._structural_certainty(other, owner_of(method))
                is_implemented = certainty is not None or self._is_implemented_by_subclass(other, subclasses)
                if is_implemented and self.can_override(method, other):
                    certainty = certainty or "name"
                    found[symbol_key(other)] = OverriddenMethod(str(other["qualified"]), certainty)
        return found

    def can_override(self, method: JsonRecord, base: JsonRecord) -> bool:
        """Return whether a method of a type can override one of a base of the type."""
        return self._uses.can_override(definition_place(method), definition_place(base))

    def outer_bases(self, method: JsonRecord) -> list[str]:
        """Return the names of the bases that can call a method, and that the batch does not define.

        They are bases of its class, and of the classes that inherit the method. If no class of the batch inherits the
        methods of a module, code outside does.
        """
        if not is_method(method):
            return []
        outer = set(self.method_bases(method).outer)
        subclasses = self._subclasses(method)
        outer.update(*(self.bases(subclass).outer for subclass in subclasses))
        if MODULE_MARK in self._uses.marks_at(*definition_place(method)) and not subclasses:
            outer.add(f"code outside that includes {last_name(method['scope'])}")
        if len(subclasses) > _CLASSES_FOLLOWED_MAX:
            outer.add(_MORE_CLASSES)
        return sorted(outer)

    def method_bases(self, method: JsonRecord) -> Bases:
        """Return all bases of the class of a method, which can be a anonymous class."""
        path, scope = owner_of(method)
        names = self._anonymous_bases(method)
        if not names:
            return self.bases((path, scope))
        anonymous = path, anonymous_class(scope)
        recorded = {last_name(edge["target"]) for edge in self.declared_bases(path) if edge["source"] == anonymous[1]}
        found = self._bases(anonymous, names)
        return Bases(found.known, found.outer | {str(name) for name in names - recorded})

    def is_in_anonymous_class(self, method: JsonRecord) -> bool:
        """Return whether a method belongs to a anonymous class."""
        return bool(self._anonymous_bases(method))

    def bases(self, class_: SymbolKey) -> Bases:
        """Return all bases of a class."""
        return self._bases(class_, None)

    def _bases(self, class_: SymbolKey, names: Set[object] | None) -> Bases:
        """Return all bases of a class, beginning with those of some names, if names are given."""
        known: dict[SymbolKey, Certainty] = {}
        outer = set[str]()
        pending: list[tuple[SymbolKey, Certainty]] = [(class_, "exact")]
        while pending and len(known) <= _CLASSES_FOLLOWED_MAX:
            current, certainty = pending.pop()
            for part, part_certainty in self.parts(current).items():
                for edge in self.declared_bases(part[0]):
                    name = last_name(edge["target"])
                    is_left_out = names is not None and current == class_ and name not in names
                    if edge["source"] != part[1] or is_left_out:
                        continue
                    base_certainty, bases = self._resolve(part[0], edge)
                    least = least_certain(least_certain(certainty, part_certainty), base_certainty)
                    new = [base for base in bases if base not in known and base != class_]
                    known |= dict.fromkeys(new, least)
                    pending += [(base, least) for base in new]
                    # What an alias means is not known if it is not followed.
                    if all(self._is_alias_type(base) for base in bases):
                        outer.add(str(name))
        return Bases(known, frozenset(outer | ({_MORE_CLASSES} if pending else set())))

    def _is_alias_type(self, class_: SymbolKey) -> bool:
        definition = self.class_at(class_)
        return definition is not None and definition["symbol_type"] == "type"

    def parts(self, class_: SymbolKey) -> Mapping[SymbolKey, Certainty]:
        """Return the declarations that are one class: those with its qualified name, if the language merges them.

        So are a class in a header and its methods in another file.
        """
        if class_ not in self._parts:
            is_merged = language_facts(self._uses, class_[0]).merges_declarations
            parts: dict[SymbolKey, Certainty] = {class_: "exact"}
            if not class_[1].endswith(ANONYMOUS) and (is_merged or self.class_at(class_) is None):
                named = set(map(symbol_key, self._classes(str(last_name(class_[1])), class_[0])))
                others = {other for other in named if other[1] == class_[1]} - {class_}
                near = {other for other in others if in_package(other) == in_package(class_)}
                found = others if is_merged or not near else near
                parts |= dict.fromkeys(sorted(found), "inferred" if is_merged or len(found) == 1 else "name")
            self._parts[class_] = parts
        return self._parts[class_]

    def declared_bases(self, path: str) -> Sequence[JsonRecord]:
        """Return the `inherits` edges of a file."""
        return self._types_in(path).bases

    def class_at(self, class_: SymbolKey) -> JsonRecord | None:
        """Return the definition of a class in its file."""
        return self._types_in(class_[0]).classes.get(class_[1])

    def is_only_type(self, name: str) -> bool:
        """Return whether a name with a capital letter, as most types have, is that of a type, and of no value."""
        if name not in self._type_names:
            records = [*self._named(name)] if name[:1].isupper() else []
            is_value = any(record["symbol_type"] in _VALUE_TYPES for record in records)
            self._type_names[name] = not is_value and any(map(is_type, records))
        return self._type_names[name]

    def aliases_at(self, uses: Iterable[SymbolUse]) -> Iterator[SymbolKey]:
        """Yield the aliases that the lines of some uses of a type define for it."""
        for use in uses:
            path = os.fsdecode(use.path)
            for qualified, record in self._types_in(path).aliases.items() if use.use.role == "reference" else ():
                if record["line"] == use.use.line and self._aliased(path, record) == last_name(use.use.target):
                    yield path, qualified

    def _aliased(self, path: str, alias: JsonRecord) -> str:
        """Return the last name of the type for which a definition is only another name, or an empty text."""
        source = self._read(path)
        _, line, column = definition_place(alias)
        text = b"" if source is None else b"".join(source[0].splitlines()[line - 1 : line])
        found = _ALIAS.match(text.decode("utf-8", "replace"), column - 1)
        return "" if found is None else found[1]

    def structural_types(self, interface: SymbolKey) -> Mapping[SymbolKey, Certainty]:
        """Return the types that have all methods of an interface, in languages where these implement it.

        A type has the path of one of its methods. If the interface has a base that the batch does not define, the types
        may lack methods.
        """
        if interface not in self._structural:
            self._structural[interface] = self._types_with_methods(interface) if self._is_structural(interface) else {}
        return self._structural[interface]

    def _types_with_methods(self, interface: SymbolKey) -> Mapping[SymbolKey, Certainty]:
        bases = self.bases(interface)
        declared = {interface, *bases.known}
        listed = [method for path in sorted({path for path, _ in declared}) for method in self._types_in(path).methods]
        needed = {str(method["name"]): method for method in listed if owner_of(method) in declared}
        if not needed:
            return {}
        named = RecordFilter(kinds=("symbol",), names=tuple(needed), symbol_types=("method",))
        names: dict[SymbolKey, set[str]] = defaultdict(set)
        types: dict[SymbolKey, SymbolKey] = {}
        for record in self._records.iter_records("symbols", named, is_auxiliary=True):
            owner = owner_of(record)
            if self._implements(record, needed[str(record["name"])]):
                names[self._whole(owner)].add(str(record["name"]))
            types.setdefault(self._whole(owner), owner)
        language = self._uses.language_of(interface[0])
        is_certain = not bases.outer and fact_services().language_facts(language).has_structural_types
        certainty: Certainty = "inferred" if is_certain else "name"
        return {
            type_: certainty
            for whole, type_ in types.items()
            if type_ not in declared
            and needed.keys() <= names[whole].union(*(names[self._whole(base)] for base in self.bases(type_).known))
            and not self._is_structural(type_)
            and fact_services().call_each_other(self._uses.language_of(type_[0]), language)
        }

    def _implements(self, method: JsonRecord, declared: JsonRecord) -> bool:
        """Return whether a method is one that an interface declares. A private one is visible only in its package."""
        is_visible = declared.get("visibility") != "private" or (
            os.path.dirname(path_bytes(method)) == os.path.dirname(path_bytes(declared))
        )
        return is_visible and self.can_override(method, declared)

    def _is_structural(self, class_: SymbolKey) -> bool:
        """Return whether a type is one that other types implement by their methods alone."""
        base = language_facts(self._uses, class_[0]).structural_base
        record = self.class_at(class_) if base else None
        if record is None or base == "interface":
            return record is not None and record["symbol_type"] == base
        edges = self.declared_bases(class_[0])
        return any(edge["source"] == class_[1] and last_name(edge["target"]) == base for edge in edges)

    def _subclasses(self, method: JsonRecord) -> frozenset[SymbolKey]:
        """Return the classes that inherit the code of a method, as far as the names of bases show."""
        owner = self.class_at(owner_of(method))
        is_interface = owner is not None and owner["symbol_type"] == "interface"
        is_inherited = not is_interface or self._has_body(method)
        return self._named_subclasses(str(last_name(method["scope"]))) if is_inherited else frozenset()

    def _has_body(self, method: JsonRecord) -> bool:
        """Return whether a method of an interface has code, as far as its lines show."""
        path, line, column = definition_place(method)
        source, end, end_column = self._read(path), method["end_line"], method["end_column"]
        assert isinstance(end, int)
        assert isinstance(end_column, int)
        lines = [] if source is None else source[0].splitlines()[line - 1 : end]
        text = b" ".join([*lines[:-1], lines[-1][: end_column - 1]])[column - 1 :] if lines else b""
        return b"{" in text or b"=" in text.partition(b")")[2]

    def _named_subclasses(self, name: str) -> frozenset[SymbolKey]:
        """Return the classes that inherit from classes with a name, directly or indirectly."""
        if name not in self._subclasses_by_name:
            found: dict[SymbolKey, None] = {}
            pending = [name]
            while pending and len(found) <= _CLASSES_FOLLOWED_MAX:
                edges = RecordFilter(kinds=("edge",), targets=(str(last_name(pending.pop())),))
                for record in self._records.iter_records("symbols", edges, is_auxiliary=True):
                    subclass = os.fsdecode(path_bytes(record)), str(record.get("source", ""))
                    if record["edge_type"] == "inherits" and subclass not in found:
                        found[subclass] = None
                        pending.append(subclass[1])
            self._subclasses_by_name[name] = frozenset(found)
        return self._subclasses_by_name[name]

    def _anonymous_bases(self, method: JsonRecord) -> set[object]:
        """Return the last names of the bases of the anonymous class to which a method belongs."""
        marks = self._uses.marks_at(*definition_place(method))
        return {last_name(mark.removeprefix(ANONYMOUS_MARK)) for mark in marks if mark.startswith(ANONYMOUS_MARK)}

    def _certainty(self, bases: Mapping[SymbolKey, Certainty], method: JsonRecord) -> Certainty | None:
        """Return how certain it is that a method belongs to one of some bases. Return None if it does not."""
        owners = self.parts(owner_of(method)) if bases else {}
        certainties = [least_certain(bases[key], certainty) for key, certainty in owners.items() if key in bases]
        return min(certainties, key=CERTAINTIES.index, default=None)

    def _is_implemented_by_subclass(self, declared: JsonRecord, subclasses: Set[SymbolKey]) -> bool:
        """Return whether one of the classes that inherit a method also has the type that declares another one."""
        owner = last_name(declared["scope"])
        if any(last_name(name) == owner for _, name in subclasses):
            return False  # It overrides the inherited method.
        return any(
            owner in self._declared_names(subclass) or self._structural_certainty(declared, subclass)
            for subclass in subclasses
        )

    def _declared_names(self, class_: SymbolKey) -> frozenset[object]:
        """Return the last names of the bases that a class declares."""
        if class_ not in self._base_names:
            edges = self.declared_bases(class_[0])
            names = frozenset(last_name(edge["target"]) for edge in edges if edge["source"] == class_[1])
            self._base_names[class_] = names
        return self._base_names[class_]

    def _structural_certainty(self, declared: JsonRecord, type_: SymbolKey) -> Certainty | None:
        """Return how certain it is that a type has all methods of the interface that declares a method."""
        whole = self._whole(type_)
        types = self.structural_types(owner_of(declared))
        return next((certainty for other, certainty in types.items() if self._whole(other) == whole), None)

    def _whole(self, type_: SymbolKey) -> SymbolKey:
        """Return a key for all methods of a type. In Go, all files of a package can have some."""
        return in_package(type_) if language_facts(self._uses, type_[0]).has_structural_types else type_

    def _resolve(self, path: str, edge: JsonRecord) -> tuple[Certainty, Sequence[SymbolKey]]:
        """Return the classes that a base at the place of an edge can be, and how certain this is."""
        written = str(edge["target"])
        uses = [use for use in self._uses.uses_in(path, str(last_name(written))) if names_base(use, edge)]
        for _ in range(_ALIASES_FOLLOWED_MAX):
            if any(use.resolved.certainty == "external" for use in uses):
                return "external", ()
            resolved = next((use.resolved for use in uses if use.resolved.definitions), None)
            if resolved is None:
                break
            places = {(each.path, each.qualified): each for each in resolved.definitions}
            alias = next(((key[0], alias) for key in places if (alias := self._alias(key))), None)
            if alias is None:
                found = {key for key, each in places.items() if each.symbol_type in CLASS_TYPES}
                return resolved.certainty, sorted(found)
            path, record = alias
            written = self._aliased(path, record)
            uses = [use for use in self._uses.uses_in(path, written) if use.line == record["line"]]
        return "name", self._named_classes(written, path)

    def _named_classes(self, written: str, path: str) -> list[SymbolKey]:
        """Return the classes that a name as written in a file can mean, with all parts of the name."""
        parts = name_parts(written)
        classes = set(map(symbol_key, self._classes(parts[-1], path)))
        return sorted(class_ for class_ in classes if name_parts(class_[1])[-len(parts) :] == parts)

    def _alias(self, symbol: SymbolKey) -> JsonRecord | None:
        """Return the definition of a symbol if it is only another name of a type."""
        record = self._types_in(symbol[0]).aliases.get(symbol[1])
        return record if record is not None and self._aliased(symbol[0], record) else None

    def _classes(self, name: str, path: str) -> Iterator[JsonRecord]:
        """Yield the classes with a name that code in a file can use."""
        language = self._uses.language_of(path)
        for record in self._named(name):
            other = self._uses.language_of(symbol_key(record)[0]) if is_type(record) else ""
            if other and fact_services().call_each_other(language, other):
                yield record

    def _named(self, name: str) -> Iterable[JsonRecord]:
        return self._records.iter_records("symbols", RecordFilter(names=(name,)), is_auxiliary=True)

    def _types_in(self, path: str) -> _TypesOfFile:
        if path not in self._by_path:
            encoded = os.fsencode(path)
            item = self._records.find_items([encoded]).get(encoded)
            records = [] if item is None else self._records.item_records("symbols", item) or []
            self._by_path[path] = _TypesOfFile(
                {str(record["qualified"]): record for record in reversed(records) if is_type(record)},
                [record for record in records if record["kind"] == "edge" and record["edge_type"] == "inherits"],
                [record for record in records if is_method(record)],
                {str(record["qualified"]): record for record in records if record.get("symbol_type") in _ALIAS_TYPES},
            )
        return self._by_path[path]
