"""The older batch from which a project task can continue: it had the same tasks, on an older state of the tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from codebatch.model.entry import Entry
from codebatch.model.record import Record


class FileChange(NamedTuple):
    """A file whose content, executable bit or contexts changed.

    `before` and `now` are its old and its new entry, or None if it does not exist. A moved file counts as two changes.
    """

    before: Entry | None
    now: Entry | None


class Before(Protocol):
    """A complete older batch in which the task had the same version and configuration.

    In neither batch has a task failed that this task needs. Everything that this interface does not show is unchanged
    or irrelevant.
    """

    @property
    def changes(self) -> Sequence[FileChange]:
        """All changed files, by path.

        For all other files, the records of file tasks are unchanged. Records of project tasks can have changed for any
        file.
        """

    def records_of(self, file: Entry, task: str, *kinds: str) -> list[Record]:
        """Return the old records of a changed file. `task` must be a task that this task needs.

        If `kinds` are given, only records of these kinds are returned. Raises ValueError for another task or file, or
        StoreCorrupt.
        """

    def own_records(self) -> Iterator[tuple[Entry, list[Record]]]:
        """Yield each file for which this task had records, and all these records, in path order.

        Raises StoreCorrupt.
        """

    def read(self, file: Entry) -> bytes:
        """Return the old content of a file. Raises ObjectMissing."""
