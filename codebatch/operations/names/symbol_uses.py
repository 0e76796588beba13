"""Query for the uses of a symbol: occurrences of its name, each resolved to definitions.

Only files that contain the name are parsed. A use that certainly refers to another definition, or to code outside the
project, is left out. A use whose definition is unknown is kept with the certainty `name`.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from codebatch.model.analysis.uses import NameUse
from codebatch.model.entry import Entry
from codebatch.model.text.words import searched_word
from codebatch.operations.names.class_hierarchy import ClassHierarchy
from codebatch.operations.names.implicit_callers import implicit_callers
from codebatch.operations.names.joined_names import find_joined_names
from codebatch.operations.names.missing_modules import MissingModules
from codebatch.operations.names.source_files import SourceFiles
from codebatch.operations.names.symbol_use import (
    OverriddenMethod,
    Selection,
    SymbolKey,
    SymbolUse,
    classify,
    classify_through,
    definitions_at,
    is_other,
    language_facts,
    symbol_keys,
)
from codebatch.operations.names.type_records import is_type, symbol_key
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.operations.queries.definitions import ends_with_name, find_definitions_only, last_name_component
from codebatch.operations.queries.name_answers import NameSearch, name_answer, use_evidence
from codebatch.operations.queries.references import SearchProgress, ignore_progress
from codebatch.plugins.worker_services import ProjectUses, fact_services, use_services
from codebatch.query.answers.dependencies import DEPENDENCIES_TASK, BatchImports
from codebatch.query.answers.search_coverage import Evidence
from codebatch.query.answers.spellings import Spellings
from codebatch.query.completeness import Completeness, tasks_completeness
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.filters import last_name, path_bytes
from codebatch.query.filters.paths import PathFilter, PathPatterns

T = TypeVar("T")


_ALIASES_MAX = 20
_EXPORTERS_MAX = 200
"""Maximum number of other names of a symbol that are searched, and of files through which an export is followed."""


class SymbolUses(msgspec.Struct, frozen=True, kw_only=True):
    """The definitions of a symbol, and its uses by path and position.

    `others` has the uses in the same files that the question leaves out, with their number by role. `uncertain` stands
    for those that are not exact; `outer` and `unbound` are as in UseSearch. `misplaced` stands for uses through missing
    modules with names like those of the files of the definitions. `other_chains` stands for uses of the last part of
    the name with other parts before it, if no file of the batch defines the name. `covered` is the number of
    occurrences by path that the answer covers. `spellings` has the other spellings of the name. `implicit` is the
    evidence of uses without the whole name, if there are no other uses.
    """

    definitions: list[JsonRecord]
    uses: list[SymbolUse]
    others: Mapping[str, int] = {}
    covered: Mapping[bytes, int] = {}
    spellings: tuple[str, ...] = ()
    implicit: tuple[Evidence, ...] = ()


def find_symbol_uses(
    question: BatchQuery,
    name: str,
    *,
    definition: str = "",
    is_exact: bool = False,
    roles: Collection[str] = (),
    path: PathPatterns = "",
    progress: SearchProgress = ignore_progress,
) -> Answer[SymbolUses]:
    """Return the uses of the symbols with a name, which may be qualified.

    `definition` selects one symbol by its place, as `path:line` or `path`. With `is_exact`, only uses that are certain
    are returned. Raises InvalidInput or StoreCorrupt.
    """
    search = UseSearch(question, progress)
    found = search_uses(search, name, definition=definition, is_exact=is_exact, roles=roles, path=path)
    is_empty = all(use.use.role == "definition" for use in found.uses)
    kind = " or ".join(roles) if roles else "reference"
    return uses_answer(question, found, found, search.completeness, name, path, is_empty=is_empty, kind=kind)


def search_uses(
    search: UseSearch,
    name: str,
    *,
    definition: str = "",
    is_exact: bool = False,
    roles: Collection[str] = (),
    path: PathPatterns = "",
) -> SymbolUses:
    """Return the uses of the symbols with a name. The arguments are as in `find_symbol_uses`."""
    all_definitions, _ = find_definitions_only(search.question, name)
    definitions = definitions_at(search.question.records, name, all_definitions, definition)
    last = last_name_component(name)
    candidates = len(symbol_keys(all_definitions))
    paths = PathFilter(path)
    search.overridden = search.hierarchy.find_overridden(definitions, search.same_name(last, definitions))
    search.selection = Selection.of(definitions, all_definitions, is_narrow=bool(definition) or last != name)
    symbols = symbol_keys(definitions) | search.other_parts(definitions)
    found = search.uses(last, symbols, candidates) if definitions else search.foreign_uses(last)
    uses: list[SymbolUse] = []
    others = Counter[str]()
    for use in found:
        role = use.use.role
        if not paths.matches(use.path) or is_other(use.use, definitions):
            continue
        if not definitions and role != "string" and not ends_with_name(use.use.target, name):
            others["other_chains"] += not roles or role in roles
        elif role == "string" or (roles and role not in roles):
            is_own = role == "string" and last_name(use.use.scope) == last
            others[role] += role != "definition" and not is_own
        elif is_exact and use.certainty != "exact":
            others["uncertain"] += 1
        else:
            uses.append(use)
    search.overridden, search.selection = {}, Selection()
    others |= {
        "unfitting": search.unfitting,
        "misplaced": search.misplaced(definitions),
        "outer": search.outer(definitions),
        "unbound": search.unbound,
    }
    is_empty = all(use.use.role == "definition" for use in uses)
    implicit = search.implicit_uses(definitions) if is_empty else ()
    uses.sort(key=lambda use: (use.path, use.use.line, use.use.column))
    covered = search.covered(("definition", "import", *(roles or ("call", "reference"))))
    return SymbolUses(
        definitions=definitions,
        uses=uses,
        others=+others,
        covered=covered,
        spellings=search.names[1:],
        implicit=implicit,
    )


def count_renamed_uses(question: BatchQuery, name: str) -> int:
    """Return the number of uses of a definition in files that give another name to it. Raises StoreCorrupt."""
    is_known = "symbols" in question.records.task_names
    definitions = find_definitions_only(question, name)[0] if is_known else []
    uses = UseSearch(question).uses(name, symbol_keys(definitions), 1) if definitions else ()
    return sum(use.use.role in ("call", "reference") and last_name(use.use.target) != name for use in uses)


def uses_answer(
    question: BatchQuery,
    result: T,
    found: SymbolUses,
    completeness: Completeness,
    name: str,
    path: PathPatterns,
    *,
    is_empty: bool,
    kind: str,
    noun: str = "name",
    evidence: tuple[Evidence, ...] = (),
) -> Answer[T]:
    """Return an answer that was derived from the uses of a name. `kind` is the kind of the listed uses.

    `noun` is as in NameSearch, and `evidence` is further evidence.
    """
    search = NameSearch(
        name=name,
        word=searched_word(last_name_component(name)),
        spellings=found.spellings,
        noun=noun,
        is_known=bool(found.definitions or found.uses or found.others),
        evidence=(*evidence, *found.implicit, *use_evidence(name, found.others, kind)),
        covered=found.covered,
        is_wanted=PathFilter(path).matches,
    )
    return name_answer(question, result, completeness, search, is_empty=is_empty)


class UseSearch(SourceFiles):
    """A search for the uses of symbols in the files of a batch. Facts about files are kept between searches.

    - `overridden`: methods whose uses are also uses of the methods that override them.
    - `unfollowed`: the number of uses that were taken to refer to others because nothing but their name is known.
    - `selection`: the definitions that a question selects among those with one qualified name.
    - `unfitting`: the number of calls that cannot mean a selected definition, by the number of their arguments.
    - `resolver`: the resolution of the uses in one file.
    - `hierarchy`: the bases of classes.
    - `names`: the name that was searched first, then its other spellings.
    - `unbound`: the number of files that import a module with a default export late, without a name for the export.
    """

    def __init__(
        self, question: BatchQuery, progress: SearchProgress = ignore_progress, like: UseSearch | None = None
    ) -> None:
        """`like` is another search in the same batch, whose facts about files are used too."""
        super().__init__(question)
        self.unfollowed = self._outer_calls = self.unbound = self.unfitting = 0
        self.overridden: Mapping[SymbolKey, OverriddenMethod] = {}
        self.selection = Selection()
        self.names: tuple[str, ...] = ()
        self._spellings = Spellings(question.records)
        self._external = Counter[str]()
        self._exporting: set[tuple[str, str]] = set()
        self._seen: dict[str, Counter[bytes]] = defaultdict(Counter)
        self._progress = progress
        self.missing = self.missing if like is None else like.missing
        self.resolver: ProjectUses = (
            use_services().project_uses(self.read, self.links_of, self.files_with_name)
            if like is None
            else like.resolver
        )
        self.hierarchy: ClassHierarchy = (
            ClassHierarchy(self.records, self.resolver, self.read) if like is None else like.hierarchy
        )

    @property
    def completeness(self) -> Completeness:
        """The completeness of an answer about uses: of the definitions, the links between files, and the contents."""
        records = self.records
        needed = records.plan.needed_for(DEPENDENCIES_TASK if DEPENDENCIES_TASK in records.task_names else "symbols")
        return msgspec.structs.replace(tasks_completeness(records, needed), lost=len(self.missing))

    def same_name(self, name: str, definitions: Sequence[JsonRecord]) -> list[JsonRecord]:
        """Return the definitions of a name, in any spelling that can mean one of some definitions."""
        languages = {self.resolver.language_of(path) for path, _ in symbol_keys(definitions)}
        spellings = (name, *self._spellings.others(name, languages))
        return [record for spelling in spellings for record in find_definitions_only(self.question, spelling)[0]]

    def other_parts(self, definitions: Sequence[JsonRecord]) -> frozenset[SymbolKey]:
        """Return the symbols in other files that are one type with some definitions.

        TypeScript adds to the types of another module by its path.
        """
        parts = {part for type_ in filter(is_type, definitions) for part in self.hierarchy.parts(symbol_key(type_))}
        for record in definitions:
            module = str(record.get("scope", ""))
            links = self.links_of(os.fsdecode(path_bytes(record))) if module.startswith(".") else ()
            parts |= {(edge.target, str(record["name"])) for edge in links if edge.imported == module}
        return frozenset(parts)

    def implicit_uses(self, definitions: Sequence[JsonRecord]) -> tuple[Evidence, ...]:
        """Return the evidence that code uses one of some definitions without its whole name."""
        names = sorted({str(definition["name"]) for definition in definitions})
        joined = [evidence for name in names for evidence in find_joined_names(self.records, name)]
        endings = {language_facts(self.resolver, path).attribute_ending for path, _ in symbol_keys(definitions)} - {""}
        for short in [name.removesuffix(ending) for ending in endings for name in names if name.endswith(ending)]:
            uses = sum(use.role in ("call", "reference") for _, use in self._uses_of_name(short))
            joined += use_evidence(short, {"short": uses} if uses else {}, "")
        return (*implicit_callers(self.hierarchy, self.resolver, definitions), *joined)

    def misplaced(self, definitions: Sequence[JsonRecord]) -> int:
        """Return the number of uses through missing modules that seem to be those of some definitions."""
        modules = MissingModules(symbol_keys(definitions))
        return sum(
            count
            for file, count in self._external.items()
            if modules.are_imported(file, self.links_of(file), self.resolver.language_of(file))
        )

    def covered(self, roles: Collection[str]) -> Mapping[bytes, int]:
        """Return the number of occurrences in some roles of the name that was searched first, by path."""
        return sum((self._seen[role] for role in roles), Counter[bytes]())

    def uses(
        self,
        name: str,
        symbols: Collection[SymbolKey],
        candidates: int,
        is_searched: Callable[[Entry, str], bool] = lambda _entry, _name: True,
    ) -> Iterator[SymbolUse]:
        """Yield the uses of some symbols with a name, also under other names that imports give to them.

        `candidates` is the number of symbols with the name. `is_searched` selects the files in which a name is
        searched.
        """
        languages = {self.resolver.language_of(file) for file, _ in symbols}
        spellings = (name, *self._spellings.others(name, languages))
        self.names = self.names or spellings
        pending = [*spellings]
        for file, qualified in symbols:
            pending += self._names_given_by(file, qualified, symbols)
        pending = list(dict.fromkeys(pending))[: _ALIASES_MAX + len(spellings)]
        known = set(pending)
        while pending:
            alias = pending.pop(0)
            is_own = alias in spellings
            for path, use in self._uses_of_name(alias, is_searched):
                if use.role != "string" and not self._is_related(path, languages):
                    continue
                found = classify(path, use, symbols, candidates if is_own else 0, self.selection)
                found = found or classify_through(path, use, self.overridden, self.hierarchy.is_only_type)
                if found is not None and not self.selection.can_be_meant(found, self.resolver):
                    self.unfitting += 1
                    continue
                if found is None:
                    if use.resolved.certainty == "external":
                        self._external[os.fsdecode(path)] += 1
                        self._outer_calls += is_own and self._is_of_value(os.fsdecode(path), use)
                    is_open = use.resolved.certainty == "name" and not use.resolved.definitions
                    self.unfollowed += is_open and is_own and use.role in ("call", "reference")
                    continue
                yield found
                if found.certainty in ("exact", "inferred"):
                    for other in self._aliases(os.fsdecode(path), alias, use, symbols):
                        if other not in known and len(known) < _ALIASES_MAX:
                            known.add(other)
                            pending.append(other)

    def outer(self, definitions: Sequence[JsonRecord]) -> int:
        """Return the number of calls, with the name of some methods, of values of types outside of the project.

        Such a value can have the methods if their class extends or implements such a type. In languages with structural
        types, a type need not declare this.
        """
        methods = [record for record in definitions if record.get("scope")] if self._outer_calls else ()
        is_open = any(
            language_facts(self.resolver, os.fsdecode(path_bytes(method))).has_structural_types
            or self.hierarchy.outer_bases(method)
            for method in methods
        )
        return self._outer_calls if is_open else 0

    def _is_of_value(self, path: str, use: NameUse) -> bool:
        """Return whether a use is the call of a method of a value, not of a function in an imported module.

        In Go, a function of a package often calls the method of its argument that has the same name. In the standard
        library, whose packages have no host in their names, it does not.
        """
        first = re.match(r"(\w+)\b.*\.\w+\Z", use.target, re.DOTALL)
        if first is None or use.role != "call":
            return False
        targets = (edge.target for edge in self.links_of(path))
        imported = [target for target in targets if re.findall(r"\w+", target)[-1:] == [first[1]]]
        has_structural_types = language_facts(self.resolver, path).has_structural_types
        return not imported or (has_structural_types and any("." in target for target in imported))

    def _is_related(self, path: bytes, languages: Collection[str]) -> bool:
        """Return whether a file is in a language that can use definitions in one of some languages."""
        own = self.resolver.language_of(os.fsdecode(path))
        return any(fact_services().call_each_other(own, language) for language in languages)

    def first_exact_use(self, path: bytes, name: str, symbol: SymbolKey) -> int | None:
        """Return the line of the first use in a file that certainly refers to a symbol, or None if there is none."""
        for use in self.resolver.uses_in(os.fsdecode(path), name):
            found = classify(path, use, {symbol}, 0)
            if found is not None and found.certainty == "exact" and use.role != "definition":
                return use.line
        return None

    def _aliases(self, path: str, name: str, use: NameUse, symbols: Collection[SymbolKey]) -> Iterator[str]:
        """Yield the other names that a file with a use of a symbol gives to it, by an import or export."""
        if use.role in ("import", "reference"):  # JavaScript also imports by destructuring: `{ a: b } = require("m")`.
            yield from self.resolver.aliases_in(path, name, use.line)
        if (path, name) not in self._exporting and use.role != "definition":
            self._exporting.add((path, name))
            yield from self._names_given_by(path, name, symbols)

    def _names_given_by(self, path: str, name: str, symbols: Collection[SymbolKey]) -> Iterator[str]:
        """Yield the other names by which a file exports a name, or by which other files import it from this file."""
        exported = self.resolver.exported_names(path, name)
        yield from filter(None, exported)
        pending = [path] if "" in exported and DEPENDENCIES_TASK in self.records.task_names else []
        known = {*pending}
        while pending and len(known) <= _EXPORTERS_MAX:
            importers = BatchImports(self.records).importers_of(pending)
            sources = sorted({edge.source for target in pending for edge in importers.get(target, ())} - known)
            known.update(sources)
            pending = []
            deferred = {edge.source for edges in importers.values() for edge in edges if edge.deferred}
            for source in sources:
                names = self.resolver.imported_names(source, symbols)
                self.unbound += not names and source in deferred
                yield from filter(None, names)
                if "" in names:  # The file exports the symbol without a fixed name, too.
                    pending.append(source)

    def foreign_uses(self, name: str) -> Iterator[SymbolUse]:
        """Yield the uses of a name that do not refer to definitions in the batch."""
        for path, use in self._uses_of_name(name):
            if use.resolved.certainty not in ("exact", "inferred"):
                yield SymbolUse(path, use, use.resolved.certainty, len(use.resolved.definitions))

    def _uses_of_name(
        self, name: str, is_searched: Callable[[Entry, str], bool] = lambda _entry, _name: True
    ) -> Iterator[tuple[bytes, NameUse]]:
        self.names = self.names or (name,)
        items = [item for item in self.records.items_with_name(name) if is_searched(item[1], name)]
        for done, (item, entry) in enumerate(items):
            self._progress(done, len(items))
            path = os.fsdecode(entry.path)
            self.remember(path, item)
            for use in self.resolver.uses_in(path, name):
                self._seen[use.role][entry.path] += name in self.names
                yield entry.path, use
