"""A project in memory: the input of a project task, and the uses of names in it, without a store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from codebatch.model.analysis.uses import NameUse
from codebatch.model.digest import Digest
from codebatch.model.entry import Entry
from codebatch.model.record import Edge, Record
from codebatch_workers.languages.project_uses import project_uses
from codebatch_workers.symbols.outline import file_outline
from codebatch_workers.symbols.used_names import used_names
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks.dependencies import DependenciesTask
from tests.support.source_files import parse, source


class MemoryProject:
    """The files of a project with their records of the tasks `parse` and `symbols`."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._contents = {path.encode(): content.encode() for path, content in files.items()}
        self.files = [_entry(path, self._contents[path]) for path in sorted(self._contents)]
        self.outside: Sequence[Entry] = ()
        self.symlinks: Sequence[Entry] = ()
        self._records: dict[tuple[str, bytes], list[Record]] = {}
        for entry in self.files:
            file = self.source(entry)
            outline = file_outline(file)
            self._records["parse", entry.path] = [parse(file)[0]]
            names = used_names(file, outline)
            self._records["symbols", entry.path] = [
                *outline.symbols,
                *outline.edges,
                *([] if names is None else [names]),
            ]

    def records(self, task: str, *kinds: str, holding: str = "") -> Iterator[tuple[Entry, list[Record]]]:
        """Yield each file with its records of the given kinds. All records are taken to have the text `holding`."""
        for entry in self.files:
            records = self.records_of(entry, task, *kinds)
            if records:
                yield entry, records

    def records_of(self, file: Entry, task: str, *kinds: str) -> list[Record]:
        """Return the records of a file."""
        records = self._records[task, file.path]
        return [record for record in records if not kinds or record.__struct_config__.tag in kinds]

    def find(self, path: bytes) -> Entry | None:
        """Return the file at a path."""
        return next((entry for entry in self.files if entry.path == path), None)

    def read(self, file: Entry) -> bytes:
        """Return the content of a file."""
        return self._contents[file.path]

    def source(self, file: Entry) -> SourceFile:
        """Return a file as tasks get it."""
        return source(file.path, self._contents[file.path])

    def links(self) -> list[Edge]:
        """Return the `depends` edges of the project."""
        return [record for record in DependenciesTask().run_project(self) if isinstance(record, Edge)]

    def uses(self, path: str, name: str) -> list[NameUse]:
        """Return the uses of a name in a file."""
        links = self.links()

        def read(path: str) -> tuple[bytes, Mapping[str, bytes]] | None:
            content = self._contents.get(path.encode())
            return None if content is None else (content, {})

        def files_with_name(_: str) -> list[str]:
            return [path.decode() for path in self._contents]

        uses = project_uses(read, lambda path: [edge for edge in links if edge.path == path], files_with_name)
        return uses.uses_in(path, name)


def _entry(path: bytes, content: bytes) -> Entry:
    digest = Digest(hashlib.sha256(content).hexdigest())
    return Entry(path=path, kind="file", executable=False, size=len(content), object=digest)
