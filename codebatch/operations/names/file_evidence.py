"""Evidence that a file is used although no import of it is known.

Other files can name it by its path or module name, import a module of this name that was not found, or use a name that
only this file defines.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from codebatch.errors import ObjectMissing
from codebatch.model.entry import Entry, display_path
from codebatch.model.text.quantities import count_text
from codebatch.operations.names.symbol_use import SymbolUse
from codebatch.operations.names.symbol_uses import UseSearch
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.plugins.worker_services import fact_services
from codebatch.query.answers.dependencies import DEPENDENCIES_TASK, BatchImports
from codebatch.query.answers.path_mentions import file_names, find_mentions, mentioned_words, names_file
from codebatch.query.answers.search_coverage import Evidence, unsearched_evidence
from codebatch.query.answers.unparsed_files import (
    REASON_TEXTS,
    DoubtfulFile,
    doubtful_file,
    find_unparsed_files,
)
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.filters import RecordFilter, path_bytes
from codebatch.query.sources.parsed_files import ParsedFile

_PLACES_SHOWN = 10
_DEFINED_NAMES_MAX = 500
_IMPORTERS_READ_MAX = 2_000
_NAMESPACE_TYPES = frozenset({"module", "namespace"})
_IGNORED_TYPES = _NAMESPACE_TYPES | {"import"}
_PACKAGE_FILES = frozenset({"__init__.py", "__init__.pyi"})
_IGNORED_CLASSES = frozenset({"generated", "vendored", "minified"})
"""Classes of files that list all files of a project, or belong to another one."""


class FileEvidence:
    """The search for evidence that a file is used. `is_wanted` restricts the files by path."""

    def __init__(self, question: BatchQuery, path: str, is_wanted: Callable[[bytes], bool]) -> None:
        self._question = question
        self._records = question.records
        self._path = path
        self._is_wanted = is_wanted
        base = os.path.basename(path.encode())
        is_unique = sum(os.path.basename(entry.path) == base for entry in self._records.items) == 1
        self._names = file_names(path, is_unique=is_unique)

    @property
    def words(self) -> tuple[str, ...]:
        """The words with which files that are not parsed may name the file or its definitions."""
        *_, word = mentioned_words(self._names)
        defined = self._defined_names[:_DEFINED_NAMES_MAX] if self._has_implicit_imports else ()
        return (word.strip(".") or self._names.base, *defined)

    def find(self) -> list[Evidence]:
        """Return all evidence. Raises StoreCorrupt."""
        return [
            *self.find_mentions(),
            *self._find_unresolved_imports(),
            *self._find_package_imports(),
            *self._find_uses(),
            *unsearched_evidence(
                max(len(self._candidates) - _IMPORTERS_READ_MAX, 0),
                f"more file with {self._names.stem}",
                f"more files with {self._names.stem}",
            ),
            *unsearched_evidence(
                max(len(self._defined_names) - _DEFINED_NAMES_MAX, 0), "more definition", "more definitions"
            ),
        ]

    def find_mentions(self) -> list[Evidence]:
        """Return the evidence of the parsed files that name the file. Raises StoreCorrupt."""
        unparsed = {entry.path for entry, _, _ in find_unparsed_files(self._records, self._candidates)}
        mentions = [
            (entry.path, line)
            for _, entry in self._candidates
            if entry.path not in unparsed
            for line in self._lines_with_mention(entry)
        ]
        if not mentions:
            return []
        text = count_text(len(mentions), f"line names {self._names.base}", f"lines name {self._names.base}")
        places = tuple(f"{display_path(path)}:{line}" for path, line in mentions[:_PLACES_SHOWN])
        return [Evidence(kind="string", count=len(mentions), text=text, places=places)]

    def unparsed_mentions(self) -> tuple[DoubtfulFile, ...]:
        """Return the files that were not parsed completely and name the file. Raises StoreCorrupt."""
        return tuple(
            doubtful_file(entry.path, reason, detail, lines)
            for entry, reason, detail in find_unparsed_files(self._records, self._candidates)
            if reason not in ("document", "partial", "errors") and (lines := len(self._lines_with_mention(entry)))
        )

    def unparsed_text(self, files: tuple[DoubtfulFile, ...]) -> str:
        """Return a text about files that `unparsed_mentions` returned."""
        counts = Counter(f"{REASON_TEXTS[file.reason]}{f' ({file.detail})' if file.detail else ''}" for file in files)
        texts = [f"{count_text(count, 'file')} {reason}" for reason, count in counts.items()]
        verb = "names" if len(files) == 1 else "name"
        return f"{' and '.join(texts)} {verb} {self._names.base}"

    @cached_property
    def _has_implicit_imports(self) -> bool:
        file = self._files.get(self._path.encode())
        return file is not None and fact_services().language_facts(file.lang).has_implicit_imports

    @cached_property
    def _files(self) -> Mapping[bytes, ParsedFile]:
        return {file.path_bytes: file for file in self._records.files}

    @cached_property
    def _candidates(self) -> list[tuple[int, Entry]]:
        """The other files that may have a name of the file, in path order."""
        found: dict[int, Entry] = {}
        for word in mentioned_words(self._names):
            found.update(self._records.items_with_name(word))
        own = self._path.encode()
        return sorted(
            (item, entry) for item, entry in found.items() if entry.path != own and self._is_wanted(entry.path)
        )

    def _lines_with_mention(self, entry: Entry) -> list[int]:
        file = self._files.get(entry.path)
        if file is not None and file.class_ in _IGNORED_CLASSES:
            return []
        try:
            content = self._records.read_object(entry)
        except ObjectMissing:
            return []
        language = "" if file is None else file.lang
        return list(find_mentions(content, self._names, os.fsdecode(entry.path), language))

    def _find_unresolved_imports(self) -> list[Evidence]:
        """Return the evidence of imports that lead to no file, but name a module like the file."""
        places = [
            f"{display_path(entry.path)}:{edge['line']}: {edge['target']}"
            for item, entry in self._candidates[:_IMPORTERS_READ_MAX]
            for edge in self._records.item_records(DEPENDENCIES_TASK, item) or ()
            if edge["kind"] == "edge" and edge["resolution"] == "external" and self._may_import(edge, entry.path)
        ]
        if not places:
            return []
        text = count_text(
            len(places), "import of a missing module may refer to it", "imports of missing modules may refer to it"
        )
        return [Evidence(kind="unresolved", count=len(places), text=text, places=tuple(places[:_PLACES_SHOWN]))]

    def _find_package_imports(self) -> list[Evidence]:
        """Return the evidence of imports that run the file before a module of its package in Python."""
        directory, _, base = self._path.rpartition("/")
        if base not in _PACKAGE_FILES or DEPENDENCIES_TASK not in self._records.task_names:
            return []
        inside = f"{directory}/"
        modules = [path for path in map(os.fsdecode, self._files) if path.startswith(inside)]
        edges = [edge for edges in BatchImports(self._records).importers_of(modules).values() for edge in edges]
        sources = {edge.source for edge in edges if edge.target.startswith(inside)}
        places = sorted(
            source for source in sources if not source.startswith(inside) and self._is_wanted(source.encode())
        )
        if not directory or not places:
            return []
        text = count_text(len(places), "file imports from its package", "files import from its package")
        return [Evidence(kind="implicit", count=len(places), text=text, places=tuple(places[:_PLACES_SHOWN]))]

    def _may_import(self, edge: JsonRecord, source: bytes) -> bool:
        target = str(edge["target"])
        return names_file(target.strip("."), self._names, os.fsdecode(source).split("/")[:-1])

    def _find_uses(self) -> list[Evidence]:
        """Return the evidence of uses in other files of a name that only this file defines."""
        search = UseSearch(self._question)
        own = self._path.encode()
        for name in self._own_names():
            found = {record["qualified"] for record in self._definitions(name)}
            symbols = {(self._path, str(qualified)) for qualified in found}
            uses = [
                use
                for use in search.uses(name, symbols, 1)
                if use.path != own and self._is_wanted(use.path) and self._is_use(use)
            ]
            if uses:
                subject = f"use of {name}, which it defines", f"uses of {name}, which it defines"
                command = shlex.join(["codebatch", "references", name])
                return [
                    Evidence(kind="reference", count=len(uses), text=count_text(len(uses), *subject), command=command)
                ]
        return []

    def _is_use(self, use: SymbolUse) -> bool:
        """Return whether a use shows that its file depends on this one. A member of an unknown object does not."""
        if use.use.role not in ("call", "reference", "import"):
            return False
        is_member = use.use.target != use.use.target.rpartition(".")[2]
        return use.certainty != "name" or not is_member or self._has_implicit_imports

    def _own_names(self) -> Iterator[str]:
        """Yield the first names that the file defines, that no other file defines, and that another file contains."""
        own = self._path.encode()
        for name in self._defined_names[:_DEFINED_NAMES_MAX]:
            files = {path_bytes(record) for record in self._definitions(name)}
            if files == {own} and any(entry.path != own for _, entry in self._records.items_with_name(name)):
                yield name

    def _definitions(self, name: str) -> list[JsonRecord]:
        known = RecordFilter(kinds=("symbol",), names=(name,), where="symbol_type != 'import'")
        return [
            record
            for record in self._records.iter_records("symbols", known, is_auxiliary=True)
            if record["name"] == name
        ]

    @cached_property
    def _defined_names(self) -> tuple[str, ...]:
        """Return names that the file defines, those of its outermost scope first."""
        (item,) = self._records.find_items([self._path.encode()]).values()
        records = self._records.item_records("symbols", item) if "symbols" in self._records.task_names else ()
        symbols = [record for record in records or () if record["kind"] == "symbol"]
        namespaces = {symbol["qualified"] for symbol in symbols if symbol["symbol_type"] in _NAMESPACE_TYPES}
        named = [symbol for symbol in symbols if symbol["symbol_type"] not in _IGNORED_TYPES]
        named.sort(key=lambda symbol: symbol.get("scope", "") not in {"", *namespaces})
        return tuple(dict.fromkeys(str(symbol["name"]) for symbol in named))
