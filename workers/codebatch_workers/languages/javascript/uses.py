"""Uses of names in JavaScript and TypeScript, and global names of declaration files (`.d.ts`)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace
from tree_sitter import Node

from codebatch.model.record import Symbol
from codebatch_workers.languages.javascript.values import SCRIPT_VALUES
from codebatch_workers.symbols.file_exports import ModuleExport
from codebatch_workers.symbols.imported_names import literal_text
from codebatch_workers.syntax.nodes import ancestors
from codebatch_workers.uses.entities import DefinedEntity, Entity, Meaning, merge_meanings
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.language_resolver import LanguageResolver, LanguageUses
from codebatch_workers.uses.language_rules import FUNCTION_TYPES, VALUE_TYPES, ArgumentRules, LanguageRules

_DECLARATION_ENDINGS = (".d.ts", ".d.mts", ".d.cts")
_FILES_MAX = 20
_MODULE_STATEMENTS = frozenset({"export_statement", "import_statement"})
_PARENTS_OF_ANY_NAME = frozenset({"export_statement", "import_alias", "nested_identifier", "nested_type_identifier"})
_TYPES_ONLY = frozenset({"interface", "type"})
_VALUES_ONLY = FUNCTION_TYPES | VALUE_TYPES


class TypeScriptUses(LanguageResolver):
    """The rules that only TypeScript has: global names, and separate spaces of types and values.

    A file without imports and exports declares global names. Other files do so in `declare global`. The compiler may
    not include all of these files, so no such meaning is exact.
    """

    def find_global(self, name: str) -> Meaning | None:
        paths = sorted(path for path in self.files_with_name(name) if path.endswith(_DECLARATION_ENDINGS))
        return merge_meanings(self._declared(path, name) for path in paths[:_FILES_MAX])

    def select_fitting(self, found: Meaning, name: Node) -> Meaning | None:
        """Leave out types where TypeScript expects a value, and values where it expects a type.

        If nothing remains, the name means a global value or type.
        """
        if name.type not in ("identifier", "type_identifier"):
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

    def _declared(self, path: str, name: str) -> Meaning | None:
        facts = self.facts_of(path)
        symbols = () if facts is None else tuple(_global_symbols(facts, name))
        return Meaning("inferred", (DefinedEntity(facts, symbols),)) if facts is not None and symbols else None


def _global_symbols(facts: SourceFacts, name: str) -> Iterator[Symbol]:
    root = None if facts.file.tree is None else facts.file.tree.root_node
    is_module = root is not None and any(child.type in _MODULE_STATEMENTS for child in root.named_children)
    for symbol in facts.symbols_named(name):
        node = facts.name_of(symbol)
        if node is not None and (not is_module or _is_in_global_block(node)):
            yield symbol


def _is_in_global_block(node: Node) -> bool:
    declarations = (above for above in ancestors(node) if above.type == "ambient_declaration")
    return any(child.type == "global" for declaration in declarations for child in declaration.children)


def _read_export(name: Node, utf8: bytes) -> ModuleExport | None:
    """Return what `export { name as other }` or `export { name } from "module"` exports, given a name in it."""
    specifier = name.parent
    exported = specifier.child_by_field_name("name") if specifier and specifier.type == "export_specifier" else None
    if specifier is None or exported is None:
        return None
    text = utf8[exported.start_byte : exported.end_byte].decode("utf-8", "replace")
    statement = specifier.parent and specifier.parent.parent
    source = None if statement is None else statement.child_by_field_name("source")
    return ModuleExport("", text) if source is None else ModuleExport("", "", literal_text(source, utf8), text)


_RULES = LanguageRules(
    read_export=_read_export,
    not_overridable=re.compile(rb"#|\bprivate\b"),
    has_bindings=True,
    values=SCRIPT_VALUES,
    constructor_member="constructor",
    own_object=frozenset({"this"}),
    base_object=frozenset({"super"}),
    labels=frozenset({"pair", "method_definition", "jsx_attribute", "labeled_statement", "enum_assignment"}),
)
_TYPED_RULES = replace(
    _RULES,
    arguments=ArgumentRules(),
    signatures=frozenset({"abstract_method_signature", "function_signature", "method_signature"}),
)
USES = {
    "javascript": LanguageUses(_RULES),
    "tsx": LanguageUses(_TYPED_RULES, TypeScriptUses),
    "typescript": LanguageUses(_TYPED_RULES, TypeScriptUses),
}
