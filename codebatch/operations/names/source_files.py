"""The contents of the files of a batch, and the links between them, for the resolution of names."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from codebatch.errors import ObjectMissing
from codebatch.model.entry import Entry, display_path
from codebatch.model.record import Edge
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.query.answers.dependencies import DEPENDENCIES_TASK
from codebatch.query.fields import as_typed_record
from codebatch.query.sources.records import read_entry


class SourceFiles:
    """The files of a batch. `missing` has the paths of those whose content is missing. Methods raise StoreCorrupt."""

    def __init__(self, question: BatchQuery) -> None:
        self.question = question
        self.records = question.records
        self.missing: list[bytes] = []
        self._items: dict[str, int | None] = {}
        self._paths_with_name: dict[str, list[str]] = {}

    def remember(self, path: str, item: int) -> None:
        """Record the number of a file, so that it is not searched."""
        self._items[path] = item

    def files_with_name(self, name: str) -> Collection[str]:
        """Return the paths of all files that contain a name, and possibly of others."""
        if name not in self._paths_with_name:
            items = self.records.items_with_name(name)
            self._paths_with_name[name] = [os.fsdecode(entry.path) for _, entry in items]
        return self._paths_with_name[name]

    def _item(self, path: str) -> int | None:
        if path not in self._items:
            encoded = os.fsencode(path)
            self._items[path] = self.records.find_items([encoded]).get(encoded)
        return self._items[path]

    def content(self, entry: Entry) -> bytes | None:
        """Return the content of an entry, or None if it is missing. Then the answer says so."""
        try:
            return self.records.read_object(entry)
        except ObjectMissing as error:
            if entry.path not in self.missing:
                self.missing.append(entry.path)
                self.question.note(f"{display_path(entry.path)} skipped: {error.message}")
            return None

    def read(self, path: str) -> tuple[bytes, Mapping[str, bytes]] | None:
        """Return the content and the contexts of a file, or None."""
        item = self._item(path)
        content = None if item is None else self.content(read_entry(self.records, item))
        return None if content is None or item is None else (content, self.records.plan.item_contexts(item))

    def links_of(self, path: str) -> list[Edge]:
        """Return the `depends` edges of a file."""
        item = self._item(path)
        if item is None or DEPENDENCIES_TASK not in self.records.task_names:
            return []
        records = self.records.item_records(DEPENDENCIES_TASK, item) or ()
        return [as_typed_record(record, Edge) for record in records if record["kind"] == "edge"]
