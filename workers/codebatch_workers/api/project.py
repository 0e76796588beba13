"""The input of a project task: the files of a batch, and the records of all tasks that it needs, in path order.

If a batch is restricted to paths, `files` contains only the files at or below these paths, and only these files have
records. `outside` contains the other files of the snapshot. A task can find and read them, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from codebatch.model.entry import Entry
from codebatch.model.record import Record
from codebatch_workers.syntax.source import SourceFile


class Project(Protocol):
    """A snapshot, and the records of its files.

    All values depend only on the snapshot and the plan, not on the division of the work among processes.
    """

    @property
    def files(self) -> Sequence[Entry]:
        """The files of the batch."""

    @property
    def outside(self) -> Sequence[Entry]:
        """The files of the snapshot outside the batch. Empty unless the batch is restricted to paths."""

    @property
    def symlinks(self) -> Sequence[Entry]:
        """The symbolic links of the snapshot. `read` returns the target of a link."""

    def records(self, task: str, *kinds: str, holding: str = "") -> Iterator[tuple[Entry, list[Record]]]:
        """Yield each file with its records from the task `task`. A task can read only records of tasks that it needs.

        - `kinds`: include only records of these kinds.
        - `holding`: include only records whose JSON line contains this text. This is faster than filtering records.

        Files without such records are left out. If `task` failed for a file, the file has a `failure` record.

        Raises ValueError if the calling task does not need `task`. Raises ObjectMissing or StoreCorrupt.
        """

    def records_of(self, file: Entry, task: str, *kinds: str) -> list[Record]:
        """Return the records that the task `task` returned for one file of the batch.

        If `kinds` are given, only records of these kinds are returned. The calling task must need `task`. Raises the
        errors of `records`, and ValueError if the file is in `outside`.
        """

    def find(self, path: bytes) -> Entry | None:
        """Return the file at a path, or None. The file can be in `files` or in `outside`."""

    def read(self, file: Entry) -> bytes:
        """Return the content of a file. Raises ObjectMissing."""

    def source(self, file: Entry) -> SourceFile:
        """Return a file of the batch as a SourceFile.

        Raises ValueError for a file outside the batch, and ObjectMissing if the content is missing.
        """
