"""The implicit imports of a project: edges for the names that files use without an import."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import itemgetter

from codebatch.model.entry import path_fields
from codebatch.model.record import Edge, File, Names, Record, Symbol
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
        without_symbols = dict(self._languages)
        text = _common_text(rule.definitions_text for rule in self._rules.values())
        for path, records in self._read(project, "symbol", text, self._rules):
            language, symbols = without_symbols.pop(path), [one for one in records if isinstance(one, Symbol)]
            self._rules[language].add_definitions(path, language, symbols, is_partial=files[path].parse != "ok")
        for path, language in without_symbols.items():
            self._rules[language].add_definitions(path, language, (), is_partial=files[path].parse != "ok")
        with_relations = {name: rule for name, rule in self._rules.items() if rule.relations_text}
        text = _common_text(rule.relations_text for rule in with_relations.values())
        for path, records in self._read(project, "edge", text, with_relations):
            edges = [record for record in records if isinstance(record, Edge)]
            with_relations[self._languages[path]].add_relations(path, edges)
        with_declarations = {name: rule for name, rule in self._rules.items() if rule.needs_declarations}
        for path, records in self._read(project, "names", '"declared":', with_declarations):
            for record in records:
                if isinstance(record, Names):
                    with_declarations[self._languages[path]].add_declarations(path, record.declared)

    def _read(
        self, project: Project, kind: str, text: str, languages: Collection[str]
    ) -> Iterator[tuple[str, Sequence[Record]]]:
        """Yield the records of a kind whose lines contain a text, by file, for the files in some languages."""
        for entry, records in project.records("symbols", kind, holding=text) if languages else ():
            path = path_fields(entry.path)[0]
            if isinstance(path, str) and self._languages.get(path) in languages:
                yield path, records

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


def _common_text(texts: Iterable[str]) -> str:
    """Return the text that is common to some rules, or an empty text if they need different ones."""
    unique = set(texts)
    return unique.pop() if len(unique) == 1 else ""
