"""What can be compared is named by: a batch, a snapshot, or a commit, of which the latest batch is meant."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from codebatch.application.asking import Question
from codebatch.application.checkouts import repository_of
from codebatch.application.opened_batch import OpenedBatch
from codebatch.errors import InvalidId, InvalidInput, UnknownId
from codebatch.model.digest import Digest
from codebatch.query.records import BatchRecords
from codebatch.query.sources import Unasked
from codebatch.snapshotting.staleness import stat_cache_of
from codebatch.store.batches import Batch, BatchFile, BatchId, iter_batches
from codebatch.store.references import resolve_snapshot
from codebatch.store.snapshots import Snapshot
from codebatch.system.git import GitError, ask_git

if TYPE_CHECKING:
    from codebatch.application.opened import OpenedStore

_SNAPSHOT = "snap-"
_ASKED_SECONDS = 10.0


def find_side(store: OpenedStore, reference: str, *, partial: bool = False, of_files: bool = False) -> OpenedBatch:
    """The batch that is meant: by what names batches, by its snapshot, or by what git calls its commit.

    Of a snapshot, and of a commit, it is the latest one; a tree that was not that of its commit alone never stands for
    it. Git is asked in the current directory. `of_files`: a snapshot without a batch will do, which is one without a
    task then, of the snapshot's id. Raises what `OpenedStore.batch` does.
    """
    if reference.startswith(_SNAPSHOT):
        return _of_snapshot(store, reference, partial=partial, of_files=of_files)
    try:
        return store.batch(reference, partial=partial)
    except (InvalidId, UnknownId) as error:
        commit = _commit(reference)
        if commit is None:
            raise
        return _of_commit(store, reference, commit, error, partial=partial)


def _of_snapshot(opened: OpenedStore, reference: str, *, partial: bool, of_files: bool) -> OpenedBatch:
    store = opened.store
    snapshot = resolve_snapshot(store, reference)
    found = _latest(batch for batch in iter_batches(store, kind="any") if batch.about.snapshot_id == snapshot.id)
    if found is not None:
        return opened.batch(found.id, partial=partial)
    if of_files:
        return _of_tree(opened, snapshot, partial=partial)
    hint = "its files alone can be compared: --kind file; or see: codebatch batch list"
    raise UnknownId(f"there is no batch over the snapshot {snapshot.id}", hint=hint)


def _of_tree(opened: OpenedStore, snapshot: Snapshot, *, partial: bool) -> OpenedBatch:
    """What a batch over a snapshot would be that no task has looked at. It is not in the store."""
    store, document = opened.store, snapshot.document
    about = BatchFile(
        batch_id=BatchId(snapshot.id),
        snapshot_id=snapshot.id,
        pipeline="",
        plan_digest=Digest(""),
        sources=tuple(sorted(map(os.fsencode, document.source.roots))),
        stat_cache=stat_cache_of(store.files, store.root, snapshot.id, document.source.base),
        created_at_ns=0,
        shards=0,
        items=document.files,
    )
    batch = Batch(store.files, store.batches / snapshot.id, about)
    question = Question(store, batch, is_named=True, note=opened.note)
    question.records = BatchRecords(store, batch, source=Unasked(str(store.root)))
    return OpenedBatch(question, opened.check_open, partial=partial)


def _of_commit(opened: OpenedStore, reference: str, commit: str, error: InvalidInput, *, partial: bool) -> OpenedBatch:
    of_it = [batch for batch in iter_batches(opened.store) if batch.about.commit == commit]
    found = _latest(batch for batch in of_it if batch.about.is_clean)
    if found is not None:
        return opened.batch(found.id, partial=partial)
    told = f"there is no batch of {reference}, which is the commit {commit[:12]}"
    if of_it:
        told += f": in the tree of {of_it[0].id} something was changed since"
    hint = f"check it out and run it: git checkout {commit[:12]} && codebatch run ."
    raise UnknownId(told, hint=hint) from error


def _latest(batches: Iterable[Batch]) -> Batch | None:
    """The first of some batches, which are those of a store, latest first."""
    return next(iter(batches), None)


def _commit(reference: str) -> str | None:
    """The commit that git calls so where we are; None where there is none, or no git."""
    found = repository_of((os.getcwdb(),))
    if found is None or not reference.isprintable() or reference.startswith("-"):
        return None
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{reference}^{{commit}}")
    try:
        return ask_git(*found, words, _ASKED_SECONDS, is_top=False).decode("ascii").strip()
    except (GitError, UnicodeError):
        return None
