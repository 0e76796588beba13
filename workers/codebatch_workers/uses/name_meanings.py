"""Meanings of names, chains of names and members in a file: definitions and modules.

These are the common rules, for languages with `has_bindings`. Only imports are followed so in all languages.

No type is computed: a type counts only if the code states it (a declared type, or a constructed object). Whatever
remains open is unknown. A name never means a definition just because the names are equal.

The module is as long as it is because names, imports, exports, members and types refer to each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from tree_sitter import Node

from codebatch.model.analysis.uses import Certainty, least_certain
from codebatch.model.record import Symbol
from codebatch_workers.symbols.file_exports import ALL_NAMES, DEFAULT_NAME, WHOLE_MODULE, ModuleExport
from codebatch_workers.symbols.imported_names import LocalImport
from codebatch_workers.uses.chains import NameChain, name_components
from codebatch_workers.uses.entities import (
    EXTERNAL_MEANING,
    DefinedEntity,
    Entity,
    Meaning,
    ModuleEntity,
    has_variables,
    is_getter,
    is_member,
    merge_meanings,
    only_definition,
    without_types,
)
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.language_rules import CLASS_TYPES, LINK_CERTAINTY, NAMESPACE_TYPES, VALUE_TYPES
from codebatch_workers.uses.values import Values

_STEPS_MAX = 24
"""Maximum number of re-exports, bases and types that are followed for one name."""


class NameMeanings:
    """Finds the meanings of names in the files of one snapshot. `facts_of` returns the facts of a file, or None.

    The class has many methods, because imports, bases and types lead from one name to the next.
    """

    def __init__(self, facts_of: Callable[[str], SourceFacts | None]) -> None:
        self._facts_of = facts_of
        self._values = Values(self)

    # -- Chains --------------------------------------------------------------------------------------------------------

    def _find_chain(self, facts: SourceFacts, chain: NameChain, scope: str) -> Meaning | None:
        names, rules = chain.names, facts.rules
        if facts.is_local_variable(chain.start, names[0]):
            symbol = facts.local_symbol(chain.start, names[0]) if len(names) == 1 else None
            return None if symbol is None else Meaning("exact", (DefinedEntity(facts, (symbol,)),))
        if names[0] in rules.own_object:
            found = self.find_own_object(facts, scope)
        elif names[0] in rules.base_object:
            return self._find_in_base_object(facts, scope, names[1:])
        else:
            prefixed = self._find_imported_prefix(facts, chain)
            if prefixed is not None:
                count, found = prefixed
                return self._find_members(found, names[count:], 0)
            found = self.find_name(facts, names[0], 0, chain.start)
        return self._find_members(found, names[1:], 0)

    def _find_members(self, found: Meaning | None, names: Sequence[str], steps: int) -> Meaning | None:
        for name in names:
            if found is None or found.certainty in ("name", "external"):
                return found if found is not None and found.certainty == "external" else None
            found = self.find_member_of_all(found, name, steps + 1)
        return found

    def _find_imported_prefix(self, facts: SourceFacts, chain: NameChain) -> tuple[int, Meaning] | None:
        """Return what the longest chain that an `import a.b` binds means, and the number of its names."""
        names = chain.names
        starts = {bound.start for bound in facts.bound_names(names[0], chain.start)}
        for count in range(len(names), 1, -1):
            imports = [one for one in facts.imports_of(".".join(names[:count])) if one.start in starts]
            merged = merge_meanings(found for imported in imports for found in self._follow(facts, imported, 0))
            if merged is not None:
                return count, merged
        return None

    def find_own_object(self, facts: SourceFacts, scope: str) -> Meaning | None:
        """Return the class that encloses a scope."""
        owner = facts.enclosing_class(scope)
        if owner is None:
            return None
        return Meaning("inferred", (DefinedEntity(facts, tuple(facts.symbols_named(owner))),))

    def _find_in_base_object(self, facts: SourceFacts, scope: str, names: Sequence[str]) -> Meaning | None:
        """Return the member that the bases of the enclosing class have under the first name, and its members."""
        owner = facts.enclosing_class(scope)
        if owner is None or not names:
            return None
        member, _ = self._find_in_bases(DefinedEntity(facts, tuple(facts.symbols_named(owner))), names[0], 0)
        found = member and Meaning(least_certain(member.certainty, "inferred"), member.entities)
        return self._find_members(found, names[1:], 0)

    # -- Names ---------------------------------------------------------------------------------------------------------

    def find_name(self, facts: SourceFacts, name: str, steps: int, offset: int | None = None) -> Meaning | None:
        """Return what the definitions of a name mean that a use at an offset sees. Return None if that is unknown."""
        definitions = facts.bound_names(name, offset)
        if not definitions:
            # An exported value without a name, or `exports.f = function`.
            unbound = facts.symbols_named(name) if offset is None and facts.has_exports else ()
            if unbound:
                return Meaning("exact", (DefinedEntity(facts, tuple(unbound)),))
            starred = merge_meanings(self._find_in_star_imports(facts, name, steps))
            return starred or (EXTERNAL_MEANING if facts.is_builtin(name) else self._find_global(facts, name))
        found: list[Meaning | None] = []
        symbols: dict[str, list[Symbol]] = defaultdict(list)
        is_reassigned = False
        for definition in definitions:
            imports = facts.imports_at(definition.start)
            if imports:
                found.extend(self._follow_bound(facts, imported, name, steps) for imported in imports)
            elif (symbol := facts.symbol_at(definition.start)) is not None:
                symbols[symbol.qualified].append(symbol)
            else:
                is_reassigned = True
        found += [Meaning("exact", (DefinedEntity(facts, tuple(same_name)),)) for same_name in symbols.values()]
        merged = merge_meanings(found)
        is_local = facts.is_local(definitions[0])
        if merged is not None and (None in found or (is_reassigned and is_local)):
            return Meaning("name", merged.entities) if merged.entities else None
        return merged

    def _find_global(self, _facts: SourceFacts, _name: str) -> Meaning | None:
        """Return what a name means that a file does not bind."""
        return None

    def _follow_bound(self, facts: SourceFacts, imported: LocalImport, name: str, steps: int) -> Meaning | None:
        """Return what an import binds to a local name. An import of `a.b` can bind the package `a`."""
        modules = facts.rules.modules
        if imported.local == name or modules is None:
            return merge_meanings(self._follow(facts, imported, steps))
        edges = facts.links_of(imported)
        if any(edge.resolution == "external" for edge in edges):
            return EXTERNAL_MEANING
        packages = [self._facts_of(modules.outermost_package(imported.target, edge.target)) for edge in edges]
        found = tuple(package for package in packages if package is not None)
        return Meaning("exact", (ModuleEntity(found),)) if packages and len(found) == len(packages) else None

    def _find_in_file(self, facts: SourceFacts, name: str, steps: int) -> Meaning | None:
        """Return what a name means at the outermost level of a file."""
        if facts.bindings is not None:
            return self.find_name(facts, name, steps)
        imported = merge_meanings(
            found for local_import in facts.imports_of(name) for found in self._follow(facts, local_import, steps)
        )
        symbols = facts.symbols_named(name)
        if symbols:
            defined = Meaning("exact", (DefinedEntity(facts, tuple(symbols)),))
            return defined if imported is None else merge_meanings([defined, imported])
        if imported is not None:
            return imported
        linked = self._follow_implicit(facts, name)
        if linked is not None:
            return linked
        return merge_meanings(self._find_in_star_imports(facts, name, steps))

    def _find_in_star_imports(self, facts: SourceFacts, name: str, steps: int) -> Iterator[Meaning | None]:
        starred = [imported for imported in facts.imports if not imported.local] if steps < _STEPS_MAX else []
        links = [edge for imported in starred for edge in facts.links_of(imported)]
        # A module outside the snapshot could export any name.
        is_open = any(edge.resolution not in ("exact", "file") for edge in links) or len(links) < len(starred)
        for edge in links:
            target = self._facts_of(edge.target) if edge.resolution in ("exact", "file") else None
            visibility = "name" if target is None or target is facts else target.star_visibility(name)
            if target is not None and visibility != "name":
                found = self._find_in_file(target, name, steps + 1)
                certainty = least_certain(LINK_CERTAINTY[edge.resolution], "inferred" if is_open else visibility)
                if found is not None and found.certainty != "external":
                    yield Meaning(least_certain(found.certainty, certainty), found.entities)

    def _follow_implicit(self, facts: SourceFacts, name: str) -> Meaning | None:
        edges = facts.implicit_links.get(name, ())
        return merge_meanings(
            Meaning(LINK_CERTAINTY[edge.resolution], (DefinedEntity(target, tuple(symbols)),))
            for edge in edges
            if (target := self._facts_of(edge.target)) is not None and (symbols := target.suffix_symbols([name]))
        )

    # -- Imports -------------------------------------------------------------------------------------------------------

    def _follow(self, facts: SourceFacts, imported: LocalImport, steps: int) -> Iterator[Meaning]:
        """Yield what an imported name means, for each file to which the import leads."""
        if not imported.target:
            alias = NameChain(tuple(name_components(imported.member)), imported.start, False, False)
            found = (
                self._find_chain(facts, alias, "") if steps < _STEPS_MAX and imported.local not in alias.names else None
            )
            if found is not None:
                yield found
            return
        edges = facts.links_of(imported) if steps < _STEPS_MAX else ()
        files = [(edge, self._facts_of(edge.target)) for edge in edges if edge.resolution != "external"]
        if not files:
            if any(edge.resolution == "external" for edge in edges):
                yield EXTERNAL_MEANING
            return
        certainty = LINK_CERTAINTY[files[0][0].resolution]
        targets = tuple(target for _, target in files if target is not None)
        if imported.member == "*" and imported.local:
            yield Meaning(certainty, (ModuleEntity(targets),))
            return
        for target in targets:
            found = self._find_imported(facts, target, imported, steps + 1)
            if found is not None:
                yield Meaning(least_certain(certainty, found.certainty), found.entities)

    def _find_imported(
        self, facts: SourceFacts, target: SourceFacts, imported: LocalImport, steps: int
    ) -> Meaning | None:
        if imported.member:
            return self._find_exported(target, imported.member, steps)
        components = name_components(imported.target)
        modules = facts.rules.modules
        if modules is not None:
            if modules.is_module(imported.target, facts.path, target.path):
                found = self._find_in_package(target, modules.package_of(target.path), components[-1], steps)
                return found or Meaning("exact", (ModuleEntity((target,)),))
            return self._find_in_file(target, components[-1], steps)
        symbols = target.suffix_symbols(components)
        if symbols:
            return Meaning("exact", (DefinedEntity(target, tuple(symbols)),))
        return self._find_in_file(target, components[-1], steps)

    def _find_in_package(self, module: SourceFacts, path: str, name: str, steps: int) -> Meaning | None:
        """Return what the package at a path binds to the name of its module, if that is another definition."""
        package = self._facts_of(path)
        if package is None or package is module or not package.bound_names(name, None):
            return None
        found = self._find_in_file(package, name, steps + 1)
        is_module = found is not None and any(isinstance(entity, ModuleEntity) for entity in found.entities)
        return None if is_module else found

    def _find_exported(self, facts: SourceFacts, name: str, steps: int) -> Meaning | None:
        """Return what other files see under a name of a module."""
        if steps > _STEPS_MAX:
            return None
        if not facts.has_exports:
            return self._find_in_file(facts, name, steps)
        wanted = [export for export in facts.exports if export.name == name]
        if not wanted and name == DEFAULT_NAME:
            wanted = [export for export in facts.exports if export.name == WHOLE_MODULE]
        if wanted:
            found = [self._find_export(facts, export, steps + 1) for export in wanted]
            return None if None in found else merge_meanings(found)
        if name == WHOLE_MODULE:
            return Meaning("exact", (ModuleEntity((facts,)),)) if facts.exports else None
        if name == DEFAULT_NAME:
            return None
        stars = [export for export in facts.exports if export.name == ALL_NAMES and export.module]
        return merge_meanings(
            found
            for export in stars
            for found in self._follow(facts, LocalImport(name, export.module, name, 0), steps + 1)
            if found.certainty != "external"
        )

    def _find_export(self, facts: SourceFacts, export: ModuleExport, steps: int) -> Meaning | None:
        if export.module:
            return merge_meanings(self._follow(facts, LocalImport(export.name, export.module, export.member, 0), steps))
        return self._find_in_file(facts, export.local, steps) if export.local else None

    # -- Members -------------------------------------------------------------------------------------------------------

    def find_member_of_all(self, found: Meaning, name: str, steps: int) -> Meaning | None:
        """Return the member that the entities have under a name."""
        members = [self._find_member(entity, name, steps) for entity in found.entities]
        merged = merge_meanings(members)
        return merged and Meaning(least_certain(found.certainty, merged.certainty), merged.entities)

    def _find_member(self, entity: Entity, name: str, steps: int) -> Meaning | None:
        if steps > _STEPS_MAX:
            return None
        entity = without_types(entity)
        if isinstance(entity, ModuleEntity):
            return merge_meanings(self._find_exported(facts, name, steps) for facts in entity.files)
        symbol = entity.symbols[0]
        if symbol.symbol_type in VALUE_TYPES or is_getter(entity):
            value = self._values.of_symbol(entity.facts, symbol, steps)
            return value and self.find_member_of_all(value, name, steps + 1)
        if symbol.symbol_type in CLASS_TYPES or symbol.symbol_type in NAMESPACE_TYPES:
            return self._find_in_class(entity, name, steps)[0]
        return None

    def _find_in_class(self, owner: DefinedEntity, name: str, steps: int) -> tuple[Meaning | None, bool]:
        """Return the member of a class or of its bases, and whether a base is unknown that could have the member."""
        facts, qualified = owner.facts, owner.symbols[0].qualified
        if name == facts.rules.constructor_member:
            return None, False
        symbols = facts.symbols_named(f"{qualified}{facts.separator}{name}")
        if symbols:
            found = Meaning("exact", (DefinedEntity(facts, tuple(symbols)),))
            declared = self._find_declared_in_bases(owner, symbols[0], name, steps)
            return declared or found, False
        return self._find_in_bases(owner, name, steps)

    def _find_declared_in_bases(self, owner: DefinedEntity, symbol: Symbol, name: str, steps: int) -> Meaning | None:
        """Return the declaration that a base has for a field which a method of the class only sets."""
        if owner.facts.origin_of(symbol) != "set":
            return None
        declared, _ = self._find_in_bases(owner, name, steps)
        entity = only_definition(declared)
        is_declared = entity is not None and entity.facts.origin_of(entity.symbols[0]) == "declared"
        return declared if is_declared else None

    def _find_in_bases(self, owner: DefinedEntity, name: str, steps: int) -> tuple[Meaning | None, bool]:
        """Return the member of the bases of a class, and whether a base is unknown that could have the member."""
        facts, qualified = owner.facts, owner.symbols[0].qualified
        is_open, place = False, facts.offset(owner.symbols[0])
        bases = facts.bases.get(qualified, ()) if steps < _STEPS_MAX else ()
        for base in bases:
            found = self._find_type(facts, base, steps + 1, place)
            if found is None or found.certainty in ("name", "external"):
                is_open = True
                continue
            for entity in found.entities:
                if isinstance(entity, DefinedEntity) and entity.facts.is_class(entity.symbols[0].qualified):
                    member, is_base_open = self._find_in_class(entity, name, steps + 2)
                    is_open = is_open or is_base_open
                    if member is not None:
                        # An unknown base before this one could have the member too. A base after this one could
                        # override a member that both inherit. Code can set a variable of the class itself.
                        is_doubtful = is_open or (len(bases) > 1 and not is_member(member, entity))
                        is_doubtful = is_doubtful or has_variables(member)
                        doubt: Certainty = "inferred" if is_doubtful else "exact"
                        certainty = least_certain(least_certain(member.certainty, found.certainty), doubt)
                        return Meaning(certainty, member.entities), is_open
        return None, is_open

    def _find_type(self, facts: SourceFacts, written: str, steps: int, offset: int) -> Meaning | None:
        """Return what a type as written means at an offset."""
        if steps > _STEPS_MAX:
            return None
        names = name_components(written)
        found = self.find_name(facts, names[0], steps + 1, offset)
        return self._find_members(found, names[1:], steps + 1)

    # -- For the evaluation of expressions ---------------------------------------------------------------------------

    def find_imported_chain(self, facts: SourceFacts, node: Node) -> Meaning | None:
        """Return what a chain of names means that begins with an imported module: `a.b.c` after `import a.b`."""
        last = node.named_children[-1] if node.named_children else node
        chain = facts.chain_of(last)
        if chain.is_open or len(chain.names) == 1 or facts.is_local_variable(chain.start, chain.names[0]):
            return None
        prefixed = self._find_imported_prefix(facts, chain)
        return None if prefixed is None else self._find_members(prefixed[1], chain.names[prefixed[0] :], 0)

    def find_bases(self, facts: SourceFacts, scope: str) -> Meaning | None:
        """Return the bases of the class that encloses a scope."""
        owner = facts.enclosing_class(scope)
        if owner is None:
            return None
        place = facts.offset(facts.symbols_named(owner)[0])
        bases = [self._find_type(facts, base, 0, place) for base in facts.bases.get(owner, ())]
        known = [base for base in bases if base is not None and base.certainty not in ("name", "external")]
        return Meaning("inferred", tuple(entity for base in known for entity in base.entities)) if known else None
