"""The older batch from which a project task can continue.

It has the same tasks, and an older state of the source tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from codebatch.model.entry import Entry
from codebatch.model.record import Record


class ChangedEntry(NamedTuple):
    """A file whose content, executable bit or contexts changed.

    `before` is its entry in the older batch, and `now` its entry in the new batch. Either is None if that batch does
    not have the file. A moved file counts as two changes.
    """

    before: Entry | None
    now: Entry | None


class Before(Protocol):
    """A complete older batch in which the task had the same version and configuration.

    In both batches, the tasks that this task needs succeeded for all files. Inputs of the task that this interface does
    not show are equal in both batches, or do not affect the results.
    """

    @property
    def changes(self) -> Sequence[ChangedEntry]:
        """All changed files, by path.

        For all other files, the file tasks returned the same records in both batches. The records of project tasks can
        differ for any file.
        """

    def records_of(self, file: Entry, task: str, *kinds: str) -> list[Record]:
        """Return the records that a task had for a changed file in the older batch.

        The calling task must need `task`. If `kinds` are given, only records of these kinds are returned.

        Raises ValueError if the calling task does not need `task`, or if the file is not a changed one. Raises
        StoreCorrupt.
        """

    def own_records(self) -> Iterator[tuple[Entry, list[Record]]]:
        """Yield each file for which this task had records in the older batch, with all of these records, in path order.

        Raises StoreCorrupt.
        """

    def read(self, file: Entry) -> bytes:
        """Return the content that a file had in the older batch. Raises ObjectMissing."""
