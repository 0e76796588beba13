"""Query for the uses of a symbol: occurrences of its name, each resolved to definitions.

Only files that contain the name are parsed. A use that certainly refers to another definition, or to code outside the
project, is left out. A use whose definition is unknown is kept with the certainty `name`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from codebatch.errors import InvalidInput, ObjectMissing
from codebatch.model.analysis.uses import Certainty, NameUse
from codebatch.model.entry import Entry, display_path, path_row
from codebatch.model.record import Edge
from codebatch.operations import ignore_note
from codebatch.operations.queries.batch_query import Answer, BatchQuery, try_find_item
from codebatch.operations.queries.definitions import ends_with_name, find_definitions_only, last_name_component
from codebatch.operations.queries.references import SearchProgress, ignore_progress
from codebatch.plugins.worker_services import use_services
from codebatch.query.answers.dependencies import BatchImports
from codebatch.query.completeness import Completeness, tasks_completeness
from codebatch.query.fields import JsonRecord, as_typed_record
from codebatch.query.filters.filters import path_bytes
from codebatch.query.filters.paths import PathFilter, PathPatterns
from codebatch.query.sources.records import BatchRecords

SymbolKey = tuple[str, str]
"""A symbol: the path of its file and its qualified name."""

_DEPENDENCIES_TASK = "dependencies"
_ALIASES_MAX = 20
"""Maximum number of other names of a symbol that are searched."""


class SymbolUse(msgspec.Struct, frozen=True):
    """A use of a symbol. `candidates` is the number of definitions to which it can refer; 1 if it is resolved."""

    path: bytes
    use: NameUse
    certainty: Certainty
    candidates: int

    @property
    def row(self) -> JsonRecord:
        """The use as a dictionary."""
        place: JsonRecord = {"line": self.use.line, "column": self.use.column}
        end: JsonRecord = {"end_line": self.use.end_line, "end_column": self.use.end_column}
        kind: JsonRecord = {"role": self.use.role, "scope": self.use.scope, "target": self.use.target}
        return {
            **path_row(self.path), **place, **end, **kind, "resolution": self.certainty, "candidates": self.candidates
        }  # fmt: skip


class SymbolUses(msgspec.Struct, frozen=True, kw_only=True):
    """The definitions of a symbol, and its uses by path and position.

    If no file of the batch defines the symbol, `other_chains` is the number of uses of the last part of its name with
    other parts before it. They are not in `uses`.
    """

    definitions: list[JsonRecord]
    uses: list[SymbolUse]
    other_chains: int = 0


def find_symbol_uses(
    question: BatchQuery,
    name: str,
    *,
    definition: str = "",
    is_exact: bool = False,
    roles: Collection[str] = (),
    path: PathPatterns = "",
    progress: SearchProgress = ignore_progress,
) -> Answer[SymbolUses]:
    """Return the uses of the symbols with a name, which may be qualified.

    `definition` selects one symbol by its place, as `path:line` or `path`. With `is_exact`, only uses that are certain
    are returned. Raises InvalidInput or StoreCorrupt.
    """
    all_definitions, _ = find_definitions_only(question, name)
    definitions = definitions_at(question.records, name, all_definitions, definition)
    search = UseSearch(question, progress)
    last = last_name_component(name)
    candidates = len(symbol_keys(all_definitions))
    paths = PathFilter(path)
    found = search.uses(last, symbol_keys(definitions), candidates) if definitions else search.foreign_uses(last)
    uses = [
        use
        for use in found
        if paths.matches(use.path)
        and (not roles or use.use.role in roles)
        and (not is_exact or use.certainty == "exact")
    ]
    other_chains = 0
    if not definitions:
        matching = [use for use in uses if ends_with_name(use.use.target, name)]
        uses, other_chains = matching, len(uses) - len(matching)
    uses.sort(key=lambda use: (use.path, use.use.line, use.use.column))
    result = SymbolUses(definitions=definitions, uses=uses, other_chains=other_chains)
    return Answer(question=question, result=result, completeness=search.completeness)


def definitions_at(records: BatchRecords, name: str, definitions: Sequence[JsonRecord], place: str) -> list[JsonRecord]:
    """Return the definitions of a name at a place `path:line` or `path`. Without a place, return all.

    The path is relative to the current directory or to the project, as in `find_item`. Raises InvalidInput if there are
    none at the place.
    """
    if not place:
        return list(definitions)
    path, _, line = place.rpartition(":") if re.search(r":\d+\Z", place) else (place, "", "")
    file = try_find_item(records, path, ignore_note)
    chosen = [
        definition
        for definition in definitions
        if file is not None and path_bytes(definition) == file[0] and (not line or definition["line"] == int(line))
    ]
    if not chosen:
        hint = f"list its definitions with: codebatch def {name}"
        raise InvalidInput(f"{name} is not defined at {place}", hint=hint)
    return chosen


def symbol_keys(definitions: Sequence[JsonRecord]) -> frozenset[SymbolKey]:
    """Return the keys of the symbols that `symbol` records define."""
    return frozenset((os.fsdecode(path_bytes(record)), str(record["qualified"])) for record in definitions)


class UseSearch:
    """A search for the uses of symbols in the files of a batch. Facts about files are kept between searches.

    `missing` has the paths of files whose content is missing.
    """

    def __init__(self, question: BatchQuery, progress: SearchProgress = ignore_progress) -> None:
        self.missing: list[bytes] = []
        self._question = question
        self._records: BatchRecords = question.records
        self._progress = progress
        self._items: dict[str, int | None] = {}
        self._paths_with_name: dict[str, list[str]] = {}
        self._uses = use_services().project_uses(self._read, self._links_of, self._files_with_name)

    @property
    def completeness(self) -> Completeness:
        """The completeness of an answer about uses: of the definitions, the links between files, and the contents."""
        records = self._records
        needed = records.plan.needed_for(_DEPENDENCIES_TASK if _DEPENDENCIES_TASK in records.task_names else "symbols")
        return msgspec.structs.replace(tasks_completeness(records, needed), lost=len(self.missing))

    def uses(self, name: str, symbols: Collection[SymbolKey], candidates: int) -> Iterator[SymbolUse]:
        """Yield the uses of some symbols with a name, also under other names that imports give to them.

        `candidates` is the number of symbols with the name.
        """
        pending = list(dict.fromkeys((name, *self._names_in_importers(symbols))))[:_ALIASES_MAX]
        known = set(pending)
        while pending:
            alias = pending.pop(0)
            for path, use in self._uses_of_name(alias):
                found = _classify(path, use, symbols, 0 if alias != name else candidates)
                if found is None:
                    continue
                yield found
                if use.role == "import" and found.certainty in ("exact", "inferred"):
                    for other in self._uses.aliases_in(os.fsdecode(path), alias, use.line):
                        if other not in known and len(known) < _ALIASES_MAX:
                            known.add(other)
                            pending.append(other)

    def first_exact_use(self, path: bytes, name: str, symbol: SymbolKey) -> int | None:
        """Return the line of the first use in a file that certainly refers to a symbol, or None if there is none."""
        for use in self._uses.uses_in(os.fsdecode(path), name):
            found = _classify(path, use, {symbol}, 0)
            if found is not None and found.certainty == "exact" and use.role != "definition":
                return use.line
        return None

    def _names_in_importers(self, symbols: Collection[SymbolKey]) -> Iterator[str]:
        """Yield the names by which files import symbols that have another name outside of their own file."""
        renamed = [path for path, qualified in symbols if self._uses.has_other_names(path, qualified)]
        if renamed and _DEPENDENCIES_TASK in self._records.task_names:
            importers = BatchImports(self._records).importers_of(renamed)
            for path in sorted({edge.source for target in renamed for edge in importers.get(target, ())}):
                yield from self._uses.imported_names(path, symbols)

    def foreign_uses(self, name: str) -> Iterator[SymbolUse]:
        """Yield the uses of a name that do not refer to definitions in the batch."""
        for path, use in self._uses_of_name(name):
            if use.resolved.certainty not in ("exact", "inferred"):
                yield SymbolUse(path, use, use.resolved.certainty, len(use.resolved.definitions))

    def _uses_of_name(self, name: str) -> Iterator[tuple[bytes, NameUse]]:
        items = list(self._records.items_with_name(name))
        for done, (item, entry) in enumerate(items):
            self._progress(done, len(items))
            path = os.fsdecode(entry.path)
            self._items[path] = item
            for use in self._uses.uses_in(path, name):
                yield entry.path, use

    def _files_with_name(self, name: str) -> Collection[str]:
        if name not in self._paths_with_name:
            items = self._records.items_with_name(name)
            self._paths_with_name[name] = [os.fsdecode(entry.path) for _, entry in items]
        return self._paths_with_name[name]

    def _item(self, path: str) -> int | None:
        if path not in self._items:
            encoded = os.fsencode(path)
            self._items[path] = self._records.find_items([encoded]).get(encoded)
        return self._items[path]

    def _entry(self, item: int) -> Entry:
        if self._records.batch.about.paths:
            return self._records.items[item]
        (entry,) = self._records.snapshot.items_between(item, item + 1)
        return entry

    def _content(self, entry: Entry) -> bytes | None:
        try:
            return self._records.read_object(entry)
        except ObjectMissing as error:
            if entry.path not in self.missing:
                self.missing.append(entry.path)
                self._question.note(f"{display_path(entry.path)} skipped: {error.message}")
            return None

    def _read(self, path: str) -> tuple[bytes, Mapping[str, bytes]] | None:
        item = self._item(path)
        content = None if item is None else self._content(self._entry(item))
        return None if content is None or item is None else (content, self._records.plan.item_contexts(item))

    def _links_of(self, path: str) -> list[Edge]:
        item = self._item(path)
        if item is None or _DEPENDENCIES_TASK not in self._records.task_names:
            return []
        records = self._records.item_records(_DEPENDENCIES_TASK, item) or ()
        return [as_typed_record(record, Edge) for record in records if record["kind"] == "edge"]


def _classify(path: bytes, use: NameUse, symbols: Collection[SymbolKey], candidates: int) -> SymbolUse | None:
    """Return a use of one of the symbols, or None if the use refers to something else.

    A use that is not resolved can refer to any of `candidates` symbols. If this is 0, it is taken to refer to others.
    """
    resolved = use.resolved
    places = {(found.path, found.qualified) for found in resolved.definitions}
    if not places.isdisjoint(symbols):
        return SymbolUse(path, use, resolved.certainty, len(places))
    if resolved.certainty != "name" or places or not candidates or use.role == "definition":
        return None
    return SymbolUse(path, use, "name", candidates)
