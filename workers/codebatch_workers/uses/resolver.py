"""Resolution of the uses of a name to definitions, by scope, imports, bases, and stated types.

Whatever remains open is answered as `name`. A use is never resolved to a definition just because the names are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tree_sitter import Node

from codebatch.model.analysis.uses import EXTERNAL, UNKNOWN, Resolved
from codebatch_workers.symbols.file_exports import ModuleExport
from codebatch_workers.symbols.imported_names import literal_text
from codebatch_workers.uses.arguments import select_overloads
from codebatch_workers.uses.chains import NameChain, name_components
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
        self._budget.renew()
        try:
            return select_overloads(self._resolve(facts, name, scope), facts, name, self._context.facts_of)
        except TooManyLookups:
            return UNKNOWN

    def _resolve(self, facts: SourceFacts, name: Node, scope: str) -> Resolved:
        if not facts.is_resolved:
            return UNKNOWN
        language = self._language_resolver(facts.language)
        resolved = language.resolve(facts, name, scope)
        if resolved is not None:
            return resolved
        self._values.begin_use()
        exported = facts.export_of(name)
        if exported is not None:
            found = self._find_exported_name(facts, exported)
            return UNKNOWN if found is None else self._as_resolved(found)
        chain = facts.chain_of(name)
        if len(chain.names) > 1 or chain.is_open:
            found = self._find_object_member(facts, chain, scope, name)
        else:
            found = self._find_chain(facts, chain, scope)
        found = None if found is None else language.select_fitting(found, name)
        return UNKNOWN if found is None else self._as_resolved(found)

    def _find_global(self, facts: SourceFacts, name: str) -> Meaning | None:
        return self._language_resolver(facts.language).find_global(name)

    def _find_exported_name(self, facts: SourceFacts, specifier: Node) -> Meaning | None:
        """Return what a name in `export { name as other }` or `export { name } from "module"` means."""
        name, statement = specifier.child_by_field_name("name"), specifier.parent and specifier.parent.parent
        source = None if statement is None else statement.child_by_field_name("source")
        if name is None:
            return None
        if source is None:
            return self.find_name(facts, facts.text(name), 0, name.start_byte)
        return self._find_export(
            facts, ModuleExport("", "", literal_text(source, facts.file.utf8), facts.text(name)), 0
        )

    def _find_object_member(self, facts: SourceFacts, chain: NameChain, scope: str, name: Node) -> Meaning | None:
        """Return what the last name of a chain means, as a member of a module, a class or an object."""
        is_local = facts.is_local_variable(chain.start, chain.names[0])
        found = None if chain.is_open or is_local else self._find_chain(facts, chain, scope)
        owner = self._values.owner_of(facts, name) if found is None else None
        return self._find_members(owner, chain.names[-1:], 0) if owner is not None else found

    def resolve_import(self, facts: SourceFacts, name: str, line: int) -> Resolved:
        """Return the definitions that an import at a line refers to by a name."""
        self._budget.renew()
        try:
            return self._resolve_import(facts, name, line)
        except TooManyLookups:
            return UNKNOWN

    def _resolve_import(self, facts: SourceFacts, name: str, line: int) -> Resolved:
        if not facts.is_resolved:
            return UNKNOWN
        self._values.begin_use()
        followed = self._language_resolver(facts.language).follow_import(facts, name, line)
        merged = merge_meanings(self._follow_imports(facts, name, line) if followed is None else followed)
        return UNKNOWN if merged is None else self._as_resolved(merged)

    def _follow_imports(self, facts: SourceFacts, name: str, line: int) -> Iterator[Meaning]:
        for imported in facts.imports:
            last = imported.member or name_components(imported.target)[-1]
            if imported.line == line and name in (imported.local, last):
                yield from self._follow(facts, imported, 0)

    def resolve_export(self, facts: SourceFacts, export: ModuleExport) -> Resolved:
        """Return the definitions that a name of another module refers to, which a JavaScript module exports."""
        self._budget.renew()
        try:
            return self._resolve_export(facts, export)
        except TooManyLookups:
            return UNKNOWN

    def _resolve_export(self, facts: SourceFacts, export: ModuleExport) -> Resolved:
        found = self._find_export(facts, export, 0)
        return UNKNOWN if found is None else self._as_resolved(found)

    def _as_resolved(self, found: Meaning) -> Resolved:
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
