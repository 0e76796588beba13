"""Imports and uses that a change breaks: the project no longer has what they referred to in the base.

An import or use is broken only if two facts are certain. In the base, it refers to a definition or a file (`exact`). In
HEAD, the file to which the same import leads cannot define the name, or there is no file. Whatever remains open is not
broken.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from codebatch.compare.absence.file_selection import FileSelectionDiff
from codebatch.compare.batches import differing_records
from codebatch.compare.conditions import BROKEN_USE, UNRESOLVED_IMPORT, BrokenReference, BrokenReferences
from codebatch.model.analysis.uses import UNKNOWN, Definition, NameUse
from codebatch.model.entry import display_path, path_fields
from codebatch.model.record import Edge, Symbol
from codebatch.model.text.words import WordFinder
from codebatch.operations.comparison.comparison import Comparison
from codebatch.operations.gate.possible_definitions import (
    PossibleDefinitions,
    is_judged,
    reference_facts,
    star_imports,
    visibility_rank,
)
from codebatch.operations.names.symbol_uses import UseSearch
from codebatch.plugins.worker_services import absence_services
from codebatch.query.answers.dependencies import BatchImports, FileImport
from codebatch.query.completeness import tasks_completeness

_JUDGED_CLASSES = frozenset({"text", "test", "example", "migration"})
_PROVIDERS_MAX = 50
"""Maximum number of files that are followed as exporters of the names of another file."""
# A name that is given to the default export, whose own name is unknown.
_DEFAULT = re.compile(rb"\b(import|import\s+type|default\s+as)\s+\Z")
_BLOCK_START = re.compile(rb":\s*(#.*)?\Z")
# Lines whose import or use may fail.
_GUARDED = re.compile(rb"\b(require|import)\s*\(|\?\.|\btypeof\b|\bcfg\b")


def find_broken_references(comparison: Comparison, codes: Collection[str]) -> BrokenReferences:
    """Return the broken references with some codes: `unresolved-import` and `broken-use`.

    Raises TaskNotRun if the base has no imports, or StoreCorrupt.
    """
    old = comparison.old.question.records
    search = _BrokenSearch(comparison)
    unique = {(each.path_bytes, each.line, each.message): each for each in search.iter_broken() if each.code in codes}
    remaining = [each for each in unique.values() if not search.is_suppressed(each)]
    found = [each for each in remaining if search.possible.is_parsed(os.fsdecode(each.path_bytes))]
    comparison.trees.lost.update(("new", path) for path in search.new.missing)
    found.sort(key=lambda each: (each.path_bytes, each.line, each.column))
    base = tasks_completeness(old, old.plan.needed_for("dependencies"))
    not_judged = len(remaining) - len(found) + base.planned - base.done + base.failed
    return BrokenReferences(found, not_judged, bool(comparison.new.question.batch.about.paths))


class _BrokenSearch:
    """The search in the files of HEAD that used a changed file in the base. Paths are text."""

    def __init__(self, comparison: Comparison) -> None:
        self._trees = comparison.trees
        self._old, self.new = UseSearch(comparison.old.question), UseSearch(comparison.new.question)
        self._imports = BatchImports(comparison.old.question.records)
        self.possible = PossibleDefinitions(self._trees.new, self.new)

    def iter_broken(self) -> Iterator[BrokenReference]:
        """Yield the broken references, some of them repeatedly."""
        lost, selection = self._lost_names(), FileSelectionDiff(self._trees)
        self._imports.importers_of([*lost])  # Many files are looked up together.
        for path, names in lost.items():
            if selection.is_excluded_by("new", os.fsencode(path)):
                continue
            providers = self._providers(path)
            for source in sorted({edge.source for each in providers for edge in self._importers(each)}):
                current = os.fsdecode(self._trees.new_path(os.fsencode(source)) or b"")
                file = self.possible.file(current)
                if file is not None and file.class_ in _JUDGED_CLASSES and is_judged(current):
                    if not self.possible.has_path(path):
                        yield from self._find_missing_file(path, source, current)
                    yield from self._find_missing_names(providers, source, current, names)

    def is_suppressed(self, broken: BrokenReference) -> bool:
        """Return whether a comment of codebatch accepts a broken reference."""
        path = broken.path_bytes
        content, contexts = self.new.read(os.fsdecode(path)) or (b"", {})
        suppressed = absence_services().are_suppressed
        return b"codebatch:" in content and suppressed(path, content, contexts, [(broken.line, broken.code)])[0]

    def _lost_names(self) -> Mapping[str, Sequence[str]]:
        """Return the changed files with the names that other files can see only in the base.

        These are names that the file defines or imports at its outermost level.
        """
        old, new = differing_records(self._trees.old, self._trees.new, "symbols", Symbol)
        lost: dict[str, Sequence[str]] = {}
        for path in sorted({*old, *self._trees.differing_files[0]}):
            before, after = _outermost(old.get(path, ())), _outermost(new.get(path, ()))
            shared = sorted(before.keys() & after.keys())
            hidden = [name for name in shared if after[name] < before[name]] + self._unexported(path, shared)
            names = sorted({*(before.keys() - after.keys()), *hidden})
            is_gone = self._trees.new.snapshot.entry(path) is None
            if is_judged(os.fsdecode(path)) and (names or is_gone):
                lost[os.fsdecode(path)] = names
        return lost

    def _unexported(self, path: bytes, names: Sequence[str]) -> list[str]:
        """Return those of some names that a file exports only in the base."""
        text = os.fsdecode(path)
        exports = reference_facts(text).exports
        if not names or exports is None:
            return []
        before, after = (exports.findall((search.read(text) or (b"", {}))[0]) for search in (self._old, self.new))
        can_define = self.new.resolver.can_define
        return [] if before == after else [name for name in names if not can_define(text, name)]

    def _importers(self, path: str) -> Sequence[FileImport]:
        return [edge for edge in self._imports.importers_of([path]).get(path, ()) if is_judged(edge.source)]

    def _providers(self, path: str) -> list[str]:
        """Return a file, and the files that export all its names in the base."""
        providers = [path]
        for provider in providers:
            for source in dict.fromkeys(edge.source for edge in self._importers(provider)):
                if source not in providers and len(providers) < _PROVIDERS_MAX:
                    providers += [source] * any(edge.target == provider for edge in star_imports(self._old, source))
        return providers

    def _find_missing_file(self, path: str, source: str, current: str) -> Iterator[BrokenReference]:
        """Yield the imports of a file that HEAD lacks."""
        imported = {
            edge.imported
            for edge in self._old.links_of(source)
            if edge.target == path and edge.resolution == "exact" and not edge.implicit
        }
        links = [edge for edge in self.new.links_of(current) if not edge.implicit]
        moved = self._trees.new_path(os.fsencode(path))
        change = f"was moved to {display_path(moved)}" if moved is not None else "was removed"
        for edge in self._imports_in(current, imported, links):
            if self.possible.can_lead_elsewhere(path, edge, links):
                continue
            name = re.split(r"[./:]", edge.imported)[-1]
            uses = self.new.resolver.uses_in(current, name) if name.isidentifier() else ()
            place = NameUse(edge.line, 1, edge.line, 1, "import", "", name, UNKNOWN)
            place = next((use for use in uses if use.line == edge.line), place)
            if not self._is_guarded(current, place, is_use=False):
                yield _make(
                    UNRESOLVED_IMPORT, current, place, f"{edge.imported} leads to no file; {_shown(path)} {change}"
                )

    def _imports_in(self, path: str, imported: Collection[str], links: Sequence[Edge]) -> Iterator[Edge]:
        """Yield the links of some imports in a file of HEAD. Members of a module in one line can share a link."""
        yield from (edge for edge in links if edge.imported in imported)
        for record in self.possible.records_of(path, "symbols") if reference_facts(path).own_modules else ():
            target, line = str(record.get("target")), record.get("line")
            if target in imported and all((edge.imported, edge.line) != (target, line) for edge in links):
                module = target.rpartition(".")[0]
                same = (each for each in links if each.line == line)
                shared = next((each for each in same if each.imported.rpartition(".")[0] == module), None)
                if shared is not None:
                    yield msgspec.structs.replace(shared, imported=target)

    def _find_missing_names(
        self, providers: Sequence[str], source: str, current: str, names: Sequence[str]
    ) -> Iterator[BrokenReference]:
        """Yield the imports and uses of names that no file defines any more to which they lead."""
        content = (self.new.read(current) or (b"", {}))[0]
        has_exports = reference_facts(current).exports is not None
        files = {*providers, *(os.fsdecode(self._trees.new_path(os.fsencode(each)) or b"") for each in providers)}
        for name in names:
            if not WordFinder((name,)).is_in(content):
                continue
            before = _certain_uses(self._old.resolver.uses_in(source, name))
            uses = self.new.resolver.uses_in(current, name) if before else []
            is_imported = any(use.role == "import" for use in uses)
            for use in uses:
                was, found = before.get((use.role, use.target)), use.resolved.definitions
                is_hidden = found and all(self.possible.is_hidden(each.path, name, current) for each in found)
                if was is None or not (is_hidden or (use.resolved.certainty == "name" and not found)):
                    continue
                is_use = use.target != name and use.role != "import"
                is_export = has_exports and use.role == "reference" and not is_imported
                if not (is_use or is_export or use.role == "import") or self._is_guarded(current, use, is_use=is_use):
                    continue
                targets = self._targets(current, None if is_use else use.line)
                own = sorted(each for each in targets if each in files or _is_in_package(each, providers[0]))
                needed = own if is_use else targets
                if own and not any(self._can_see(current, each, name) for each in needed):
                    is_defined = any(
                        each.get("qualified") == name for each in self.possible.records_of(own[0], "symbols")
                    )
                    change = f"makes {name} public" if is_hidden else f"{'exports' if is_defined else 'defines'} {name}"
                    message = f"{_shown(own[0])} no longer {change}; it was at {_shown(was.path)}:{was.line}"
                    yield _make(BROKEN_USE if is_use else UNRESOLVED_IMPORT, current, use, message)

    def _can_see(self, source: str, path: str, name: str) -> bool:
        """Return whether a file may define a name that code in another file can see."""
        return self.possible.has_definition(path, name) and not self.possible.is_hidden(path, name, source)

    def _targets(self, path: str, line: int | None) -> set[str]:
        """Return the files to which the imports of a file lead, or only the import of a name at a line.

        The line of an import is that of its module, which languages with exports name last.
        """
        links = [edge for edge in self.new.links_of(path) if not edge.implicit]
        if line is not None:
            is_last = reference_facts(path).exports is not None
            lines = [edge.line for edge in links if (edge.line >= line if is_last else edge.line <= line)]
            start = min(lines, default=0) if is_last else max(lines, default=0)
            links = [edge for edge in links if edge.line == start]
        return {edge.target for edge in links if edge.resolution != "external"}

    def _is_guarded(self, path: str, use: NameUse, *, is_use: bool) -> bool:
        """Return whether the code around a use or import expects that it may fail, or names something else by it."""
        lines = self._trees.file_lines("new", os.fsencode(path))[: use.line]
        facts, indent = reference_facts(path), 1 << 20
        pattern = facts.fallible_block if is_use else facts.optional_block
        if pattern is None:
            own = b"".join(lines[-1:] if facts.module_file is None else lines[-2:])  # An attribute can be above.
            return _GUARDED.search(own) is not None or _DEFAULT.search(own[: use.column - 1]) is not None
        is_end_of_head = False
        for line in reversed(lines):
            text, own_indent = line.strip(), len(line) - len(line.lstrip())
            is_start = indent == 1 << 20 or (_BLOCK_START.search(text) is not None and not text.startswith(b"#"))
            if (is_start and own_indent < indent) or (is_end_of_head and text and own_indent == indent):
                is_end_of_head = text[:1] in (b")", b"]", b"}")  # The head of the block begins above.
                indent = own_indent
                if pattern.match(text):
                    return True
        return False


def _outermost(symbols: Iterable[Symbol]) -> dict[str, int]:
    """Map the names of a file's outermost level to the highest rank of their visibilities."""
    ranks: dict[str, int] = {}
    for each in symbols:
        if each.qualified == each.name and each.symbol_type != "parameter":
            ranks[each.name] = max(ranks.get(each.name, 0), visibility_rank(each.visibility))
    return ranks


