"""Resolution of the uses of a name to definitions, by scope, imports, bases, and stated types.

Whatever remains open is answered as `name`. A use is never resolved to a definition just because the names are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from tree_sitter import Node

from codebatch.model.analysis.uses import EXTERNAL, UNKNOWN, Resolved
from codebatch_workers.symbols.file_exports import ModuleExport
from codebatch_workers.symbols.imported_names import literal_text
from codebatch_workers.uses.by_language.c_uses import resolve_c_use
from codebatch_workers.uses.by_language.csharp_uses import resolve_csharp_use
from codebatch_workers.uses.by_language.go_uses import GoUses
from codebatch_workers.uses.by_language.java_uses import JavaUses
from codebatch_workers.uses.by_language.kotlin_uses import resolve_kotlin_use
from codebatch_workers.uses.by_language.php_uses import resolve_php_use
from codebatch_workers.uses.by_language.ruby_uses import resolve_ruby_use
from codebatch_workers.uses.by_language.rust_uses import RustUses
from codebatch_workers.uses.by_language.script_globals import ScriptGlobals
from codebatch_workers.uses.by_language.swift_uses import resolve_swift_use
from codebatch_workers.uses.chains import NameChain, name_components
from codebatch_workers.uses.entities import (
    DefinedEntity,
    Entity,
    Meaning,
    ModuleEntity,
    merge_meanings,
)
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.languages import FUNCTION_TYPES, VALUE_TYPES
from codebatch_workers.uses.lookup_budget import LookupBudget, TooManyLookups
from codebatch_workers.uses.name_meanings import NameMeanings

_PARENTS_OF_ANY_NAME = frozenset({"export_statement", "import_alias", "nested_identifier", "nested_type_identifier"})
_TYPES_ONLY = frozenset({"interface", "type"})
_VALUES_ONLY = FUNCTION_TYPES | VALUE_TYPES
# Languages with a resolver of their own.
_RESOLVERS: Mapping[str, Callable[[SourceFacts, Callable[[str], SourceFacts | None], int, int, str], Resolved]] = {
    "c": resolve_c_use,
    "csharp": resolve_csharp_use,
    "kotlin": resolve_kotlin_use,
    "php": resolve_php_use,
    "ruby": resolve_ruby_use,
    "scala": resolve_kotlin_use,
    "swift": resolve_swift_use,
}


class UseResolver(NameMeanings):
    """Resolves uses in the files of one snapshot. `facts_of` returns the facts of a file, or None."""

    def __init__(
        self,
        facts_of: Callable[[str], SourceFacts | None],
        files_with_name: Callable[[str], Collection[str]],
        budget: LookupBudget,
    ) -> None:
        """`files_with_name` returns the paths of all files that contain a name, and possibly of others.

        `budget` is the one of all facts.
        """
        super().__init__(facts_of)
        self._budget = budget
        self._go_uses = GoUses(facts_of, files_with_name)
        self._java = JavaUses(facts_of)
        self._rust_uses = RustUses(facts_of)
        self._script_globals = ScriptGlobals(facts_of, files_with_name)

    def resolve(self, facts: SourceFacts, start: int, end: int, scope: str) -> Resolved:
        """Return the definitions to which the name at the given offsets refers. `scope` is its enclosing definition."""
        self._budget.renew()
        try:
            return self._resolve(facts, start, end, scope)
        except TooManyLookups:
            return UNKNOWN

    def _resolve(self, facts: SourceFacts, start: int, end: int, scope: str) -> Resolved:
        if not facts.is_resolved:
            return UNKNOWN
        if facts.language == "java":
            return self._java.resolve(facts, start, end)
        if facts.language == "go":
            return self._go_uses.resolve(facts, start, end, scope)
        if facts.language == "rust":
            return self._rust_uses.resolve(facts, start, end, scope)
        resolve_use = _RESOLVERS.get(facts.language)
        if resolve_use is not None:
            return resolve_use(facts, self._facts_of, start, end, scope)
        self._values.begin_use()
        exported = facts.export_at(start)
        if exported is not None:
            found = self._find_exported_name(facts, exported)
            return UNKNOWN if found is None else self._as_resolved(found)
        chain = facts.chain_at(start, end)
        if facts.bindings is not None and (len(chain.names) > 1 or chain.is_open):
            found = self._find_object_member(facts, chain, scope, start)
        else:
            found = None if chain.is_open else self._find_chain(facts, chain, scope)
        found = None if found is None else _without_other_space(found, facts, start)
        return UNKNOWN if found is None else self._as_resolved(found)

    def _find_global(self, facts: SourceFacts, name: str) -> Meaning | None:
        return self._script_globals.find(name) if facts.language in ("tsx", "typescript") else None

    def _find_exported_name(self, facts: SourceFacts, specifier: Node) -> Meaning | None:
        """Return what a name in `export { name as other }` or `export { name } from "module"` means."""
        name, statement = specifier.child_by_field_name("name"), specifier.parent and specifier.parent.parent
        source = None if statement is None else statement.child_by_field_name("source")
        if name is None:
            return None
        if source is None:
            return self.find_name(facts, "", facts.text(name), 0, name.start_byte)
        return self._find_export(
            facts, ModuleExport("", "", literal_text(source, facts.file.utf8), facts.text(name)), 0
        )

    def _find_object_member(self, facts: SourceFacts, chain: NameChain, scope: str, start: int) -> Meaning | None:
        """Return what the last name of a chain means, as a member of a module, a class or an object."""
        is_local = facts.receiver(chain.start, chain.names[0]) != ""
        found = None if chain.is_open or is_local else self._find_chain(facts, chain, scope)
        name = facts.node_at(start)
        if found is not None or name is None:
            return found
        owner = self._values.owner_of(facts, name)
        return owner and self._find_members(owner, chain.names[-1:], 0)

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
        found: list[Meaning] = list(self._rust_uses.follow_imports(facts, name, line))
        for imported in facts.imports if facts.language != "rust" else ():
            last = imported.member or name_components(imported.target)[-1]
            if imported.line == line and name in (imported.local, last):
                found.extend(self._follow(facts, imported, 0))
        merged = merge_meanings(found)
        return UNKNOWN if merged is None else self._as_resolved(merged)

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
        definitions = [
            entity.facts.definition(symbol)
            for entity in found.entities
            if isinstance(entity, DefinedEntity)
            for symbol in entity.symbols
        ]
        certainty = found.certainty
        if any(_has_overloads(entity) for entity in found.entities) or len(found.entities) > 1:
            certainty = "name"
        return Resolved(certainty, tuple(sorted(set(definitions)))) if definitions else UNKNOWN


def _without_other_space(found: Meaning, facts: SourceFacts, start: int) -> Meaning | None:
    """Leave out types where TypeScript expects a value, and values where it expects a type.

    If nothing remains, the name means a global value or type.
    """
    name = facts.node_at(start) if facts.language in ("tsx", "typescript") else None
    if name is None or name.type not in ("identifier", "type_identifier"):
        return found
    others = _VALUES_ONLY if name.type == "type_identifier" else _TYPES_ONLY
    entities: list[Entity] = []
    for entity in found.entities:
        symbols = entity.symbols if isinstance(entity, DefinedEntity) else ()
        fitting = tuple(symbol for symbol in symbols if symbol.symbol_type not in others)
        if isinstance(entity, DefinedEntity) and fitting:
            entities.append(DefinedEntity(entity.facts, fitting))
    if entities:
        return Meaning(found.certainty, tuple(entities))
    is_any = name.parent is None or name.parent.type in _PARENTS_OF_ANY_NAME
    is_unfit = any(isinstance(entity, DefinedEntity) for entity in found.entities)
    return None if is_unfit and not is_any else found


def _has_overloads(entity: Entity) -> bool:
    if isinstance(entity, ModuleEntity) or not entity.facts.rules.has_overloads:
        return False
    return sum(symbol.symbol_type in FUNCTION_TYPES for symbol in entity.symbols) > 1
