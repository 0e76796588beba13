"""Resolution of the uses of a name to definitions, by scope, imports, bases, and stated types.

Whatever remains open is answered as `name`. A use is never resolved to a definition just because the names are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tree_sitter import Node

from codebatch.model.analysis.uses import EXTERNAL, UNKNOWN, Resolved
from codebatch_workers.symbols.file_exports import ModuleExport
from codebatch_workers.uses.arguments import select_overloads
from codebatch_workers.uses.chains import NameChain, name_components
from codebatch_workers.uses.declarations import pattern_of
from codebatch_workers.uses.entities import (
    Entity,
    Meaning,
    ModuleEntity,
    definitions_of,
    merge_meanings,
)
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.language_resolver import LanguageResolver, LanguageUses, UseContext
from codebatch_workers.uses.language_rules import FUNCTION_TYPES
from codebatch_workers.uses.lookup_budget import LookupBudget, TooManyLookups
from codebatch_workers.uses.name_meanings import NameMeanings


class UseResolver(NameMeanings):
    """Resolves uses in the files of one snapshot."""

    def __init__(
        self,
        context: UseContext,
        budget: LookupBudget,
        uses_of: Callable[[str], LanguageUses | None],
    ) -> None:
        """`budget` is the one of all facts. `uses_of` returns how the uses of names are resolved in a language."""
        super().__init__(context.facts_of)
        self._context = context
        self._budget = budget
        self._uses_of = uses_of
        self._resolvers: dict[str, LanguageResolver] = {}

    def _language_resolver(self, language: str) -> LanguageResolver:
        if language not in self._resolvers:
            self._resolvers[language] = (self._uses_of(language) or LanguageUses()).resolver(self._context)
        return self._resolvers[language]

    def resolve(self, facts: SourceFacts, name: Node, scope: str) -> Resolved:
        """Return the definitions to which a name refers. `scope` is its enclosing definition."""
        return self._within_budget(
            lambda: select_overloads(self._resolve(facts, name, scope), facts, name, self._context.facts_of)
        )

    def _within_budget(self, resolve: Callable[[], Resolved]) -> Resolved:
        self._budget.renew()
        self._values.begin_use()
        try:
            return resolve()
        except TooManyLookups:
            return UNKNOWN

    def _resolve(self, facts: SourceFacts, name: Node, scope: str) -> Resolved:
        if not facts.is_resolved:
            return UNKNOWN
        language = self._language_resolver(facts.language)
        resolved = language.resolve(facts, name, scope)
        if resolved is not None:
            return resolved
        exported = None if facts.rules.read_export is None else facts.rules.read_export(name, facts.file.utf8)
        if exported is not None and exported.module:
            return self._as_resolved(self._find_export(facts, exported, 0))
        if exported is not None:
            return self._as_resolved(self.find_name(facts, exported.local, 0, name.start_byte))
        chain = facts.chain_of(name)
        is_key = pattern_of(name) is not None and not facts.imports_at(name.start_byte)
        if len(chain.names) > 1 or chain.is_open or is_key:
            found = self._find_object_member(facts, chain, scope, name)
        else:
            found = self._find_chain(facts, chain, scope)
        return self._as_resolved(None if found is None else language.select_fitting(found, name))

    def _find_global(self, facts: SourceFacts, name: str) -> Meaning | None:
        return self._language_resolver(facts.language).find_global(name)

    def _find_object_member(self, facts: SourceFacts, chain: NameChain, scope: str, name: Node) -> Meaning | None:
        """Return what the last name of a chain means, as a member of a module, a class or an object."""
        is_local = facts.is_local_variable(chain.start, chain.names[0]) or pattern_of(name) is not None
        found = None if chain.is_open or is_local else self._find_chain(facts, chain, scope)
        owner = self._values.owner_of(facts, name) if found is None else None
        return self._find_members(owner, chain.names[-1:], 0) if owner is not None else found

    def resolve_import(self, facts: SourceFacts, name: str, line: int) -> Resolved:
        """Return the definitions that an import at a line refers to by a name."""
        return self._within_budget(lambda: self._resolve_import(facts, name, line))

    def _resolve_import(self, facts: SourceFacts, name: str, line: int) -> Resolved:
        if not facts.is_resolved:
            return UNKNOWN
        followed = self._language_resolver(facts.language).follow_import(facts, name, line)
        found = self._follow_imports(facts, name, line) if followed is None else followed
        return self._as_resolved(merge_meanings(found))

    def _follow_imports(self, facts: SourceFacts, name: str, line: int) -> Iterator[Meaning]:
        for imported in facts.imports:
            last = imported.member or name_components(imported.target)[-1]
            if imported.line == line and name in (imported.local, last):
                yield from self._follow(facts, imported, 0)

    def resolve_export(self, facts: SourceFacts, export: ModuleExport) -> Resolved:
        """Return the definitions that a name of another module refers to, which a module exports."""
        return self._within_budget(lambda: self._as_resolved(self._find_export(facts, export, 0)))

    def _as_resolved(self, found: Meaning | None) -> Resolved:
        if found is None:
            return UNKNOWN
        if found.certainty == "external":
            return EXTERNAL
        definitions = definitions_of(found)
        certainty = found.certainty
        if any(_has_overloads(entity) for entity in found.entities) or len(found.entities) > 1:
            certainty = "name"
        return Resolved(certainty, tuple(sorted(set(definitions)))) if definitions else UNKNOWN


def _has_overloads(entity: Entity) -> bool:
    if isinstance(entity, ModuleEntity) or not entity.facts.rules.has_overloads:
        return False
    return sum(symbol.symbol_type in FUNCTION_TYPES for symbol in entity.symbols) > 1
