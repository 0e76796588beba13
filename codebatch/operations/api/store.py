"""An opened store and its batches: what programs ask, the command line among them.

    with codebatch.open() as store:
        for found in store.batch().diagnostics(severity="error"):
            print(found.path, found.line, found.message)

- **Whole or told.** What a batch cannot say in full (it runs still, something failed, it is of a part of the project)
  raises BatchIncomplete when it is asked; of one that is opened with `partial=True` it is given, and the answer's
  `is_complete`, `progress` and `whole` say how much of it is there. What a running batch says is as of the first
  question.
- **Lazy.** Records are read shard by shard, when they are wanted.
- **Closed by itself.** No file is kept open between two records: what is held is memory, and goes with the objects.
  After `close`, or the end of `with`, nothing more can be asked, and no further record be had.
- **Threads and forks.** Several threads may ask a batch, and a process that was forked goes on with its copy; one
  answer is read by one thread.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from codebatch.errors import InvalidInput
from codebatch.operations import Note
from codebatch.operations.api.batch import Batch
from codebatch.operations.project import stores
from codebatch.operations.queries import batch_query
from codebatch.store.batches.store import StoreDir

if TYPE_CHECKING:
    from codebatch.operations.queries.batches import ListedBatch


class Store:
    """An open store. It is a context manager.

    Example:

        with codebatch.open() as store:
            for listed in store.batches():
                print(listed.state, store.root)
    """

    def __init__(self, store: StoreDir, note: Note, passed_over: Note | None = None) -> None:
        """`passed_over` gets the notes of newer batches that are not asked; by default `note`."""
        self._store = store
        self._note = note
        self._passed_over = passed_over or note
        self._is_open = True

    @property
    def root(self) -> Path:
        """The directory of the store."""
        return self._store.root

    @property
    def note(self) -> Note:
        """The receiver of notes."""
        return self._note

    @property
    def store(self) -> StoreDir:
        """The low-level store. Raises InvalidInput if the store was closed."""
        self.check_open()
        return self._store

    def batch(self, reference: str | None = None, *, partial: bool = False) -> Batch:
        """Return a batch. `reference` is its ID, a unique ID prefix, `latest`, `latest~N` or `@NAME`.

        The default is the latest batch of the project. With `partial`, the batch gives incomplete answers instead of
        raising BatchIncomplete. Raises InvalidInput, InvalidId, UnknownId (NoBatch if the project has no batch),
        AmbiguousId or StoreCorrupt.
        """
        self.check_open()
        if reference is not None:
            batch_query.check_reference(reference)
        return self.open_batch(self.ask(reference), partial=partial)

    def ask(self, reference: str | None = None) -> batch_query.BatchQuery:
        """Return a batch as `batch` finds it, as use cases take it. Raises the errors of `batch`."""
        self.check_open()
        return batch_query.ask(self._store, reference, self._note, self._passed_over)

    def open_batch(self, question: batch_query.BatchQuery, *, partial: bool = False) -> Batch:
        """Return the public form of a batch that was found."""
        return Batch(question, self.check_open, partial=partial)

    def side(self, reference: str, *, partial: bool = False, of_files: bool = False) -> Batch:
        """Return a batch to compare. `reference` is as in `batch`, or a snapshot or a git commit.

        Git resolves a commit in the current directory. The latest batch of the commit is returned; batches with
        uncommitted changes are ignored. With `of_files`, a snapshot without a batch is accepted, to compare only files.
        Raises the errors of `batch`. If a commit has no batch, UnknownId is raised; `check` would analyse the commit.
        """
        from codebatch.operations.comparison.revisions import find_revision

        batch_query.check_reference(reference)
        found = find_revision(self.store, reference, self.ask, self._note, of_files=of_files)
        return self.open_batch(found, partial=partial)

    def batches(self) -> Iterator[ListedBatch]:
        """Yield all batches, oldest first. A damaged batch is listed as DAMAGED."""
        from codebatch.operations.queries.batches import list_batches

        self.check_open()
        return list_batches(self._store, self._note)

    def check_open(self) -> None:
        """Raise InvalidInput if the store was closed."""
        if not self._is_open:
            raise InvalidInput(
                f"the store {self.root} is closed", hint="open the store again, or query it within its `with` block"
            )

    def close(self) -> None:
        """Close the store. Further calls have no effect."""
        self._is_open = False

    def __enter__(self) -> Store:
        self.check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open(path: str | Path | None = None, *, project: str | Path | None = None, note: Note | None = None) -> Store:
    """Open the store at a path, by default the store of the project.

    `project` is a directory of the project, by default the current directory. The default batch is the latest batch of
    the project. If no path is given, the store must have been created on this machine (SPEC.md "Threat model"). `note`
    receives notes, for example about damaged batches that are skipped. By default, notes are issued as warnings. Raises
    InvalidInput, StoreNotFound, StoreUntrusted or StoreCorrupt.
    """
    return Store(stores.open_store(path, project), note or _warn)


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=2)
