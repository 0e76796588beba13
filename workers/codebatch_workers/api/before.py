"""What a project task may go on from: an older batch of the same tasks, over another state of the tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from codebatch.model.entry import Entry
from codebatch.model.record import Record


class FileChange(NamedTuple):
    """A file that is not what it was, by content, executable bit or contexts: then and now, None where it is not there.

    A file that was moved is two.
    """

    before: Entry | None
    now: Entry | None


class Before(Protocol):
    """The older batch: it is whole, and its task was the very same. In neither is a failure of what the task needs.

    Whatever the task does not ask about is as it was, or of no matter.
    """

    @property
    def changes(self) -> Sequence[FileChange]:
        """Every file that differs, by path. Of others file tasks say what they said; tasks of project scope may not."""

    def records_of(self, file: Entry, task: str, *kinds: str) -> list[Record]:
        """What a needed task said then of a file that was there, and is another now; only some kinds where any are
        named.

        Raises ValueError for another task or file, StoreCorrupt.
        """

    def own_records(self) -> Iterator[tuple[Entry, list[Record]]]:
        """Each file of which the task itself said something then, with all that, in path order. Raises StoreCorrupt."""

    def read(self, file: Entry) -> bytes:
        """The content that a file had then. Raises ObjectMissing."""
