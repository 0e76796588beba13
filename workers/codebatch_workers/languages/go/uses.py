"""Uses of names in Go: of the package, of imported packages, and members of types that the code states.

A method can be in any file of the package of its type, so the files that contain the name of the method are searched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from tree_sitter import Node

from codebatch.model.analysis.uses import EXTERNAL, UNKNOWN, Resolved, least_certain, resolve_to
from codebatch_workers.languages.go.chains import go_chain
from codebatch_workers.languages.go.types import go_type, result_type, split_result
from codebatch_workers.symbols.imported_names import ImportedName, LocalImport
from codebatch_workers.symbols.local_names import UNKNOWN_TYPE
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.uses.chains import NameChain, name_components
from codebatch_workers.uses.entities import (
    EXTERNAL_MEANING,
    DefinedEntity,
    Meaning,
    ModuleEntity,
    definitions_of,
    merge_meanings,
    only_definition,
)
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.language_resolver import LanguageResolver, LanguageUses
from codebatch_workers.uses.language_rules import (
    CLASS_TYPES,
    FUNCTION_TYPES,
    LINK_CERTAINTY,
    VALUE_TYPES,
    ArgumentRules,
    LanguageRules,
)

_STEPS_MAX = 12
"""Maximum number of embedded types, results and types of fields that are followed for one name."""

_MAJOR_VERSION = re.compile(r"/v\d+\Z")


class GoUses(LanguageResolver):
    """Resolves uses in Go files."""

    def resolve(self, facts: SourceFacts, name: Node, scope: str) -> Resolved:
        chain = go_chain(name, facts.file.utf8)
        found = None if chain is None or chain.is_open else self._find_chain(facts, chain, scope, 0)
        if found is None:
            return UNKNOWN
        if found.certainty == "external":
            return EXTERNAL
        return resolve_to(found.certainty, definitions_of(found))

    def _find_chain(self, facts: SourceFacts, chain: NameChain, scope: str, steps: int) -> Meaning | None:
        names = chain.names
        receiver = facts.local_names.receiver(chain.start, names[0].encode())
        if steps > _STEPS_MAX or receiver == UNKNOWN_TYPE or (receiver and len(names) == 1):
            return None
        if receiver:
            found = _as_value(self._find_type(facts, scope, receiver, steps + 1, chain.start))
        else:
            found = self._find_name(facts, scope, names[0], steps + 1)
        return self._find_members(found, names[1:], steps + 1)

    # -- Names ---------------------------------------------------------------------------------------------------------

    def _find_name(self, facts: SourceFacts, scope: str, name: str, steps: int) -> Meaning | None:
        """Return what a name means that is not the name of a local variable."""
        for outer in facts.scopes(scope):
            # A function can define types. The names of members need the object before them.
            if any(symbol.symbol_type in FUNCTION_TYPES for symbol in facts.symbols_named(outer)):
                local_types = _definitions(facts, f"{outer}.{name}")
                if local_types is not None:
                    return local_types
        own = _definitions(facts, name)
        if own is not None:
            return own
        imports = [imported for imported in facts.imports if self._local_name(facts, imported) == name]
        if imports:
            return merge_meanings(self._follow(facts, imported) for imported in imports)
        linked = merge_meanings(
            Meaning(least_certain(LINK_CERTAINTY[edge.resolution], found.certainty), found.entities)
            for edge in facts.implicit_links.get(name, ())
            if (target := self.facts_of(edge.target)) is not None and (found := _definitions(target, name))
        )
        return linked or merge_meanings(
            self._find_member(entity, name, steps + 1)
            for imported in facts.imports
            if imported.local == "." and (package := self._follow(facts, imported)) is not None
            for entity in package.entities
        )

    def _local_name(self, facts: SourceFacts, imported: LocalImport) -> str:
        """Return the name that an import binds: the given one, or the one that the package declares."""
        if imported.local:
            return imported.local
        for edge in facts.links_of(imported):
            target = self.facts_of(edge.target) if edge.resolution != "external" else None
            if target is not None and _package(target):
                return _package(target)
        return _MAJOR_VERSION.sub("", imported.target).rpartition("/")[2].removeprefix("go-").removesuffix(".go")

    def _follow(self, facts: SourceFacts, imported: LocalImport) -> Meaning | None:
        """Return the package that an import names."""
        edges = facts.links_of(imported)
        targets = [edge for edge in edges if edge.resolution != "external"]
        if not targets:
            return EXTERNAL_MEANING if edges else None
        files = tuple(found for edge in targets if (found := self.facts_of(edge.target)) is not None)
        return Meaning(LINK_CERTAINTY[targets[0].resolution], (ModuleEntity(files),)) if files else None

    # -- Members -------------------------------------------------------------------------------------------------------

    def _find_members(self, found: Meaning | None, names: Sequence[str], steps: int) -> Meaning | None:
        for name in names:
            if found is None or found.certainty == "external":
                return found
            if found.certainty == "name" or steps > _STEPS_MAX or len(found.entities) != 1:
                return None
            member = self._find_member(found.entities[0], name, steps + 1)
            found = member and Meaning(least_certain(found.certainty, member.certainty), member.entities)
        return found

    def _find_member(self, entity: DefinedEntity | ModuleEntity, name: str, steps: int) -> Meaning | None:
        if isinstance(entity, ModuleEntity):
            return self._find_in_package([facts.path for facts in entity.files], name)
        symbol = entity.symbols[0]
        if symbol.symbol_type in CLASS_TYPES:
            return self._find_in_type(entity, name, steps)
        written = entity.facts.type_of(symbol) if symbol.symbol_type in VALUE_TYPES and len(entity.symbols) == 1 else ""
        if not written:
            return None
        place = entity.facts.offset(symbol)
        owner = _as_value(self._find_type(entity.facts, "", written, steps + 1, place))
        return self._find_members(owner, (name,), steps + 1)

    def _find_in_type(self, owner: DefinedEntity, name: str, steps: int) -> Meaning | None:
        """Return the field or method of a type or of the types that it embeds."""
        facts, qualified = owner.facts, owner.symbols[0].qualified
        found = _definitions(facts, f"{qualified}.{name}")
        embedded = facts.bases.get(qualified, ())
        # The name of an embedded type is also the name of a field, which is not recorded.
        if found is not None or steps > _STEPS_MAX or any(name_components(base)[-1] == name for base in embedded):
            return found
        found = self._find_in_package(self._package_files(facts, name), f"{qualified}.{name}")
        if found is not None:
            return found
        members = [
            self._find_members(_as_value(self._find_type(facts, "", base, steps + 1, None)), (name,), steps + 1)
            for base in embedded
        ]
        known = [member for member in members if member is not None and member.certainty != "external"]
        return known[0] if len(known) == 1 else None

    def _package_files(self, facts: SourceFacts, name: str) -> Iterator[str]:
        """Yield the files of a file's package that contain a name."""
        directory = facts.path.rpartition("/")[0]
        for path in self.files_with_name(name):
            if path.endswith(".go") and path.rpartition("/")[0] == directory:
                other = self.facts_of(path)
                if other is not None and _package(other) == _package(facts):
                    yield path

    def _find_in_package(self, paths: Iterable[str], qualified: str) -> Meaning | None:
        """Return the definitions with a qualified name in files of one package."""
        containing = set(self.files_with_name(qualified.rpartition(".")[2]))
        files = [facts for path in paths if path in containing and (facts := self.facts_of(path)) is not None]
        return merge_meanings(_definitions(facts, qualified) for facts in files)

    # -- Types ---------------------------------------------------------------------------------------------------------

    def _find_type(
        self, facts: SourceFacts, scope: str, written: str, steps: int, offset: int | None
    ) -> Meaning | None:
        """Return what a type as written means (languages/go/types.py)."""
        if steps > _STEPS_MAX:
            return None
        result = split_result(written)
        if result is not None:
            return self._find_result(facts, scope, *result, steps)
        names = name_components(written)
        if offset is not None and facts.local_names.receiver(offset, names[0].encode()) == UNKNOWN_TYPE:
            return None  # A type parameter.
        return self._find_members(self._find_name(facts, scope, names[0], steps + 1), names[1:], steps + 1)

    def _find_result(
        self, facts: SourceFacts, scope: str, callee: str, index: int, offset: int, steps: int
    ) -> Meaning | None:
        """Return the declared type of a result of a function or method."""
        chain = NameChain(tuple(name_components(callee)), offset, is_open=False, is_absolute=False)
        found = self._find_chain(facts, chain, scope, steps + 1)
        if found is None or found.certainty == "external":
            return found
        function = only_definition(found) if found.certainty != "name" else None
        if function is None or len(function.symbols) != 1:
            return None
        facts = function.facts
        declaration = facts.declaration_of(function.symbols[0])
        written = "" if declaration is None else result_type(declaration, facts.file.utf8, index)
        place = function.facts.offset(function.symbols[0])
        value = self._find_type(function.facts, "", written, steps + 1, place) if written else None
        return value and Meaning(
            least_certain(least_certain(found.certainty, "inferred"), value.certainty), value.entities
        )


