"""Changes of a batch as values of the Python interface, which can read the contents of the files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from codebatch.model.change import ProposedChange
from codebatch.model.digest import Digest
from codebatch.model.entry import display_path
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.objects.object_store import ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A change of a file that a task proposes or made.

    - `task`: the task. `state`: its state in a task list. Empty for an analysis.
    - `kind`: `file`, or `link` for a symbolic link. The content of a link is its target.
    - `before`, `after`: the digests of the contents. With None, the file does not exist then.
    - `was_executable`, `executable`: whether the file is executable before and after the change.
    - `added`, `removed`: the numbers of lines that the change adds and removes.

    Example:

        for change in store.batch("latest").changes().result:
            print(change.path_text, change.read_after())
    """

    path: bytes
    task: str
    state: str = ""
    kind: Literal["file", "link"]
    before: Digest | None
    after: Digest | None
    was_executable: bool
    executable: bool
    added: int
    removed: int
    _objects: ObjectStore = field(repr=False, compare=False)

    @property
    def path_text(self) -> str:
        """The path for display. Bytes that are not UTF-8 are escaped."""
        return display_path(self.path)

    def read_before(self) -> bytes | None:
        """Return the content before the change, or None if the file does not exist then. Raises ObjectMissing."""
        return None if self.before is None else self._objects.read(self.before)

    def read_after(self) -> bytes | None:
        """Return the content after the change, or None if the file is deleted. Raises ObjectMissing."""
        return None if self.after is None else self._objects.read(self.after)


def make_changed_files(store: StoreDir, proposed: Iterable[ProposedChange], state: str = "") -> list[ChangedFile]:
    """Return changes for the Python interface, in the same order."""
    objects = store.objects()
    return [
        ChangedFile(
            path=each.change.path,
            task=each.task,
            state=state,
            kind=each.change.kind,
            before=each.change.before,
            after=each.change.after,
            was_executable=each.change.was_executable,
            executable=each.change.executable,
            added=each.added,
            removed=each.removed,
            _objects=objects,
        )
        for each in proposed
    ]
