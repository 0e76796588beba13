"""Evidence that a name or a file which a change removed may still exist for the code that imports it.

A file can define a name that occurs in it, unless all occurrences only use the name. It can define any name if it sets
its names at run time, or if it exports all names of a file for which this is true.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property

from codebatch.model.analysis.language_facts import ReferenceFacts
from codebatch.model.record import Edge, File, Visibility
from codebatch.model.text.words import WordFinder
from codebatch.operations.names.symbol_uses import UseSearch
from codebatch.plugins.worker_services import fact_services
from codebatch.query.fields import JsonRecord, as_typed_record
from codebatch.query.sources.records import BatchRecords

_PACKAGE_FILE = re.compile(r"(.+)/(__init__\.pyi?|index\.\w+|mod\.rs)\Z")
# Files that name the packages on which a project depends.
_MANIFEST = re.compile(
    r"(.*/)?(package\.json|go\.mod|pyproject\.toml|setup\.(py|cfg)|Pipfile|tox\.ini|noxfile\.py|[\w-]*(requirements|"
    r"constraints|deps|environment)[^/]*|requirements/[^/]*)\Z"
)
_OTHER_LANGUAGE = ReferenceFacts()
_VISIBILITIES: tuple[Visibility, ...] = ("private", "internal", "protected", "public")


def visibility_rank(visibility: object) -> int:
    """Return a number that is higher the more code can see a symbol of this visibility."""
    return _VISIBILITIES.index(visibility) if visibility in _VISIBILITIES else len(_VISIBILITIES) - 1


def is_judged(path: str) -> bool:
    """Return whether references to and in a file are judged, by the language that its path shows."""
    return fact_services().path_facts(os.fsencode(path)).references is not None


def reference_facts(path: str) -> ReferenceFacts:
    """Return the facts about references in a file."""
    return fact_services().path_facts(os.fsencode(path)).references or _OTHER_LANGUAGE


def star_imports(search: UseSearch, path: str) -> Iterator[Edge]:
    """Yield the imports of a file that make all names of another file available as its own."""
    lines: Sequence[bytes] = ()
    star_export = reference_facts(path).star_export
    for edge in search.links_of(path):
        if star_export is not None:
            lines = lines or (search.read(path) or (b"", {}))[0].split(b"\n")
            if edge.line <= len(lines) and star_export.match(lines[edge.line - 1]):
                yield edge
        elif edge.imported.endswith("*"):
            yield edge


class PossibleDefinitions:
    """The definitions and files that HEAD may have. Paths are text."""

    def __init__(self, records: BatchRecords, search: UseSearch) -> None:
        self._records = records
        self._snapshot = records.snapshot
        self._search = search

    def has_definition(self, path: str, name: str) -> bool:
        """Return whether a file may define a name, or export it from another file."""
        files = [path]
        for file in files:
            content = (self._search.read(file) or (None, {}))[0]
            dynamic = reference_facts(file).dynamic_names
            if content is None or (dynamic and dynamic.search(content)) or self._may_bind(file, name, content):
                return True
            if self._has_beginning(f"{os.path.dirname(file)}/{name}".lstrip("/"), "./"):
                return True  # It is a module in a package.
            for edge in star_imports(self._search, file):
                if edge.resolution == "external":
                    return True
                files += [edge.target] * (edge.target not in files)
        return False

    def _may_bind(self, path: str, name: str, content: bytes) -> bool:
        """Return whether an occurrence of a name in a file may define it for other files."""
        if not WordFinder((name,)).is_in(content):
            return False
        return not self.is_parsed(path) or self._search.resolver.can_define(path, name)

    def is_hidden(self, path: str, name: str, source: str) -> bool:
        """Return whether a file defines a name that code in the file `source` cannot see."""
        facts = reference_facts(path)
        symbols = self.records_of(path, "symbols") if facts.module_file or facts.package_clause else ()
        ranks = [visibility_rank(record.get("visibility")) for record in symbols if record.get("qualified") == name]
        if not ranks or source == path:
            return False
        if facts.module_file is not None:
            module = facts.module_file.sub("", path)
            is_around = not module or source.startswith(f"{module}/")
            return max(ranks) == _VISIBILITIES.index("private") and not is_around
        assert facts.package_clause is not None
        texts = ((self._search.read(each) or (b"", {}))[0] for each in (path, source))
        own, other = (facts.package_clause.findall(text)[:1] for text in texts)
        return max(ranks) < _VISIBILITIES.index("public") and own != other

    def is_parsed(self, path: str) -> bool:
        """Return whether HEAD could parse a file completely."""
        file = self.file(path)
        return file is not None and file.parse == "ok"

    def file(self, path: str) -> File | None:
        """Return the record of a file, or None."""
        records = (record for record in self.records_of(path, "parse") if record["kind"] == "file")
        return next((as_typed_record(record, File) for record in records), None)

    def records_of(self, path: str, task: str) -> Sequence[JsonRecord]:
        """Return the records of a task about a file, or none."""
        item = self._records.find_items([os.fsencode(path)]).get(os.fsencode(path))
        return () if item is None else self._records.item_records(task, item) or ()

    def can_lead_elsewhere(self, path: str, edge: Edge, links: Sequence[Edge]) -> bool:
        """Return whether an import of a file that HEAD lacks may lead to another file. `links` are all its edges."""
        package = _PACKAGE_FILE.match(path)
        stem = package[1] if package else os.path.splitext(path)[0].removesuffix(".d")
        places = path.split("/")
        above = ("/".join(places[:count]) for count in range(1, len(places)))
        if self._has_beginning(stem, "./") or any(map(self.has_path, above)):
            return True  # Another ending, a directory instead of the file, a link or a submodule.
        for other in (edge, *(each for each in links if each.imported == edge.imported)):
            if other.resolution != "external":
                name = edge.imported.rpartition(".")[2]
                is_package = other.target.endswith(("__init__.py", "__init__.pyi"))
                if not is_package or other.target == path or self.has_definition(other.target, name):
                    return True
        return not self._is_own(path, edge)

    def has_path(self, path: str) -> bool:
        """Return whether HEAD has a file, a link or a submodule at a path."""
        return self._snapshot.entry(os.fsencode(path)) is not None

    def _is_own(self, path: str, edge: Edge) -> bool:
        """Return whether no package outside of the project can have what was imported."""
        imported, facts = edge.imported, reference_facts(path)
        if facts.module_file is not None or imported.startswith("."):
            return True
        if facts.package_clause is not None:
            return self._has_beginning(os.path.dirname(path), "/")
        first = re.split(r"[./]", imported)[0]
        if facts.own_modules:
            places = path.split("/")
            if first in places[:-1]:
                return self._has_beginning("/".join(places[: places.index(first) + 1]), "/")
            return first not in facts.own_modules and not self._is_required(re.sub("[_-]", "[-_.]", first))
        parts = imported.split("/")
        prefixes = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        return not any(self._is_required(re.escape(each), r"""["']?\s*(v\d|=>|:)""") for each in prefixes)

    def _is_required(self, pattern: str, end: str = "") -> bool:
        return re.search(rf"(?i)(?<![\w-]){pattern}(?![\w-]){end}", self._manifests) is not None

    @cached_property
    def _manifests(self) -> str:
        chosen = [entry for entry in self._snapshot.entries if _MANIFEST.match(os.fsdecode(entry.path))]
        files = [self._records.read_object(entry) for entry in chosen if entry.kind == "file"]
        return b"\n".join(files).decode("utf-8", "replace")

    @cached_property
    def _paths(self) -> list[str]:
        return sorted(os.fsdecode(entry.path) for entry in self._snapshot.entries)

    def _has_beginning(self, start: str, ends: str) -> bool:
        """Return whether a path begins with a text and one of the characters after it."""
        for end in ends:
            index = bisect_left(self._paths, start + end)
            if index < len(self._paths) and self._paths[index].startswith(start + end):
                return True
        return False