def _package(facts: SourceFacts) -> str:
    """Return the name of the package to which a file belongs."""
    return next((name for name, found in facts.symbols.items() if found[0].symbol_type == "module"), "")


def _definitions(facts: SourceFacts, qualified: str) -> Meaning | None:
    symbols = tuple(symbol for symbol in facts.symbols_named(qualified) if symbol.symbol_type != "module")
    return Meaning("exact", (DefinedEntity(facts, symbols),)) if symbols else None


def _as_value(found: Meaning | None) -> Meaning | None:
    """Return an object of a type."""
    if found is None or found.certainty == "external":
        return found
    is_type = all(
        isinstance(entity, DefinedEntity) and entity.symbols[0].symbol_type in CLASS_TYPES for entity in found.entities
    )
    return Meaning(least_certain(found.certainty, "inferred"), found.entities) if is_type else None


def _bind_import(file: SourceFile, statement: Node, imported: ImportedName, _target: str) -> LocalImport:
    """Return the import of a package. `local` is empty if the package itself determines the name, and `.` for all."""
    line = file.position(imported.node.start_byte)[0]
    name = statement.child_by_field_name("name")
    local = "" if name is None else file.utf8[name.start_byte : name.end_byte].decode("utf-8", "replace")
    return LocalImport(local, imported.target, "*", line, -1 if name is None else name.start_byte)


USES = {
    "go": LanguageUses(
        LanguageRules(
            is_sequential=True,
            read_type=go_type,
            shares_packages=True,
            bind_import=_bind_import,
            groups_parameters=True,
            # A method expression names a type: `(*T).f(object)`, `T.f(object)`.
            arguments=ArgumentRules(
                are_checked=True,
                spreads_results=True,
                object_is_argument=re.compile(rb"(?:\(\s*\*\s*[\w.]+\s*\)|\b[A-Z]\w*)\s*\.\s*\Z"),
            ),
        ),
        GoUses,
    )
}
