"""Uses of names in Rust: paths by modules and `use`, and members of types that the code states.

Only members that the file of a type defines are found. Arguments of macros are not parsed, so only paths are resolved
in them. The module is as long as it is because paths and members are resolved by each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec
from tree_sitter import Node

from codebatch.model.analysis.uses import EXTERNAL, UNKNOWN, Resolved, least_certain, resolve_to
from codebatch.model.record import Edge, Symbol
from codebatch_workers.languages.rust.imported_names import read_imports
from codebatch_workers.languages.rust.types import called_function, rust_result_type, rust_type
from codebatch_workers.symbols.local_names import UNKNOWN_TYPE
from codebatch_workers.symbols.outline import scope_definitions
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
from codebatch_workers.uses.language_resolver import LanguageResolver, LanguageUses, UseContext
from codebatch_workers.uses.language_rules import (
    CLASS_TYPES,
    FUNCTION_TYPES,
    LINK_CERTAINTY,
    VALUE_TYPES,
    ArgumentRules,
    LanguageRules,
)

_STEPS_MAX = 12
"""Maximum number of modules, `use` declarations and types that are followed for one name."""
_ROOT_STEMS = frozenset({"lib", "main"})
_FIRST_MODULES = frozenset({"crate", "self", "super"})
_PATH_NODES = frozenset({"scoped_identifier", "scoped_type_identifier"})
_PLAIN_NODES = frozenset({"crate", "identifier", "self", "super", "type_identifier"})
_MEMBERS_OF_POINTERS = frozenset({"as_ref", "borrow", "clone", "deref", "into", "to_owned"})


class _RustImport(msgspec.Struct, frozen=True):
    """A name that a `use`, `mod` or `extern crate` binds in a scope. `local` is empty if it binds all names."""

    local: str
    target: str
    is_module: bool
    scope: str
    line: int


class _RustChain(msgspec.Struct, frozen=True):
    """The names of a path, and the names of the fields and methods after it."""

    path: tuple[str, ...]
    members: tuple[str, ...]
    start: int


class RustUses(LanguageResolver):
    """Resolves uses in Rust files."""

    def __init__(self, context: UseContext) -> None:
        super().__init__(context)
        self._imports: dict[str, list[_RustImport]] = {}
        self._pending: set[tuple[str, str, str]] = set()

    def resolve(self, facts: SourceFacts, name: Node, scope: str) -> Resolved:
        chain = _chain(name, facts)
        found = None if chain is None else self._find_chain(facts, chain, scope)
        if found is None:
            return UNKNOWN
        if found.certainty == "external":
            return EXTERNAL
        is_macro = name.parent is not None and name.parent.type == "macro_invocation"
        fitting = (one for one in definitions_of(found) if (one.symbol_type == "macro") == is_macro)
        return resolve_to(found.certainty, fitting)

    def follow_import(self, facts: SourceFacts, name: str, line: int) -> Iterator[Meaning]:
        """Yield what the `use` declarations in a line that end with a name, or bind it, refer to."""
        for imported in self._imports_of(facts):
            if imported.line == line and name in (imported.local, imported.target.rpartition("::")[2]):
                yield from filter(None, [self._follow(facts, imported, 0)])

    def _find_chain(self, facts: SourceFacts, chain: _RustChain, scope: str) -> Meaning | None:
        first = chain.path[0]
        if first == "self" and len(chain.path) == 1:
            found = self._own_type(facts, scope)
        elif len(chain.path) == 1 and chain.start >= 0:
            receiver = facts.local_names.receiver(chain.start, first.encode())
            if receiver == UNKNOWN_TYPE or (receiver and not chain.members):
                return None
            found = (
                self._find_value_type(facts, scope, receiver, 0)
                if receiver
                else self._find_path(facts, scope, (first,), 0)
            )
        else:
            found = self._find_path(facts, scope, chain.path, 0)
        if found is not None and chain.members and not _is_type(found) and found.certainty != "external":
            found = self._value_of(found, 1)
        return self._find_members(found, chain.members, 0)

    def _own_type(self, facts: SourceFacts, scope: str) -> Meaning | None:
        owner = facts.enclosing_class(scope)
        symbols = () if owner is None else tuple(facts.symbols_named(owner))
        return Meaning("inferred", (DefinedEntity(facts, symbols),)) if symbols else None

    # -- Paths ---------------------------------------------------------------------------------------------------------

    def _find_path(self, facts: SourceFacts, scope: str, path: Sequence[str], steps: int) -> Meaning | None:
        if steps > _STEPS_MAX:
            return None
        if path[0] == "Self":
            found = self._own_type(facts, scope)
            found = found and Meaning("exact", found.entities)
            return self._find_items(found, path[1:], steps)
        if path[0] in _FIRST_MODULES:
            return self._find_linked(facts, path, steps) if not _module_of(facts, scope) else None
        found = self._find_name(facts, scope, path[0], steps + 1)
        if found is None and len(path) > 1:
            return self._find_linked(facts, path, steps)
        return self._find_items(found, path[1:], steps)

    def _find_linked(self, facts: SourceFacts, path: Sequence[str], steps: int) -> Meaning | None:
        """Return what a path means whose file is known from a link."""
        for count in range(len(path), 1, -1):
            edges = facts.implicit_links.get("::".join(path[:count]), ())
            if edges:
                found = merge_meanings(
                    self._find_from_file(edge.target, path, LINK_CERTAINTY[edge.resolution], steps + 1)
                    for edge in edges
                )
                return found if len(edges) == 1 else None
        return None

    def _find_from_file(self, file: str, path: Sequence[str], certainty: str, steps: int) -> Meaning | None:
        target, rest = self.facts_of(file), _path_in_file(path, file)
        if target is None or rest is None:
            return None
        found = self._find_items(Meaning("exact", (ModuleEntity((target,)),)), rest, steps + 1)
        return found and Meaning(
            least_certain(found.certainty, "exact" if certainty == "exact" else "inferred"), found.entities
        )

    def _find_items(self, found: Meaning | None, names: Sequence[str], steps: int) -> Meaning | None:
        """Return what the names after a module or type mean."""
        for name in names:
            if found is None or found.certainty == "external":
                return found
            if found.certainty == "name" or len(found.entities) != 1 or steps > _STEPS_MAX:
                return None
            entity = found.entities[0]
            if isinstance(entity, ModuleEntity):
                item = self._find_in_module(entity.files[0], "", name, steps + 1)
            elif entity.symbols[0].symbol_type == "module":
                item = self._find_in_module(entity.facts, entity.symbols[0].qualified, name, steps + 1)
            else:
                item = _member(entity, name)
            found = item and Meaning(least_certain(found.certainty, item.certainty), item.entities)
        return found

    def _find_name(self, facts: SourceFacts, scope: str, name: str, steps: int) -> Meaning | None:
        """Return what a name means in a scope: in the enclosing functions, then in the module."""
        module = _module_of(facts, scope)
        for outer in facts.scopes(scope):
            if outer == module:
                break
            if any(symbol.symbol_type in FUNCTION_TYPES for symbol in facts.symbols_named(outer)):
                found = self._find_in_module(facts, outer, name, steps + 1)
                if found is not None:
                    return found
        return self._find_in_module(facts, module, name, steps + 1)

    def _find_in_module(self, facts: SourceFacts, module: str, name: str, steps: int) -> Meaning | None:
        """Return what a name means in a module of a file, or in a function. `module` is its qualified name."""
        # Modules can import each other with `*`.
        place = (facts.path, module, name)
        if steps > _STEPS_MAX or place in self._pending:
            return None
        self._pending.add(place)
        found = self._find_bound(facts, module, name, steps)
        self._pending.discard(place)
        return found

    def _find_bound(self, facts: SourceFacts, module: str, name: str, steps: int) -> Meaning | None:
        imports = [one for one in self._imports_of(facts) if one.scope == module]
        symbols = facts.symbols_named(f"{module}::{name}" if module else name)
        # `use a::{self}` can import a module of the same scope.
        named = [one for one in imports if one.local == name and not (one.target == name and _is_module(symbols))]
        own = tuple(symbol for symbol in symbols if not (named and symbol.symbol_type == "module"))
        found = [self._follow(facts, one, steps) for one in named]
        if own:
            found.append(Meaning("exact", (DefinedEntity(facts, own),)))
        if found:
            return None if None in found else merge_meanings(found)
        starred = [one for one in imports if not one.local]
        results = [self._find_in_star(facts, one, name, steps) for one in starred]
        known = [result for result in results if result is not None and result.certainty != "external"]
        merged = merge_meanings(known)
        return merged and Meaning(least_certain(merged.certainty, "inferred"), merged.entities)

    def _find_in_star(self, facts: SourceFacts, imported: _RustImport, name: str, steps: int) -> Meaning | None:
        module = self._follow(facts, imported, steps)
        found = self._find_items(module, (name,), steps + 1)
        if found is None or module is None or not module.entities or not _is_type(module):
            return found
        # `use Kind::*` binds the variants of an enum, but not its functions.
        variants = [entity for entity in found.entities if isinstance(entity, DefinedEntity)]
        is_variant = all(symbol.symbol_type == "enum_member" for entity in variants for symbol in entity.symbols)
        return found if is_variant else None

    def _follow(self, facts: SourceFacts, imported: _RustImport, steps: int) -> Meaning | None:
        """Return what an import means: a module or an item."""
        edges = _links_of(facts, imported)
        files = [edge for edge in edges if edge.resolution != "external"]
        path = [part for part in imported.target.split("::") if part not in ("", "*")]
        if not files:
            return self._follow_in_scope(facts, imported, path, steps) if edges else None
        certainty = LINK_CERTAINTY[files[0].resolution]
        if len(files) > 1:
            return None
        if imported.is_module:
            target = self.facts_of(files[0].target)
            return None if target is None else Meaning(certainty, (ModuleEntity((target,)),))
        return self._find_from_file(files[0].target, path, certainty, steps + 1)

    def _follow_in_scope(
        self, facts: SourceFacts, imported: _RustImport, path: Sequence[str], steps: int
    ) -> Meaning | None:
        """Return what an import means that begins with a name of its own scope, or with the name of another crate."""
        if path[0] in _FIRST_MODULES:
            return None
        found = self._find_items(self._find_name(facts, imported.scope, path[0], steps + 1), path[1:], steps + 1)
        is_crate = found is None and not path[0][:1].isupper()
        return EXTERNAL_MEANING if is_crate else found

    def _imports_of(self, facts: SourceFacts) -> list[_RustImport]:
        if facts.path not in self._imports:
            self._imports[facts.path] = list(_read_imports(facts))
        return self._imports[facts.path]

    # -- Members -------------------------------------------------------------------------------------------------------

    def _find_members(self, found: Meaning | None, names: Sequence[str], steps: int) -> Meaning | None:
        """Return the field or method of an object whose type is known, and the fields of it."""
        for index, name in enumerate(names):
            if found is None or found.certainty in ("name", "external") or len(found.entities) != 1:
                return None
            entity = found.entities[0]
            member = None if isinstance(entity, ModuleEntity) else _member(entity, name)
            if member is None or name in _MEMBERS_OF_POINTERS:
                return None
            found = Meaning(least_certain(found.certainty, "inferred"), member.entities)
            if index + 1 < len(names):
                found = self._value_of(found, steps + 1)
        return found

    def _value_of(self, found: Meaning, steps: int) -> Meaning | None:
        """Return the type of a field, constant or static variable."""
        entity = only_definition(found)
        if entity is None or entity.symbols[0].symbol_type not in VALUE_TYPES:
            return None
        symbol = entity.symbols[0]
        return self._find_value_type(entity.facts, symbol.scope, entity.facts.type_of(symbol), steps + 1)

    def _find_value_type(self, facts: SourceFacts, scope: str, written: str, steps: int) -> Meaning | None:
        """Return the type of an object, as written or as the result of a function."""
        function = called_function(written)
        if function:
            found = self._find_path(facts, scope, function.split("::"), steps + 1)
            entity = only_definition(found)
            if entity is None or len(entity.symbols) != 1:
                return None
            declaration = entity.facts.declaration_of(entity.symbols[0])
            result = "" if declaration is None else rust_result_type(declaration, entity.facts.file.utf8)
            return (
                self._find_value_type(entity.facts, entity.symbols[0].qualified, result, steps + 1) if result else None
            )
        if not written or steps > _STEPS_MAX:
            return None
        found = self._find_path(facts, scope, written.split("::"), steps + 1)
        return found if found is not None and _is_type(found) else None


def _member(entity: DefinedEntity, name: str) -> Meaning | None:
    qualified = f"{entity.symbols[0].qualified}::{name}"
    symbols = tuple(entity.facts.symbols_named(qualified))
    return Meaning("exact", (DefinedEntity(entity.facts, symbols),)) if symbols else None


def _is_type(found: Meaning) -> bool:
    return all(
        isinstance(entity, DefinedEntity)
        and all(symbol.symbol_type in CLASS_TYPES and symbol.symbol_type != "type" for symbol in entity.symbols)
        for entity in found.entities
    )


def _module_of(facts: SourceFacts, scope: str) -> str:
    """Return the innermost inline module around a scope, or an empty string."""
    return next((outer for outer in facts.scopes(scope) if _is_module(facts.symbols_named(outer))), "")


def _is_module(symbols: Sequence[Symbol]) -> bool:
    return any(symbol.symbol_type == "module" for symbol in symbols)


def _path_in_file(path: Sequence[str], file: str) -> list[str] | None:
    """Return the part of a path after the module in a file, or None if it is unknown where this part begins."""
    names = list(path)
    is_relative = names[0] in _FIRST_MODULES
    while names and names[0] in _FIRST_MODULES:
        names.pop(0)
    directory, _, base = file.rpartition("/")
    stem = base.removesuffix(".rs")
    if stem == "mod":
        stem = directory.rpartition("/")[2]
    if stem in names:
        return names[len(names) - names[::-1].index(stem) :]
    if is_relative:
        return names
    return names[1:] if stem in _ROOT_STEMS else None


def _chain(name: Node, facts: SourceFacts) -> _RustChain | None:
    """Return the chain that ends with a name, or None if it is open or the name is not used."""
    text, parent = facts.text, name.parent
    if parent is None or parent.type == "token_tree":
        return _chain_in_macro(name, facts)
    if parent.type == "field_expression" and parent.child_by_field_name("field") == name:
        members, value = [text(name)], parent.child_by_field_name("value")
        while value is not None and value.type == "field_expression":
            field = value.child_by_field_name("field")
            members.append("" if field is None else text(field))
            value = value.child_by_field_name("value")
        if value is None or value.type not in ("identifier", "self"):
            return None
        return _RustChain((text(value),), tuple(reversed(members)), value.start_byte)
    if name.type in ("field_identifier", "shorthand_field_identifier"):
        literal = parent.parent.parent if parent.type == "field_initializer" and parent.parent else None
        owner = None if literal is None else literal.child_by_field_name("name")
        path = None if owner is None else _written_path(owner, facts)
        return None if path is None else _RustChain((*path, text(name)), (), -1)
    if name.type not in ("identifier", "type_identifier"):
        return None
    if parent.type in _PATH_NODES and parent.child_by_field_name("name") == name:
        path = _written_path(parent, facts)
        return None if path is None else _RustChain(path, (), -1)
    return _RustChain((text(name),), (), name.start_byte)


def _written_path(node: Node, facts: SourceFacts) -> tuple[str, ...] | None:
    """Return the names of a path without its type arguments, or None if it begins with another expression."""
    names: list[str] = []
    current: Node | None = node
    while current is not None:
        if current.type == "generic_type":
            current = current.child_by_field_name("type")
        elif current.type in _PATH_NODES:
            last = current.child_by_field_name("name")
            names.append("" if last is None else facts.text(last))
            current = current.child_by_field_name("path")
            if current is None:
                return None  # An absolute path.
        elif current.type in _PLAIN_NODES:
            names.append(facts.text(current))
            return tuple(reversed(names))
        else:
            return None
    return None


def _chain_in_macro(name: Node, facts: SourceFacts) -> _RustChain | None:
    """Return the path that ends with a name in the arguments of a macro. Return None if it is not a path."""
    chain = facts.chain_of(name)
    written = facts.file.utf8[chain.start : name.end_byte]
    is_path = len(chain.names) > 1 and written.count(b"::") == len(chain.names) - 1 and b"." not in written
    if not is_path or chain.is_open or chain.is_absolute or chain.names[0] in ("Self", "self", "super"):
        return None
    return _RustChain(chain.names, (), -1)


def _read_imports(facts: SourceFacts) -> Iterator[_RustImport]:
    scopes = scope_definitions(facts.file)
    for statement in facts.file.captures.get("import", ()):
        scope = scopes.qualified_scope(statement.start_byte)
        if statement.type == "mod_item":
            scope = scope.rpartition("::")[0]  # The module itself is a scope.
        for imported in read_imports(statement, facts.file.utf8):
            local = "" if imported.bound is None else facts.text(imported.bound)
            if imported.bound is None and not imported.target.endswith("*"):
                local = imported.target.rpartition("::")[2]
            if local != "_":
                line = facts.file.position(imported.node.start_byte)[0]
                yield _RustImport(local, imported.target, imported.is_module, _module_or_function(facts, scope), line)


def _links_of(facts: SourceFacts, imported: _RustImport) -> Sequence[Edge]:
    """Return the links of an import. If several names of a line are in one file, only the first has a link."""
    known = facts.explicit_links.get(imported.target, ())
    if known:
        return known
    parent = imported.target.rpartition("::")[0]
    for edge in facts.links_by_line.get(imported.line, ()):
        rest = _path_in_file(edge.imported.split("::"), edge.target)
        edge_parent = edge.imported.rpartition("::")[0]
        is_sibling = edge_parent == parent and bool(rest)
        is_module = edge.imported == parent and rest == []
        if edge.resolution != "external" and (
            is_sibling or is_module or (edge_parent == imported.target and len(rest or ()) == 1)
        ):
            return [edge]
    return ()


def _module_or_function(facts: SourceFacts, scope: str) -> str:
    """Return the innermost function or module around a scope, in which `use` binds names."""
    for outer in facts.scopes(scope):
        types = {symbol.symbol_type for symbol in facts.symbols_named(outer)}
        if "module" in types or types & FUNCTION_TYPES:
            return outer
    return ""


_RULES = LanguageRules(
    is_sequential=True,
    read_type=rust_type,
    arguments=ArgumentRules(are_checked=True, object_is_argument=re.compile(rb"::\s*\Z")),
)
USES = {"rust": LanguageUses(_RULES, RustUses)}
