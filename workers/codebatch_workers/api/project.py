"""What a project task works on: the files of a batch, and all records of the tasks that it needs, in path order.

Where a batch is restricted to paths, `files` are those alone, and records can be given of no other. `outside` are the
snapshot's other files: they can be found and read, and no task has said anything of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from codebatch.model.entry import Entry
from codebatch.model.record import Record
from codebatch_workers.syntax.source import SourceFile


class Project(Protocol):
    """A snapshot and what is known of it. The same for the same inputs, however the work on them was cut."""

    @property
    def files(self) -> Sequence[Entry]:
        """The files of the batch."""

    @property
    def outside(self) -> Sequence[Entry]:
        """The other files of the snapshot."""

    def records(self, task: str, *kinds: str, holding: str = "") -> Iterator[tuple[Entry, list[Record]]]:
        """Each file with what a needed task says of it; only the records of some kinds where any are named.

        `holding` passes over records whose JSON line does not hold this text: telling that is faster than reading them.
        Files of which nothing is left are left out. A file at which the task failed has its `failure` record. Raises
        ValueError for a task that is not needed, ObjectMissing or StoreCorrupt.
        """

    def records_of(self, file: Entry, task: str, *kinds: str) -> list[Record]:
        """What a needed task says of a file of the batch; only the records of some kinds where any are named.

        Raises as `records`, and ValueError for a file outside.
        """

    def find(self, path: bytes) -> Entry | None:
        """The file at a path, also one outside."""

    def read(self, file: Entry) -> bytes:
        """The content of a file. Raises ObjectMissing."""

    def source(self, file: Entry) -> SourceFile:
        """A file of the batch as tasks of file scope see it. Raises ValueError for any other, or ObjectMissing."""
