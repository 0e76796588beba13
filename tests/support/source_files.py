"""Source files, snapshots and built-in tasks for tests of tasks."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, cast

import msgspec

from codebatch.model.digest import Digest
from codebatch.model.entry import Entry, EntryKind
from codebatch.model.record import Diagnostic, File, Metric, Record
from codebatch.model.task import JsonValue, SnapshotView
from codebatch_workers import tasks
from codebatch_workers.api.protocols import BatchedFileTask, FileFailure, FileTask, TaskEnvironment
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.syntax.suppression import exclude_suppressed
from codebatch_workers.tasks.analyze import AnalyzeTask


def source(path: str | bytes, content: bytes | str, contexts: Mapping[str, bytes] | None = None) -> SourceFile:
    """Return a source file that is not executable."""
    path = path.encode() if isinstance(path, str) else path
    content = content.encode() if isinstance(content, str) else content
    return SourceFile(path, content, executable=False, contexts=contexts or {})


def created(name: str, scratch: Path, config: Mapping[str, JsonValue] | None = None) -> FileTask:
    """Create a built-in task as a worker does."""
    declaration = getattr(tasks, name.upper())
    module, _, attribute = declaration.implementation.partition(":")
    factory = getattr(importlib.import_module(module), attribute)
    task: Any = factory(TaskEnvironment(config=msgspec.convert(config or {}, declaration.config), scratch=scratch))
    return cast("FileTask", task)


def complete(task: BatchedFileTask, files: Sequence[SourceFile], records: Sequence[list[Record]]) -> list[list[Record]]:
    """Return all records of files from a batched task that must not fail."""
    results = task.complete(files, records)
    return [result for result in results if not isinstance(result, FileFailure)]


def parse(file: SourceFile) -> tuple[File, list[Diagnostic]]:
    """Parse a file. Return its `file` record and its syntax errors."""
    with TemporaryDirectory() as scratch:
        task = created("parse", Path(scratch))
        assert isinstance(task, BatchedFileTask)
        ((record, *errors),) = complete(task, [file], [task.run_file(file)])
    assert isinstance(record, File)
    return record, [error for error in errors if isinstance(error, Diagnostic)]


def file_metrics(file: SourceFile) -> dict[str, int]:
    """Return the metrics of a file by name, in the order of the records, without the metrics of single functions."""
    records = AnalyzeTask().run_file(file)
    return {record.metric: record.value for record in records if isinstance(record, Metric) and not record.symbol}


def lint_all(
    files: list[SourceFile], scratch: Path, config: Mapping[str, JsonValue] | None = None
) -> list[list[Diagnostic]]:
    """Lint the files of one unit. Return the recorded findings of each file, without suppressed ones."""
    task = created("lint", scratch, config)
    assert isinstance(task, BatchedFileTask)
    records: list[list[Record]] = [task.run_file(file) for file in files]
    completed = complete(task, files, records)
    findings = [[record for record in of_file if isinstance(record, Diagnostic)] for of_file in completed]
    return [exclude_suppressed(file, of_file) for file, of_file in zip(files, findings, strict=True)]


class Snapshot(SnapshotView):
    """A snapshot of files. Files in `content` have content; files that are only named in `paths` have none."""

    def __init__(
        self,
        *paths: str,
        content: Mapping[str, bytes] | Mapping[bytes, bytes] | None = None,
        links: Mapping[str, bytes] = MappingProxyType({}),
    ) -> None:
        """`links` maps the paths of symbolic links to their targets."""
        self._content = {os.fsencode(path): data for path, data in (content or {}).items()}
        self._links = {path.encode(): target for path, target in links.items()}
        every = {*(path.encode() for path in paths), *self._content}
        files = [Entry(path, "file", False, 0, Digest("")) for path in every]
        self._entries = sorted([*files, *(Entry(path, "symlink", False, 0, Digest("")) for path in self._links)])

    @property
    def entries(self) -> list[Entry]:
        return self._entries

    def read(self, path: bytes, kind: EntryKind = "file") -> bytes | None:
        return self._content.get(path) if kind == "file" else self._links.get(path)
