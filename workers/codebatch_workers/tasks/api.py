"""What a task's implementation is, seen from the worker that runs it.

`TaskDeclaration.implementation` names a factory: `factory(environment) -> FileTask`, called once per worker process.
A worker takes each file through the tasks of its unit in plan order, sharing one `SourceFile`, so that a syntax tree is
made once and never touches the disk. Which tasks run together is no business of a task: it must answer the same alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from codebatch.model.record import Record
from codebatch.model.task import Json
from codebatch_workers.source import SourceFile


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnvironment:
    """What a task gets once: its effective configuration, and an empty directory of its own to work in."""

    config: Mapping[str, Json]
    scratch: Path


@runtime_checkable
class FileTask(Protocol):
    """A pure function of one file: its bytes, path, contexts and the task's configuration."""

    def run(self, file: SourceFile) -> list[Record]:
        """The records of one file, in their final order. Any exception fails this task for this file alone."""


@runtime_checkable
class BatchedFileTask(Protocol):
    """A task that also asks a tool about many files in one call. It must answer as if asked one by one."""

    def run(self, file: SourceFile) -> list[Record]:
        """The records that need no tool; the syntax tree is still there."""

    def complete(self, files: Sequence[SourceFile], records: Sequence[list[Record]]) -> list[list[Record]]:
        """Given the files of a unit and what `run` said of each, the final records of each, in their final order."""