def _certain_uses(uses: Iterable[NameUse]) -> Mapping[tuple[str, str], Definition]:
    """Return the only definition of each role and target of some uses, if all these uses certainly refer to it."""
    certain: dict[tuple[str, str], Definition | None] = {}
    for use in uses:
        definitions = use.resolved.definitions
        is_certain = use.resolved.certainty == "exact" and use.role in ("call", "import", "reference")
        found = (
            definitions[0] if is_certain and definitions and definitions[0].qualified == definitions[0].name else None
        )
        key = use.role, use.target
        certain[key] = found if certain.get(key, found) == found else None
    return {key: found for key, found in certain.items() if found is not None}


def _is_in_package(path: str, other: str) -> bool:
    """Return whether the files at two paths define names of the same package."""
    return reference_facts(path).shares_directory and os.path.dirname(path) == os.path.dirname(other)


def _shown(path: str) -> str:
    return display_path(os.fsencode(path))


def _make(code: str, path: str, place: NameUse, message: str) -> BrokenReference:
    text, encoded = path_fields(os.fsencode(path))
    return BrokenReference(
        path=text,
        path_b64=encoded,
        line=place.line,
        column=place.column,
        end_line=place.end_line,
        end_column=place.end_column,
        severity="error",
        code=code,
        message=message,
        tool="codebatch",
    )
