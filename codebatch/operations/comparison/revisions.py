"""Revisions: the batches, snapshots and git commits that a comparison can name (SPEC.md "Comparison").

If a reference names one batch or one snapshot of the store, that batch or snapshot is used. Otherwise, the commit to
which git resolves the reference in the current directory is used. If both exist, a note names the commit that was not
chosen.

References are never passed to git as options or ranges. Text that starts with a dash, or that does not resolve to one
commit, is refused.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import NamedTuple

from codebatch.errors import AmbiguousId, InvalidId, NotInStore, UnknownId
from codebatch.git.ancestry import Repository
from codebatch.model.digest import Digest
from codebatch.operations import NoteCallback
from codebatch.operations.history.checkouts import find_source_repository
from codebatch.operations.queries.batch_query import BatchQuery
from codebatch.query.sources.records import BatchRecords
from codebatch.query.sources.sources import EmptySource
from codebatch.snapshotting.staleness import find_stat_cache
from codebatch.store.batches.batch_directory import BatchDir, BatchFile, BatchId, iter_batches
from codebatch.store.batches.snapshot_references import resolve_snapshot
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.snapshots.snapshots import Snapshot

_SNAPSHOT_PREFIX = "snap-"
_REFERENCE_SHOWN_MAX = 80


class NamedCommit(NamedTuple):
    """A commit that a reference names. `name` is the reference as given, `id` the full hash.

    `description` says what the commit is, such as "the merge base with origin/main". It is empty for given references.
    """

    name: str
    id: str
    description: str = ""

    @property
    def label(self) -> str:
        """The commit in display form: `HEAD~3 (commit 1a2b3c4d5e6f)`."""
        short = f"commit {self.id[:12]}"
        if self.description:
            return f"{short}, {self.description}"
        return short if self.id.startswith(self.name) else f"{self.name} ({short})"


OpenQuery = Callable[[str], BatchQuery]
"""A function that returns the query of a batch for its reference, as `Store.batch` does."""


def find_revision(
    store: StoreDir, reference: str, ask: OpenQuery, note: NoteCallback, *, of_files: bool = False
) -> BatchQuery:
    """Return the batch that a reference names. For a snapshot or a commit, return its latest batch.

    Batches with uncommitted changes do not count as batches of a commit. Nothing is analysed: a commit without a batch
    raises UnknownId. With `of_files`, a snapshot needs no batch. The result then has the ID of the snapshot and no
    tasks. Raises the errors of `Store.batch`.
    """
    revision = name_revision(store, reference, ask, note, of_files=of_files)
    if isinstance(revision, BatchQuery):
        return revision
    batch = find_commit_batch(store, revision)
    if batch is None:
        hint = f"to analyse the commit, run this command in the git work tree: codebatch diff {revision.id[:12]} latest"
        raise UnknownId(f"no batch of {revision.label}", hint=hint)
    return ask(batch.id)


def name_revision(
    store: StoreDir, reference: str, ask: OpenQuery, note: NoteCallback, *, of_files: bool = False
) -> BatchQuery | NamedCommit:
    """Return the batch that a reference names, otherwise the commit that it names.

    Raises the errors of `Store.batch`.
    """
    repository = _user_repository(store)
    commit_id = None if repository is None else repository.find(reference)
    names_snapshot = reference.startswith(_SNAPSHOT_PREFIX)
    try:
        if names_snapshot:
            query = _open_snapshot_query(store, reference, ask, note, of_files=of_files)
        else:
            query = ask(reference)
    except (InvalidId, UnknownId, AmbiguousId) as error:
        if commit_id is not None:
            return NamedCommit(reference, commit_id)
        if repository is None or names_snapshot or not isinstance(error, InvalidId | NotInStore):
            raise
        raise _unknown_revision(reference, repository, error) from error
    if commit_id is not None:
        note(f"{reference} refers to a batch and to a git commit ({commit_id[:12]}); using batch {query.batch.id}")
    return query


def find_commit_batch(store: StoreDir, commit: NamedCommit, head: BatchDir | None = None) -> BatchDir | None:
    """Return the latest batch of a commit without uncommitted changes, or None.

    If `head` is given, the batch has the scope of `head`. Otherwise, it may be of any source directory.
    """
    batches = (batch for batch in iter_batches(store) if batch.about.is_clean and batch.about.commit == commit.id)
    return next((batch for batch in batches if head is None or has_clean_scope(batch.about, head.about)), None)


def has_clean_scope(batch: BatchFile, head: BatchFile) -> bool:
    """Return whether `batch` is clean and has the scope of `head`, so its commit determines its files.

    The scope is the same if the restricting paths are equal, and the sources are equal or have the same path below the
    tops of their work trees. The work trees may differ, because all clones have the same files of a commit.
    """
    if not batch.is_clean or batch.paths != head.paths:
        return False
    directories = [about.place and about.place.directory for about in (batch, head)]
    return batch.sources == head.sources or (directories[0] is not None and directories[0] == directories[1])


def _open_snapshot_query(
    store: StoreDir, reference: str, ask: OpenQuery, note: NoteCallback, *, of_files: bool
) -> BatchQuery:
    snapshot = resolve_snapshot(store, reference)
    batches = (batch for batch in iter_batches(store, kind="any") if batch.about.snapshot_id == snapshot.id)
    batch = next(batches, None)
    if batch is not None:
        return ask(batch.id)
    if of_files:
        return _query_without_batch(store, snapshot, note)
    hint = "a snapshot without a batch can be compared only with --kind file; list batches with: codebatch batch list"
    raise UnknownId(f"no batch of the snapshot {snapshot.id}", hint=hint)


def _query_without_batch(store: StoreDir, snapshot: Snapshot, note: NoteCallback) -> BatchQuery:
    """Return a query of a placeholder batch over a snapshot. The placeholder has no tasks and is not stored."""
    document = snapshot.document
    about = BatchFile(
        batch_id=BatchId(snapshot.id),
        snapshot_id=snapshot.id,
        pipeline="",
        plan_digest=Digest(""),
        sources=tuple(sorted(map(os.fsencode, document.source.roots))),
        stat_cache=find_stat_cache(store.files, store.root, snapshot.id, document.source.base),
        created_at_ns=0,
        shards=0,
        items=document.files,
    )
    batch = BatchDir(store.files, store.batches / snapshot.id, about)
    question = BatchQuery(store, batch, is_named=True, note=note)
    question.records = BatchRecords(store, batch, source=EmptySource(str(store.root)))
    return question


def _user_repository(store: StoreDir) -> Repository | None:
    """Return the work tree of the user's directory, or None if there is none or git is missing."""
    with contextlib.suppress(FileNotFoundError):  # The current directory was removed.
        repository_and_directory = find_source_repository((os.path.abspath(os.fsencode(store.user_directory)),))
        return None if repository_and_directory is None else Repository(*repository_and_directory)
    return None


def _unknown_revision(reference: str, repository: Repository, error: InvalidId | NotInStore) -> InvalidId | UnknownId:
    """Return the error, with a hint, for a reference that names neither a batch nor a commit."""
    kind: type[InvalidId | UnknownId] = InvalidId if isinstance(error, InvalidId) else UnknownId
    hint = "list batches with: codebatch batch list; list commits with: git log --oneline"
    first, dots, second = reference.partition("..")
    if dots:
        ends = [end for end in (first, second.lstrip(".")) if end]
        hint = f"ranges of commits are not supported; give both ends as arguments: {' '.join(ends)}"
    elif repository.is_shallow:
        hint = f"{hint}; this clone is shallow, fetch more commits with: git fetch --unshallow"
    return kind(f"no batch or commit {reference[:_REFERENCE_SHOWN_MAX]!r}", hint=hint)
