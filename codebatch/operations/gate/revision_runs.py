"""Resolution of revisions to batches. Commits without a batch are analysed."""

from __future__ import annotations

from collections.abc import Callable

from codebatch.operations.api.batch import Batch
from codebatch.operations.api.store import Store
from codebatch.operations.comparison import revisions
from codebatch.operations.comparison.revisions import NamedCommit
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir

CommitRunner = Callable[[StoreDir, BatchDir, NamedCommit], BatchDir]
"""A function that returns the finished batch of a commit. Parameters: a store, a batch, the commit.

If the commit has no batch, its tree is analysed with the tasks of the given batch.
"""


def name_revision(opened: Store, reference: str, *, of_files: bool = False) -> Batch | NamedCommit:
    """Return the batch that a reference names. If it names no batch, return the commit that it names.

    The batch is opened with `partial`. Raises the errors of `Store.batch`.
    """
    batch_or_commit = revisions.name_revision(
        opened.store, reference, opened.open_query, opened.note, of_files=of_files
    )
    return (
        opened.open_batch(batch_or_commit, partial=True) if isinstance(batch_or_commit, BatchQuery) else batch_or_commit
    )


def find_revisions(
    opened: Store,
    old: str | None,
    new: str | None,
    run_commit: CommitRunner,
    *,
    base: Store | None = None,
    of_files: bool = False,
) -> tuple[Batch, Batch]:
    """Return the older and the newer batch of a comparison, both opened with `partial`.

    The defaults are `latest~1` and `latest`. If one side is a commit, it is analysed with the tasks of the other side.
    If both sides are commits, the newer one is analysed with the tasks of the latest batch. The older one is then
    analysed with the same tasks.

    If `base` is given, the older side is searched in that store and never analysed. Its default is `latest`. Raises the
    errors of `Store.side` and `run_commit`.
    """

    def name(reference: str | None, default: str) -> Batch | NamedCommit:
        if reference is None:
            return opened.batch(default, partial=True)
        return name_revision(opened, reference, of_files=of_files)

    if base is None:
        older = name(old, "latest~1")
    else:
        older = base.side("latest" if old is None else old, partial=True, of_files=of_files)
    newer = name(new, "latest")
    if isinstance(newer, NamedCommit):
        newer = open_commit(opened, newer, _head_for(opened, older if base is None else None), run_commit)
    if isinstance(older, NamedCommit):
        older = open_commit(opened, older, _head_for(opened, newer), run_commit)
    return older, newer


def open_commit(opened: Store, commit: NamedCommit, head: BatchDir, run_commit: CommitRunner) -> Batch:
    """Return the batch of a commit with the sources and paths of `head`, opened with `partial`.

    If there is none, `run_commit` makes it. Raises the errors of `run_commit`.
    """
    return opened.batch(run_commit(opened.store, head, commit).id, partial=True)


def _head_for(opened: Store, side: Batch | NamedCommit | None) -> BatchDir:
    """Return the batch whose tasks are used to analyse one side of a comparison, a commit. `side` is the other side.

    This batch is `side`. If `side` is a commit or a snapshot without tasks, it is the latest batch.
    """
    if isinstance(side, Batch) and side.question.batch.about.pipeline:
        return side.question.batch
    return opened.batch(partial=True).question.batch
