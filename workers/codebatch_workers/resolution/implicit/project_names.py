"""The implicit imports of a project: edges for the names that files use without an import."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import itemgetter

from codebatch.model.entry import path_fields
from codebatch.model.record import Edge, File, Names, Record, Symbol
from codebatch_workers.api.project import Project
from codebatch_workers.resolution.implicit.c import CExternalNames
from codebatch_workers.resolution.implicit.jvm import JVM_LANGUAGES, TYPE_SYMBOLS, JvmPackageNames, bases_and_stars
from codebatch_workers.resolution.implicit.ruby import RubyConstants
from codebatch_workers.resolution.implicit.rules import (
    IMPLICIT_IMPORT_RULES,
    DefinedImportRule,
    ImplicitImportRule,
    RuleWithRelations,
)
from codebatch_workers.resolution.implicit.rust import RustPaths
from codebatch_workers.resolution.jvm import JvmDefinitions
from codebatch_workers.resolution.resolver import ProjectResolver
from codebatch_workers.resolution.tree import PathTree, ResolvedImport

_LANGUAGES = IMPLICIT_IMPORT_RULES.keys() | {"rust"}


class ImplicitImports:
    """The definitions of all files in languages with implicit imports, and the edges that lead to them."""

    def __init__(self, project: Project, files: Mapping[str, File], tree: PathTree, resolver: ProjectResolver) -> None:
        """Read the definitions. `files` has the `file` record of each file of the batch, by path."""
        self._languages = {path: file.lang for path, file in files.items() if file.lang in _LANGUAGES}
        makers = {language: IMPLICIT_IMPORT_RULES[language] for language in {*self._languages.values()} - {"rust"}}
        by_maker = {maker: maker(tree) for maker in makers.values()}
        self._rules: dict[str, ImplicitImportRule] = {language: by_maker[maker] for language, maker in makers.items()}
        if "rust" in self._languages.values():
            self._rules["rust"] = RustPaths(resolver.rust_imports)
        self._defined_imports = {
            language: rule for language, rule in self._rules.items() if isinstance(rule, DefinedImportRule)
        }
        texts = {rule.definitions_text for rule in self._rules.values()}
        text = texts.pop() if len(texts) == 1 else ""
        without_symbols = dict(self._languages)
        for entry, records in project.records("symbols", "symbol", holding=text) if self._rules else ():
            path = path_fields(entry.path)[0]
            language = without_symbols.pop(path, None) if isinstance(path, str) else None
            if isinstance(path, str) and language is not None:
                symbols = [record for record in records if isinstance(record, Symbol)]
                is_partial = files[path].parse != "ok"
                self._rules[language].add_definitions(path, language, symbols, is_partial=is_partial)
        for path, language in without_symbols.items():
            self._rules[language].add_definitions(path, language, (), is_partial=files[path].parse != "ok")
        with_relations = {name: rule for name, rule in self._rules.items() if isinstance(rule, RuleWithRelations)}
        # Both `imports` and `inherits` begin with this letter.
        for entry, records in project.records("symbols", "edge", holding='"edge_type":"i') if with_relations else ():
            path = path_fields(entry.path)[0]
            language = self._languages.get(path) if isinstance(path, str) else None
            if isinstance(path, str) and language in with_relations:
                edges = [record for record in records if isinstance(record, Edge)]
                with_relations[language].add_relations(path, edges)

        self._add_declarations(project)

    @property
    def jvm_definitions(self) -> Mapping[str, JvmDefinitions]:
        """The definitions of all files in Java, Kotlin and Scala, by path."""
        rules = [rule for rule in self._rules.values() if isinstance(rule, JvmPackageNames)]
        return rules[0].definitions if rules else {}

    def resolve_import(self, path: str, target: str) -> ResolvedImport | None:
        """Resolve an import that names a definition. Return None if the language's imports name files instead."""
        language = self._languages.get(path)
        rule = None if language is None else self._defined_imports.get(language)
        return None if rule is None else rule.resolve_import(path, target)

    def _add_declarations(self, project: Project) -> None:
        rules = {language: rule for language, rule in self._rules.items() if isinstance(rule, CExternalNames)}
        for entry, records in project.records("symbols", "names", holding='"declared":') if rules else ():
            path = path_fields(entry.path)[0]
            rule = rules.get(self._languages.get(path, "")) if isinstance(path, str) else None
            if rule is not None and isinstance(path, str):
                for record in records:
                    if isinstance(record, Names):
                        rule.add_declarations(path, record.declared)

    def edges(self, path: str, names: Names | None, imports: Sequence[Edge]) -> Iterator[Edge]:
        """Yield a `depends` edge for each name that a file uses without an import, and each file that defines it."""
        language = self._languages.get(path)
        if names is None or language is None:
            return
        rule, found = self._rules[language], set[tuple[str, str]]()
        local, ruby_rule = frozenset(names.local), rule if isinstance(rule, RubyConstants) else None
        scopes = names.scopes or repeat("", len(names.names))
        for name, line, scope in sorted(zip(names.names, names.lines, scopes, strict=True), key=itemgetter(1)):
            if ruby_rule is not None:
                resolved = ruby_rule.resolve_in_scope(path, name, scope)
            else:
                resolved = rule.resolve(path, language, name, imports)
            if resolved is None:
                continue
            # A local variable has this name somewhere in the file, so that some uses may not lead to the other file.
            is_uncertain = name in local and resolved.resolution == "exact"
            for target in resolved.paths:
                if target != path and (target, resolved.name) not in found:
                    found.add((target, resolved.name))
                    yield Edge(
                        path=path,
                        edge_type="depends",
                        source="",
                        target=target,
                        line=line,
                        resolution="file" if is_uncertain else resolved.resolution,
                        imported=resolved.name,
                        implicit=True,
                    )


def definitions_key(file: File, records: Sequence[Record]) -> Hashable:
    """Return the part of a file's symbols and edges on which the links of other files can depend."""
    if file.lang not in _LANGUAGES:
        return None
    # In C#, an import symbol can be a `global using`, which applies to other files.
    has_global_imports = file.lang == "csharp"
    symbols = [
        record
        for record in records
        if isinstance(record, Symbol) and (record.symbol_type != "import" or has_global_imports)
    ]
    if file.lang == "go":
        return frozenset((symbol.name, symbol.symbol_type) for symbol in symbols if not symbol.scope)
    if file.lang == "rust":
        return frozenset(symbol.name for symbol in symbols if symbol.symbol_type == "macro")
    if file.lang not in JVM_LANGUAGES:
        definitions = frozenset(
            (record.qualified, record.symbol_type, record.visibility, _csharp_properties(record)) for record in symbols
        )
        return definitions, frozenset(record.declared for record in records if isinstance(record, Names))
    is_package_object = isinstance(file.path, str) and file.path.endswith("/package.scala")
    visible = frozenset(
        (record.qualified, record.symbol_type, record.visibility)
        for record in symbols
        if not record.scope or record.symbol_type in TYPE_SYMBOLS or is_package_object
    )
    bases, stars = bases_and_stars([record for record in records if isinstance(record, Edge)])
    return visible, bases, stars if bases else (), file.parse == "ok"


def _csharp_properties(symbol: Symbol) -> Hashable:
    return symbol.type_parameters, symbol.is_partial, symbol.is_conditional
