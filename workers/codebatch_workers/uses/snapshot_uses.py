"""All uses of a name in a file, each resolved to definitions."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from codebatch.model.analysis.uses import UNKNOWN, NameUse, Resolved, SourceReader
from codebatch.model.record import Edge
from codebatch_workers.symbols.file_exports import ALL_NAMES, DEFAULT_NAME, WHOLE_MODULE, ModuleExport
from codebatch_workers.symbols.language_symbols import LanguageSymbols
from codebatch_workers.symbols.marks import find_marks
from codebatch_workers.symbols.occurrences.references import find_occurrences, may_contain_name
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.uses.arguments import can_override, select_callable
from codebatch_workers.uses.chains import name_components
from codebatch_workers.uses.file_facts import SourceFacts
from codebatch_workers.uses.language_resolver import LanguageUses, UseContext
from codebatch_workers.uses.lookup_budget import LookupBudget
from codebatch_workers.uses.resolver import UseResolver


def find_uses(resolver: UseResolver, facts: SourceFacts, name: str) -> Iterator[NameUse]:
    """Yield the occurrences of a name in a file, in text order."""
    for start, end, role, scope in find_occurrences(facts.file, name):
        place = (*facts.file.position(start), *facts.file.position(end))
        if role == "string":
            yield NameUse(*place, role, scope, name, UNKNOWN)
            continue
        resolved = _resolve(resolver, facts, name, (start, end), role, scope)
        chain = facts.chain_at(start, end)
        written = b"".join(facts.file.utf8[chain.start : end].split()).decode("utf-8", "replace")
        target = f".{written}" if chain.is_open else written
        meaning = facts.meaning(chain, start) if role == "reference" and resolved is UNKNOWN else ""
        yield NameUse(*place, role, scope, target, resolved, meaning)


def _resolve(
    resolver: UseResolver, facts: SourceFacts, name: str, span: tuple[int, int], role: str, scope: str
) -> Resolved:
    line, column = facts.file.position(span[0])
    if role == "definition":
        symbols = [symbol for symbol in facts.all_symbols if (symbol.line, symbol.column) == (line, column)]
        return Resolved("exact", tuple(map(facts.definition, symbols))) if symbols else UNKNOWN
    separator = facts.rules.namespace_separator
    if separator and facts.file.utf8.startswith(separator, span[1]):
        return UNKNOWN  # A namespace can have the name of a class in it.
    if role == "import":
        return resolver.resolve_import(facts, name, line)
    node = facts.name_at(*span)
    return UNKNOWN if node is None or facts.is_label(node) else resolver.resolve(facts, node, scope)


class SnapshotUses:
    """Resolves the uses of names in the files of one snapshot. The facts about a file are computed once."""

    def __init__(
        self,
        read: SourceReader,
        links_of: Callable[[str], Sequence[Edge]],
        files_with_name: Callable[[str], Collection[str]],
        uses_of: Callable[[str], LanguageUses | None],
    ) -> None:
        """`read` returns the content and contexts of a file. `links_of` returns the `depends` edges of a file.

        `files_with_name` returns the paths of all files that contain a name, and possibly of others. `uses_of` returns
        how the uses of names are resolved in a language.
        """
        self._read = read
        self._uses_of = uses_of
        self._links_of = links_of
        self._facts: dict[str, SourceFacts | None] = {}
        self._budget = LookupBudget()
        self._resolver = UseResolver(UseContext(self._facts_of, files_with_name), self._budget, uses_of)

    def uses_in(self, path: str, name: str) -> list[NameUse]:
        """Return the occurrences of a name in a file, in text order, each resolved to definitions."""
        if path not in self._facts:
            source = self._read(path)
            # The index can name files without the name.
            if source is None or not may_contain_name(name, os.fsencode(path), source[0]):
                return []
        facts = self._facts_of(path)
        return [] if facts is None else list(find_uses(self._resolver, facts, name))

    def language_of(self, path: str) -> str:
        """Return the language of a file, or an empty text if its content is missing."""
        facts = self._facts_of(path)
        return "" if facts is None else facts.language

    def marks_at(self, path: str, line: int, column: int) -> list[str]:
        """Return the decorators, annotations and attributes with which other code can call a definition."""
        facts = self._facts_of(path)
        return [] if facts is None else list(find_marks(facts.file, facts.offset_at(line, column)))

    def select_callable(
        self, path: str, place: tuple[int, int], definitions: Sequence[tuple[str, int, int]]
    ) -> list[tuple[str, int, int]]:
        """Return the definitions that a call can mean by its arguments. A place is a line and a column.

        A definition is excluded if compilers check the number of arguments, or if another one fits.
        """
        facts = self._facts_of(path)
        if facts is None:
            return [*definitions]
        return select_callable(facts, facts.offset_at(*place), definitions, self._facts_of)

    def can_override(self, method: tuple[str, int, int], base: tuple[str, int, int]) -> bool:
        """Return whether a method can override another one, by their modifiers and parameters.

        A method is given by its path, line and column.
        """
        facts, base_facts = self._facts_of(method[0]), self._facts_of(base[0])
        if facts is None or base_facts is None:
            return True
        return can_override(facts, facts.offset_at(*method[1:]), base_facts, base_facts.offset_at(*base[1:]))

    def aliases_in(self, path: str, name: str, line: int) -> list[str]:
        """Return the other local names that an import at a line gives to a name."""
        facts = self._facts_of(path)
        if facts is None:
            return []
        return [
            imported.local
            for imported in facts.imports
            if imported.line == line
            and imported.local not in ("", name)
            and name in (imported.member, name_components(imported.target)[-1])
        ]

    def exported_names(self, path: str, name: str) -> list[str]:
        """Return the other names by which a file exports one of its names, or a name of another module.

        The name is empty if importing files choose it: the default export, or the value of the module.
        """
        facts = self._facts_of(path)
        exports = () if facts is None else facts.exports
        exported = [export.name for export in exports if name in (export.local, export.member)]
        return [_chosen_name(other) for other in exported if other not in (name, ALL_NAMES)]

    def can_define(self, path: str, name: str) -> bool:
        """Return whether other files may import a name from a file: the file exports it or, in languages without
        exports and in declaration files, binds it at its outermost level. Return True if this is unknown."""
        facts = self._facts_of(path)
        if facts is None or facts.rules.shares_packages:
            return facts is None or name in facts.symbols
        if any(each.name in (name, WHOLE_MODULE) or each == ModuleExport(ALL_NAMES) for each in facts.exports):
            return True
        declaration_endings = LanguageSymbols.of(facts.language).load_time.declaration_endings
        if facts.has_exports and not facts.file.path.endswith(declaration_endings):
            return False
        scopes = facts.bindings.scopes if facts.bindings is not None else ()
        return not scopes or name.encode() in scopes[0].names

    def imported_names(self, path: str, symbols: Collection[tuple[str, str]]) -> list[str]:
        """Return the names by which a file imports or exports one of some symbols of other files.

        A symbol is given by its path and qualified name. An exported name is empty as in `exported_names`.
        """
        facts = self._facts_of(path)
        if facts is None:
            return []
        imports = [(name.local, self._resolver.resolve_import(facts, name.local, name.line)) for name in facts.imports]
        exports = [(_chosen_name(name.name), self._resolver.resolve_export(facts, name)) for name in facts.exports]
        return [
            name
            for name, resolved in (*imports, *exports)
            if any((found.path, found.qualified) in symbols for found in resolved.definitions)
        ]

    def _facts_of(self, path: str) -> SourceFacts | None:
        if path not in self._facts:
            source = self._read(path)
            self._facts[path] = None if source is None else self._make_facts(path, *source)
        return self._facts[path]

    def _make_facts(self, path: str, content: bytes, contexts: Mapping[str, bytes]) -> SourceFacts:
        file = SourceFile(os.fsencode(path), content, executable=False, contexts=contexts)
        uses = self._uses_of(file.language)
        return SourceFacts(path, file, self._links_of(path), self._budget, None if uses is None else uses.rules)


def _chosen_name(exported: str) -> str:
    return "" if exported in (DEFAULT_NAME, WHOLE_MODULE) else exported
