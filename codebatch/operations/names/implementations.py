"""Query for the implementations of a name: the types that inherit a type, and the methods that override a method."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from codebatch.model.analysis.uses import Certainty, least_certain
from codebatch.model.entry import Entry, path_row
from codebatch.model.record import ANONYMOUS
from codebatch.model.text.quantities import count_text
from codebatch.model.text.words import searched_word
from codebatch.operations.names.class_hierarchy import ClassHierarchy
from codebatch.operations.names.symbol_use import (
    SymbolKey,
    SymbolUse,
    definition_place,
    definitions_at,
    language_facts,
)
from codebatch.operations.names.symbol_uses import UseSearch
from codebatch.operations.names.type_records import (
    CLASS_TYPES,
    anonymous_class,
    is_method,
    names_base,
    owner_of,
    symbol_key,
)
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.definitions import ends_with_name, find_definitions_only, last_name_component
from codebatch.operations.queries.name_answers import NameSearch, name_answer, use_evidence
from codebatch.plugins.worker_services import fact_services
from codebatch.query.answers.search_coverage import Evidence
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.filters import last_name, path_bytes
from codebatch.query.filters.paths import PathFilter, PathPatterns

_TYPES_FOLLOWED_MAX = 5_000
"""Maximum number of types whose inheriting types are searched for one question."""
# An import or alias that gives another name: `Name as Other`, `{Name: Other}`, `Name => Other`, `Other = Name;`.
_RENAMED = re.compile(
    rb"([\w\x80-\xff]+)\s*(?:\bas\b|:|=>)|=\s*&?(?:[\w\x80-\xff.:\\]*[.:\\])?([\w\x80-\xff]+)(?![\w\x80-\xff]|\s*[(.])"
)
# Code that gives another name to a type: `Other = a.Name<T>;`.
_ALIAS = r"=>?\s*&?(?:[\w.:\\]*\W)?NAME\s*(?:<[^;]*>|\[[^;]*\])?\s*(?:$|[;,)&|\]}])"
_FIELD_TYPES = frozenset({"constant", "field", "variable"})
_INTERFACE_TYPES = frozenset({"interface", "trait"})


class Implementation(msgspec.Struct, frozen=True, kw_only=True):
    """A type that inherits or implements the type of a question, or a method that overrides or implements the method.

    `base` is the type that it names as its base, or the method. `distance` is the number of steps from type to type.
    """

    path: bytes
    line: int
    column: int
    symbol_type: str
    qualified: str
    relation: Literal["implements", "inherits", "overrides"]
    base: str
    distance: int
    certainty: Certainty

    @property
    def row(self) -> JsonRecord:
        """The implementation as a dictionary."""
        fields = ("line", "column", "symbol_type", "qualified", "relation", "base", "distance")
        return {
            **path_row(self.path),
            **{field: getattr(self, field) for field in fields},
            "resolution": self.certainty,
        }


def find_implementations(
    question: BatchQuery,
    name: str,
    path: PathPatterns = "",
    *,
    definition: str = "",
) -> Answer[list[Implementation]]:
    """Return the implementations of the types and methods with a name in files that match `path`, by path and location.

    The name may be qualified. `definition` selects one symbol by its place, as `path:line` or `path`. A type that the
    batch does not define can have implementations, too. Raises InvalidInput or StoreCorrupt.
    """
    search = UseSearch(question)
    known, _ = find_definitions_only(question, name)
    definitions = definitions_at(question.records, name, known, definition)
    last = last_name_component(name)
    types = _InheritingTypes(search)
    found: list[Implementation] = []
    if definitions:
        # A function or variable can be a type, too.
        classes = [symbol_key(record) for record in definitions if not _is_member(record)]
        found += types.implementations(types.find_subtypes(classes))
        members = [*filter(_is_member, definitions)]
        same_name = search.same_name(last, members) if members else ()
        for member in members:
            found += types.overriding_members(member, same_name)
    else:
        found += types.implementations(types.find_foreign_subtypes(name))
    matches = PathFilter(path).matches
    rows = sorted({each for each in found if matches(each.path)}, key=msgspec.structs.astuple)
    completeness = search.completeness
    if types.is_cut:
        completeness = completeness.with_doubt(f"only {_TYPES_FOLLOWED_MAX:,} types were followed")
    name_search = NameSearch(
        name=name,
        word=searched_word(last),
        is_known=bool(definitions) or types.has_uses,
        evidence=() if rows else tuple(types.evidence(name)),
        # In code with errors, a use that is not a base may be meant as one.
        covered=Counter(search.covered(("definition", "import"))) + types.bases_by_path,
        is_wanted=matches,
    )
    return name_answer(question, rows, completeness, name_search, is_empty=not rows)


def find_direct_subtypes(definitions: Sequence[JsonRecord], like: UseSearch) -> list[Implementation]:
    """Return the types that name one of some types as their base, by path and location. `like` is as in UseSearch."""
    types = _InheritingTypes(UseSearch(like.question, like=like), steps_max=1)
    starts = [symbol_key(record) for record in definitions if record["symbol_type"] in CLASS_TYPES]
    return sorted({*types.implementations(types.find_subtypes(starts))}, key=msgspec.structs.astuple)


class _Inheritance(msgspec.Struct, frozen=True):
    """The type that another type names as its base, and the place, number of steps and certainty of this.

    `is_alias` is set if the other type is only another name of the type.
    """

    base: SymbolKey
    line: int
    column: int
    distance: int
    certainty: Certainty
    is_alias: bool = False


_InheritingType = tuple[SymbolKey, _Inheritance]


class _InheritingTypes:
    """The search for the types that inherit others.

    - `is_cut`: there were more types than are followed.
    - `has_uses`: a name has uses.
    - `bases_by_path`: the number of uses of the requested name as a base, by path.
    """

    def __init__(self, search: UseSearch, *, steps_max: int | None = None) -> None:
        """With `steps_max`, only types at most this number of steps away are found."""
        self._steps_max = steps_max
        self.is_cut = self.has_uses = False
        self.bases_by_path = Counter[bytes]()
        self._search = search
        self._hierarchy: ClassHierarchy = search.hierarchy
        self._computed_bases = self._other_chains = 0
        self._same_name = 0
        self._start_uses: Mapping[SymbolKey, Sequence[SymbolUse]] = {}
        self._other_uses: list[SymbolUse] = []
        self._renamed: dict[bytes, frozenset[bytes]] = {}

    def evidence(self, name: str) -> Iterator[Evidence]:
        """Yield the evidence that a name has implementations that its source does not show."""
        yield from use_evidence(name, {"other_chains": self._other_chains} if self._other_chains else {}, "")
        if self._same_name:
            last = str(last_name(name))
            text = count_text(
                self._same_name, f"definition of {last} may be meant", f"definitions of {last} may be meant"
            )
            command = shlex.join(["codebatch", "implementations", last])
            yield Evidence(kind="unresolved", count=self._same_name, text=text, command=command)
        if self._computed_bases:
            text = "the type occurs in an expression for a base"
            yield Evidence(kind="reference", count=self._computed_bases, text=text)
        indirect = sum(map(self._is_indirect_base, self._other_uses))
        if indirect:
            text = count_text(indirect, "use can derive a type indirectly", "uses can derive a type indirectly")
            command = shlex.join(["codebatch", "references", str(last_name(name))])
            yield Evidence(kind="reference", count=indirect, text=text, command=command)

    def _is_indirect_base(self, use: SymbolUse) -> bool:
        """Return whether the line of a use can derive a type from it, or give another name to it."""
        source = self._search.read(os.fsdecode(use.path))
        lines = () if source is None else source[0].splitlines()
        line = lines[use.use.line - 1].decode("utf-8", "replace") if use.use.line <= len(lines) else ""
        pattern = "|".join(filter(None, (_ALIAS, fact_services().path_facts(use.path).indirect_bases)))
        return re.search(pattern.replace("NAME", re.escape(str(last_name(use.use.target)))), line) is not None

    def find_subtypes(self, types: Iterable[SymbolKey]) -> list[_InheritingType]:
        """Return all types that inherit some types, directly or indirectly, each with the shortest way."""
        start = _Inheritance(("", ""), 0, 0, 0, "exact")
        starts = {part: start for type_ in types for part in self._hierarchy.parts(type_)}
        self._start_uses = self._uses_of_starts(list(starts))
        # One of several types can inherit another one with its name.
        return self._follow([*starts.items()], starts.keys() if len(starts) == 1 else ())

    def _uses_of_starts(self, starts: Sequence[SymbolKey]) -> Mapping[SymbolKey, Sequence[SymbolUse]]:
        """Return the uses of each of some types. Those with one name are searched together."""
        found: dict[SymbolKey, list[SymbolUse]] = {start: [] for start in starts}
        for name in {str(last_name(start[1])) for start in starts}:
            named = [start for start in starts if last_name(start[1]) == name]
            for use in self._search.uses(name, frozenset(named), 1):
                places = {(each.path, each.qualified) for each in use.use.resolved.definitions}
                for start in places & found.keys() or named:
                    found[start].append(use)
        return found

    def find_foreign_subtypes(self, name: str) -> list[_InheritingType]:
        """Return all types that inherit a type that the batch does not define."""
        last = last_name_component(name)
        same_name, _ = find_definitions_only(self._search.question, last)
        if all(map(self._search.files_with_name, re.findall(r"\w+", name))):
            self._same_name = sum(record["symbol_type"] in CLASS_TYPES or _is_member(record) for record in same_name)
        uses = list(self._search.foreign_uses(last))
        self.has_uses = bool(uses)
        named = [use for use in uses if ends_with_name(use.use.target, name)]
        self._other_chains = len(uses) - len(named)
        direct = self._direct(named, _Inheritance(("", name), 0, 0, 0, "external"))
        starts = [inheriting for inheriting in direct if not _is_anonymous(inheriting[0])]
        return direct + self._follow(starts, dict(starts))

    def _follow(self, pending: list[_InheritingType], excluded: Iterable[SymbolKey]) -> list[_InheritingType]:
        """Return the types that inherit the types `pending`, breadth first. Classes without a name have none."""
        known = {*excluded}
        found: list[_InheritingType] = []
        for number, (type_, inheritance) in enumerate(pending):
            if number == _TYPES_FOLLOWED_MAX:
                self.is_cut = True
                break
            own = self._hierarchy.parts(type_)
            direct = dict.fromkeys(self._direct_of(type_, inheritance))
            new = [each for each in direct if each[0] not in known and each[0] not in own]
            found += [each for each in new if not each[1].is_alias]
            following = [each for each in new if each[1].is_alias or each[1].distance != self._steps_max]
            named = {inheriting: how for inheriting, how in reversed(following) if not _is_anonymous(inheriting)}
            known |= named.keys()
            pending += reversed(named.items())
        return found

    def _direct_of(self, type_: SymbolKey, inheritance: _Inheritance) -> Iterator[_InheritingType]:
        name = str(last_name(type_[1]))
        uses_of_type = self._start_uses.get(type_)
        if uses_of_type is None:
            uses_of_type = list(self._search.uses(name, {*self._hierarchy.parts(type_)}, 1, self._can_inherit))
        base = inheritance.base if inheritance.is_alias else type_
        yield from self._direct(uses_of_type, msgspec.structs.replace(inheritance, base=base))
        for alias in self._hierarchy.aliases_at(uses_of_type):
            yield alias, msgspec.structs.replace(inheritance, base=base, is_alias=True)
        is_structural = language_facts(self._search.resolver, type_[0]).has_structural_types
        for other, certainty in self._hierarchy.structural_types(type_).items() if is_structural else ():
            least = least_certain(certainty, inheritance.certainty)
            yield other, _Inheritance(type_, 0, 0, inheritance.distance + 1, least)

    def _can_inherit(self, entry: Entry, name: str) -> bool:
        """Return whether a file has a type with a base of a name, or gives another name to it."""
        if any(last_name(edge["target"]) == name for edge in self._hierarchy.declared_bases(os.fsdecode(entry.path))):
            return True
        if entry.path not in self._renamed:
            found = _RENAMED.findall(self._search.content(entry) or b"")
            self._renamed[entry.path] = frozenset(one or other for one, other in found)
        return name.encode() in self._renamed[entry.path]

    def _direct(self, uses: Iterable[SymbolUse], base: _Inheritance) -> list[_InheritingType]:
        """Return the types that name one of some uses of a type as their base.

        If a line has several uses, the last one is taken for the base: `Base field = new Base() {…}`.
        """
        found: dict[tuple[SymbolKey, int], _Inheritance] = {}
        for use in uses:
            if use.use.role in ("definition", "import"):
                continue
            path = os.fsdecode(use.path)
            edges = [edge for edge in self._hierarchy.declared_bases(path) if edge["line"] == use.use.line]
            named = [edge for edge in edges if names_base(use.use, edge)]
            is_source = any(
                re.findall(r"\w+", str(edge["source"]))[-1:] == [last_name(use.use.target)] for edge in edges
            )
            self._computed_bases += bool(edges) and not named and not is_source
            if not base.distance:
                self.bases_by_path[use.path] += bool(named)
                self._other_uses += [use] if not edges else []
            certainty = least_certain(base.certainty, use.certainty)
            how = _Inheritance(base.base, use.use.line, use.use.column, base.distance + 1, certainty)
            found.update({((path, str(edge["source"])), use.use.line): how for edge in named})
        return [(type_, how) for (type_, _), how in found.items()]

    def implementations(self, types: Iterable[_InheritingType]) -> Iterator[Implementation]:
        """Yield types as answers. A type without a definition in its file stands where it names its base."""
        for type_, how in types:
            definition = self._hierarchy.class_at(type_)
            unknown = "class" if _is_anonymous(type_) else "type"
            symbol_type = unknown if definition is None else str(definition["symbol_type"])
            base = self._hierarchy.class_at(how.base)
            is_interface = base is not None and base["symbol_type"] in _INTERFACE_TYPES
            place = (how.line, how.column) if definition is None else definition_place(definition)[1:]
            yield Implementation(
                path=os.fsencode(type_[0]),
                line=place[0],
                column=place[1],
                symbol_type=symbol_type,
                qualified=type_[1],
                relation="implements" if is_interface and symbol_type not in _INTERFACE_TYPES else "inherits",
                base=how.base[1],
                distance=how.distance,
                certainty=how.certainty,
            )

    def overriding_members(self, member: JsonRecord, same_name: Sequence[JsonRecord]) -> Iterator[Implementation]:
        """Yield the members among `same_name` that override a member of a type."""
        types = dict(reversed(self.find_subtypes([owner_of(member)])))
        owner = self._hierarchy.class_at(owner_of(member))
        is_interface = owner is not None and owner["symbol_type"] in _INTERFACE_TYPES
        for other in same_name if types else ():
            # A function can be the method of a class without a name, or be beside the class.
            is_function = other["symbol_type"] == "function"
            if not is_function and not _is_member(other):
                continue
            (path, scope), parts = owner_of(other), self._hierarchy.parts(owner_of(other))
            anonymous = path, anonymous_class(scope)
            if anonymous in types and self._hierarchy.is_in_anonymous_class(other):
                parts, is_function = {anonymous: "exact"}, False
            ways = [(types[type_], certainty) for type_, certainty in parts.items() if type_ in types]
            if ways and symbol_key(other) != symbol_key(member) and self._hierarchy.can_override(other, member):
                how, certainty = ways[0]
                certainty = "name" if is_function else certainty
                _, line, column = definition_place(other)
                yield Implementation(
                    path=path_bytes(other),
                    line=line,
                    column=column,
                    symbol_type=str(other["symbol_type"]),
                    qualified=str(other["qualified"]),
                    relation="implements" if is_interface else "overrides",
                    base=str(member["qualified"]),
                    distance=how.distance,
                    certainty=least_certain(how.certainty, certainty),
                )


def _is_member(record: JsonRecord) -> bool:
    """Return whether a definition is a member of a type that can override one or be overridden."""
    if record["symbol_type"] in _FIELD_TYPES:
        return bool(record["scope"]) and not fact_services().path_facts(path_bytes(record)).hides_fields
    # The methods of a class without a name at the top of a file have no scope.
    return is_method(record) or record["symbol_type"] in ("constructor", "method")


def _is_anonymous(type_: SymbolKey) -> bool:
    return type_[1].endswith(ANONYMOUS)
