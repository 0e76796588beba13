"""What a task's implementation is, seen from the worker that runs it.

`TaskDeclaration.implementation` names a factory, called once per worker process: `factory(environment)` makes a
FileTask, a BatchedFileTask, or a ProjectTask where the declaration's scope is `project`. Each has a verb of its own.
A worker takes each file through the tasks of its unit in plan order, sharing one `SourceFile`, so that a syntax tree is
made once and never touches the disk. Which tasks run together is no business of a task: it must answer the same alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar, runtime_checkable

import msgspec

from codebatch.model.digest import Digest
from codebatch.model.entry import Entry
from codebatch.model.record import Record
from codebatch_workers.api.before import Before
from codebatch_workers.api.project import Project
from codebatch_workers.syntax.source import SourceFile

# Covariant, for nothing is put in: who takes an environment of any configuration takes this one.
Config = TypeVar("Config", bound=msgspec.Struct, covariant=True)


def _refuse_object(_data: bytes) -> Digest:
    raise RuntimeError("there is no store to put objects in")


class MemoryDirectory(Protocol):
    """An empty directory in memory."""

    @property
    def path(self) -> Path:
        """Where it is."""

    def remove(self) -> None:
        """Remove it; a second call does nothing."""


def _without_store(_digest: str) -> bytes:
    raise RuntimeError("there is no store to read objects of")


def _no_memory() -> MemoryDirectory | None:
    return None


class TaskEnvironment(msgspec.Struct, Generic[Config], frozen=True, kw_only=True):
    """What a task gets once: its configuration, of the declared type, and an empty directory of its own to work in.

    `shared` is the same for all tasks of a process: a tool that several of them ask is asked once. Keys are names of
    modules. No answer may depend on who else is there. `put_object` stores bytes that an `ast` record names by their
    digest; they are on disk before the records are, and go when no such record names them. `try_memory` makes a
    directory for thousands of small files that live for a second, None where there is no memory to have it in. `name`
    is the task's in the plan; `read_object` gives an object by its digest, and raises ObjectMissing.
    """

    config: Config
    scratch: Path
    name: str = ""
    shared: dict[str, object] = msgspec.field(default_factory=dict)
    put_object: Callable[[bytes], Digest] = _refuse_object
    try_memory: Callable[[], MemoryDirectory | None] = _no_memory
    read_object: Callable[[str], bytes] = _without_store


@runtime_checkable
class FileTask(Protocol):
    """A pure function of one file: its bytes, path, contexts and the task's configuration."""

    def run_file(self, file: SourceFile) -> list[Record]:
        """The records of one file, in their final order. Any exception fails this task for this file alone."""


@runtime_checkable
class ProjectTask(Protocol):
    """A pure function of the records of the tasks that it needs, of the snapshot and of the task's configuration."""

    def run_project(self, project: Project) -> Iterable[Record]:
        """Records of any files; those of one file are kept in the order in which they are given.

        Any exception fails this task.
        """


@runtime_checkable
class TellingTask(ProjectTask, Protocol):
    """A built-in project task that has something to tell of what it did that is no record. The journal keeps it."""

    @property
    def told(self) -> str:
        """What it tells of the last call of `run_project`."""


@runtime_checkable
class UpdatingTask(ProjectTask, Protocol):
    """A built-in project task that can go on from what it said of an older state of the tree.

    It must come to the very same as `run_project`, which is called where there is no such batch, and where it fails.
    """

    def update(self, project: Project, before: Before) -> Iterable[tuple[Entry, list[Record]]] | None:
        """Each file of which something else may be said now, with all that is; what was said of any other stands.

        None: so much has changed that all is to be done again.
        """


@runtime_checkable
class BatchedFileTask(FileTask, Protocol):
    """A task that also asks a tool about many files in one call. It must answer as if asked one by one.

    `run_file` gives the records that need no tool; the syntax tree is still there.
    """

    def complete(self, files: Sequence[SourceFile], records: Sequence[list[Record]]) -> list[list[Record]]:
        """Given the files of a unit and what `run_file` said of each, the records of each, in their final order."""
