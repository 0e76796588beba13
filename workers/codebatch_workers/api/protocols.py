"""The interfaces between tasks and the workers that run them.

`TaskDeclaration.implementation` names a factory. Each worker process calls it once. `factory(environment)` returns a
FileTask or a BatchedFileTask or, if the declared scope is `project`, a ProjectTask. Each interface has its own method.
A worker runs the tasks of a unit on each file in plan order. They share one `SourceFile`, so that a syntax tree is
built only once, and never stored on disk. The result of a task must not depend on which other tasks run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar, runtime_checkable

import msgspec

from codebatch.model.command_table import CommandTable
from codebatch.model.digest import Digest
from codebatch.model.entry import Entry
from codebatch.model.program_call import ProgramEnd
from codebatch.model.record import FailureReason, Record
from codebatch_workers.api.before import Before
from codebatch_workers.api.project import Project
from codebatch_workers.syntax.source import SourceFile

# The type parameter is covariant, because an environment is read-only. So a factory for a general type of configuration
# also accepts an environment with a more specific type.
Config = TypeVar("Config", bound=msgspec.Struct, covariant=True)


def refuse_object(_data: bytes) -> Digest:
    """Raise RuntimeError, because there is no store. See `TaskEnvironment.put_object`."""
    raise RuntimeError("there is no store to put objects in")


class MemoryDirectory(Protocol):
    """An empty directory in memory, for short-lived files."""

    @property
    def path(self) -> Path:
        """The path of the directory."""

    def remove(self) -> None:
        """Remove the directory. A second call has no effect."""


def _refuse_object_read(_digest: str) -> bytes:
    raise RuntimeError("there is no store to read objects of")


def _no_memory() -> MemoryDirectory | None:
    return None


class FileFailure(Exception):
    """The failure of a task on one file. The text is the evidence that the batch keeps.

    A batched task returns it in place of the records of the file.
    """

    def __init__(self, evidence: str, reason: FailureReason = "exception") -> None:
        super().__init__(evidence)
        self.evidence = evidence
        self.reason = reason


class TaskProgram(Protocol):
    """The program of a task that calls one."""

    @property
    def table(self) -> CommandTable:
        """The settings of the task."""

    @property
    def project(self) -> str:
        """The directory of the configuration."""

    def run(self, arguments: Sequence[bytes], directory: bytes, home: bytes, report: bytes | None) -> ProgramEnd:
        """Run the program, with arguments, in a directory, with the home directory `home`.

        If `report` is the path of a file, its bytes are the output. Raises ProgramFailed, or ToolMismatch if the
        program has changed.
        """


class TaskEnvironment(msgspec.Struct, Generic[Config], frozen=True, kw_only=True):
    """The environment of a task, passed once to its factory.

    - `config`: the configuration of the task, of the declared type.
    - `scratch`: an empty directory for this task only.
    - `name`: the name of the task in the plan.
    - `shared`: a dictionary that all tasks of the process share, for example to start a tool only once. Keys are module
      names. The results of a task must not depend on other tasks in the process.
    - `put_object`: store bytes for a record, and return their digest. The bytes are durable before the record is. They
      are removed when no record refers to them.
    - `read_object`: return the bytes of an object, given its digest. Raises ObjectMissing.
    - `program`: the program of a task that calls one (SPEC.md "Command tasks"), otherwise None.
    - `try_memory`: create a directory in memory for thousands of short-lived small files. Returns None if there is not
      enough memory.
    """

    config: Config
    scratch: Path
    name: str = ""
    shared: dict[str, object] = msgspec.field(default_factory=dict)
    put_object: Callable[[bytes], Digest] = refuse_object
    try_memory: Callable[[], MemoryDirectory | None] = _no_memory
    read_object: Callable[[str], bytes] = _refuse_object_read
    program: TaskProgram | None = None


@runtime_checkable
class FileTask(Protocol):
    """A task for single files.

    The result must depend only on the content, path and contexts of a file, and on the configuration of the task. A
    context is a value computed from the snapshot, such as the packages that contain a file.
    """

    def run_file(self, file: SourceFile) -> list[Record]:
        """Return the records of a file, in their final order.

        If this method raises an exception, the task fails for this file only.
        """


@runtime_checkable
class ProjectTask(Protocol):
    """A task for the whole project.

    The result must depend only on the snapshot, the records of the tasks that this task needs, and its configuration.
    """

    def run_project(self, project: Project) -> Iterable[Record]:
        """Return the records of the task. They can belong to any files. Records of one file keep their order.

        If this method raises an exception, the task fails.
        """


@runtime_checkable
class ReportingTask(ProjectTask, Protocol):
    """A built-in project task that also reports facts about its run, as text. The journal stores this text."""

    @property
    def report(self) -> str:
        """The facts about the last call of `run_project`, as text."""


@runtime_checkable
class IncrementalTask(ProjectTask, Protocol):
    """A built-in project task that can update its results from an older state of the tree.

    The updated results must equal the results of `run_project`. A worker calls `run_project` if there is no older
    batch, or if `update` fails or returns None.
    """

    def update(self, project: Project, before: Before) -> Iterable[tuple[Entry, list[Record]]] | None:
        """Return each file whose records may differ from those in the older batch, with all its records.

        Files that are not returned keep their records. Return None if too much has changed for an update.
        """


@runtime_checkable
class CallingFileTask(FileTask, Protocol):
    """A built-in file task that also reports facts about its calls of a program. The journal stores this text."""

    def take_report(self) -> str:
        """Return the facts about the calls since the last report, as text."""


@runtime_checkable
class BatchedFileTask(FileTask, Protocol):
    """A file task that also passes many files to a tool in one call.

    A worker calls `run_file` for each file, and then `complete` once for many files. `run_file` returns the records
    that do not need the tool. Only `run_file` can use the syntax tree. `complete` calls the tool. The records of a file
    must not depend on which other files are passed to the tool.
    """

    def complete(
        self, files: Sequence[SourceFile], records: Sequence[list[Record]]
    ) -> Sequence[list[Record] | FileFailure]:
        """Return all records of each file, in their final order, or the reason why there are none.

        `records` has one list for each file: the records that `run_file` returned for it.
        """
