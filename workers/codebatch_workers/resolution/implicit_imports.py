"""The implicit imports of a project: edges for the names that files use without an import."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import itemgetter

from codebatch.model.entry import path_fields
from codebatch.model.record import Edge, File, Names, Symbol
from codebatch_workers.api.project import Project
from codebatch_workers.resolution.implicit_rule import ImplicitImportRule
from codebatch_workers.resolution.import_rule import ImportContext, PackageDefinitions
from codebatch_workers.resolution.tree import ResolvedImport


class ImplicitImports:
    """The definitions of all files in languages with implicit imports, and the edges that lead to them."""

    def __init__(
        self,
        project: Project,
        files: Mapping[str, File],
        context: ImportContext,
        rule_of: Callable[[str], type[ImplicitImportRule] | None],
    ) -> None:
        """Read the definitions. `files` has the `file` record of each file of the batch, by path.

        `rule_of` returns the rule of a language, or None.
        """
        languages = {language: rule_of(language) for language in {file.lang for file in files.values()}}
        self._languages = {path: file.lang for path, file in files.items() if languages[file.lang] is not None}
        self._rules = {language: context.shared(rule) for language, rule in languages.items() if rule is not None}
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
        with_relations = {name: rule for name, rule in self._rules.items() if rule.relations_text}
        texts = {rule.relations_text for rule in with_relations.values()}
        text = texts.pop() if len(texts) == 1 else ""
        for entry, records in project.records("symbols", "edge", holding=text) if with_relations else ():
            path = path_fields(entry.path)[0]
            language = self._languages.get(path) if isinstance(path, str) else None
            if isinstance(path, str) and language in with_relations:
                edges = [record for record in records if isinstance(record, Edge)]
                with_relations[language].add_relations(path, edges)

        self._add_declarations(project)

    @property
    def definitions(self) -> Mapping[str, PackageDefinitions]:
        """The definitions of each file that imports can name, by path."""
        return {path: defined for rule in self._rules.values() for path, defined in rule.definitions.items()}

    def imports_modules(self, language: str) -> bool:
        """Return whether imports of a language name modules, which have no files of their own."""
        return language in self._rules and self._rules[language].imports_modules

    def resolve_import(self, path: str, target: str) -> ResolvedImport | None:
        """Resolve an import that names a definition. Return None if the language's imports name files instead."""
        language = self._languages.get(path)
        return None if language is None else self._rules[language].resolve_import(path, target)

    def select_used(self, path: str, target: str, paths: Sequence[str], names: Names | None) -> Sequence[str]:
        """Return the files of an import on which the file `path` depends, by the names that it uses."""
        language = self._languages.get(path)
        if names is None or language is None or len(paths) < 2:
            return paths
        return self._rules[language].select_used(path, target, paths, names)

    def _add_declarations(self, project: Project) -> None:
        rules = {language: rule for language, rule in self._rules.items() if rule.needs_declarations}
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
        local = frozenset(names.local)
        scopes = names.scopes or repeat("", len(names.names))
        for name, line, scope in sorted(zip(names.names, names.lines, scopes, strict=True), key=itemgetter(1)):
            resolved = rule.resolve(path, language, name, scope, imports)
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
