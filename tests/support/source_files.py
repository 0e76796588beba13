"""Files and tasks for the tests of this directory."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import msgspec

from codebatch.model.digest import Digest
from codebatch.model.entry import Entry
from codebatch.model.record import Diagnostic, File, Record
from codebatch.model.task import JsonValue, SnapshotView
from codebatch_workers import tasks
from codebatch_workers.api.protocols import BatchedFileTask, FileTask, TaskEnvironment
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.syntax.suppression import exclude_suppressed


def source(path: str | bytes, content: bytes | str, contexts: Mapping[str, bytes] | None = None) -> SourceFile:
    """A file that is not executable."""
    path = path.encode() if isinstance(path, str) else path
    content = content.encode() if isinstance(content, str) else content
    return SourceFile(path, content, executable=False, contexts=contexts or {})


def created(name: str, scratch: Path, config: Mapping[str, JsonValue] | None = None) -> FileTask:
    """A built-in task, made as a worker makes it."""
    declaration = getattr(tasks, name.upper())
    module, _, attribute = declaration.implementation.partition(":")
    factory = getattr(importlib.import_module(module), attribute)
    made: Any = factory(TaskEnvironment(config=msgspec.convert(config or {}, declaration.config), scratch=scratch))
    return cast("FileTask", made)


def parse(file: SourceFile) -> tuple[File, list[Diagnostic]]:
    """The record of a file, and its syntax errors."""
    with TemporaryDirectory() as scratch:
        task = created("parse", Path(scratch))
        assert isinstance(task, BatchedFileTask)
        ((record, *errors),) = task.complete([file], [task.run_file(file)])
    assert isinstance(record, File)
    return record, [error for error in errors if isinstance(error, Diagnostic)]


def lint_all(
    files: list[SourceFile], scratch: Path, config: Mapping[str, JsonValue] | None = None
) -> list[list[Diagnostic]]:
    """What lint says of the files of one unit, as it is recorded."""
    task = created("lint", scratch, config)
    assert isinstance(task, BatchedFileTask)
    records: list[list[Record]] = [task.run_file(file) for file in files]
    told = [[record for record in each if isinstance(record, Diagnostic)] for each in task.complete(files, records)]
    return [exclude_suppressed(file, each) for file, each in zip(files, told, strict=True)]


class Snapshot(SnapshotView):
    """A snapshot of files by path; those that are given by name have content."""

    def __init__(self, *paths: str, content: Mapping[str, bytes] | Mapping[bytes, bytes] | None = None) -> None:
        self._content = {os.fsencode(path): data for path, data in (content or {}).items()}
        every = sorted({*(path.encode() for path in paths), *self._content})
        self._entries = [Entry(path, "file", False, 0, Digest("")) for path in every]

    @property
    def entries(self) -> list[Entry]:
        return self._entries

    def read(self, path: bytes) -> bytes | None:
        return self._content.get(path)
