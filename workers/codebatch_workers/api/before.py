"""The older batch from which a project task can continue: the same tasks on another state of the tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from codebatch.model.entry import Entry
from codebatch.model.record import Record


class FileChange(NamedTuple):
    """A file whose content, executable bit or contexts changed: the old and the new entry, or None if it does not
    exist.

    A moved file counts as two changes.
    """

    before: Entry | None
    now: Entry | None


class Before(Protocol):
    """An older batch that is complete and has the same version and configuration of the task.

    In neither batch has a needed task failed. Everything that this interface does not offer is unchanged or irrelevant.
    """

    @property
    def changes(self) -> Sequence[FileChange]:
        """All changed files, by path.

        For other files, records of file tasks are unchanged; those of project tasks may not be.
        """

    def records_of(self, file: Entry, task: str, *kinds: str) -> list[Record]:
        """Return the old records of a changed file from a task that is needed.

        With `kinds`, only records of these kinds.

        Raises ValueError for another task or file, or StoreCorrupt.
        """

    def own_records(self) -> Iterator[tuple[Entry, list[Record]]]:
        """Yield each file with old records of the task itself, with all these records, in path order.

        Raises StoreCorrupt.
        """

    def read(self, file: Entry) -> bytes:
        """Return the old content of a file. Raises ObjectMissing."""
