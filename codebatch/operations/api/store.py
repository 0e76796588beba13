"""An open store and its batches, the entry point for programs and the command line.

    with codebatch.open() as store:
        for finding in store.batch().diagnostics(severity="error"):
            print(finding.path, finding.line, finding.message)

- **Completeness.** If an answer would be incomplete (the batch is running, a task failed, or the batch is restricted to
  paths), the query raises BatchIncomplete. If the batch was opened with `partial=True`, the incomplete answer is
  returned, and its `is_complete`, `progress` and `completeness` describe what is missing. Answers from a running batch
  reflect its state at the first query.
- **Lazy.** Records are read shard by shard on demand.
- **No open files.** No file stays open between two records, and memory is freed with the objects. After `close` or the
  end of `with`, queries and iterations raise InvalidInput.
- **Threads and forks.** Several threads may query a batch, and a forked process may continue with its copy. An answer
  may be read by only one thread.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from codebatch.errors import InvalidInput
from codebatch.operations import NoteCallback
from codebatch.operations.api.batch import Batch
from codebatch.operations.project import stores
from codebatch.operations.queries import batch_query
from codebatch.store.batches.store_directory import StoreDir

if TYPE_CHECKING:
    from codebatch.operations.queries.batches import ListedBatch


class Store:
    """An open store. It is a context manager.

    Example:

        with codebatch.open() as store:
            for listed in store.batches():
                print(listed.state, store.root)
    """

    def __init__(self, store: StoreDir, note: NoteCallback, on_skipped: NoteCallback | None = None) -> None:
        """Wrap a store.

        `on_skipped` receives notes about newer batches that are skipped; by default `note` receives them.
        """
        self._store = store
        self._note = note
        self._passed_over = on_skipped or note
        self._is_open = True

    @property
    def root(self) -> Path:
        """The directory of the store."""
        return self._store.root

    @property
    def note(self) -> NoteCallback:
        """The function that receives notes, such as a note about a damaged batch that is skipped."""
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
        return self.open_batch(self.open_query(reference), partial=partial)

    def open_query(self, reference: str | None = None) -> batch_query.BatchQuery:
        """Return the internal query object of a batch. `reference` and the errors are those of the method `batch`."""
        self.check_open()
        return batch_query.open_batch_query(self._store, reference, self._note, self._passed_over)

    def open_batch(self, question: batch_query.BatchQuery, *, partial: bool = False) -> Batch:
        """Return an open batch for a query object that `open_query` returned."""
        return Batch(question, self.check_open, partial=partial)

    def side(self, reference: str, *, partial: bool = False, of_files: bool = False) -> Batch:
        """Return a batch to compare. `reference` is as in `batch`, or the ID of a snapshot, or a git commit.

        For a commit, the latest batch of this commit is returned. Batches with uncommitted changes are ignored. git
        resolves the commit in the current directory.

        With `of_files`, a snapshot without a batch is accepted. Only lists of files can then be compared.

        Raises the errors of `batch`. If a commit has no batch, UnknownId is raised. `codebatch.check` analyses such a
        commit instead.
        """
        from codebatch.operations.comparison.revisions import find_revision

        batch_query.check_reference(reference)
        revision = find_revision(self.store, reference, self.open_query, self._note, of_files=of_files)
        return self.open_batch(revision, partial=partial)

    def batches(self) -> Iterator[ListedBatch]:
        """Yield all batches, oldest first. A damaged batch is listed as DAMAGED."""
        from codebatch.operations.queries.batches import list_batches

        self.check_open()
        return list_batches(self._store, self._note)

    def check_open(self) -> None:
        """Raise InvalidInput if the store was closed."""
        if not self._is_open:
            raise InvalidInput(
                f"the store {self.root} is closed", hint="open the store again, or use it only inside its `with` block"
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


def open(
    path: str | Path | None = None, *, project: str | Path | None = None, note: NoteCallback | None = None
) -> Store:
    """Open the store at a path, by default the store of the project.

    - `project`: a directory of the project, by default the current directory. The default batch is the latest batch of
      the project.
    - `note`: a function that receives notes, for example about damaged batches that are skipped. By default, notes are
      issued as Python warnings.

    If no path is given, the store must have been created on this machine (SPEC.md "Threat model"). Raises InvalidInput,
    StoreNotFound, StoreUntrusted or StoreCorrupt.
    """
    return Store(stores.open_store(path, project), note or _warn)


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=2)
