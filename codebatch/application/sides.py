"""The sides of a comparison, by what names them: a batch, a snapshot, or a git commit (SPEC.md "Comparison").

A reference that names one batch or one snapshot of the store is that batch or snapshot. Otherwise it is the commit that
git resolves it to in the current directory. If both hold, a note names the commit that was not chosen. A reference is
never an option or a range for git: what begins with a dash is refused, and what does not resolve to one commit too.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from codebatch.application.asking import Question
from codebatch.application.checkouts import repository_of
from codebatch.application.opened_batch import Batch
from codebatch.errors import AmbiguousId, InvalidId, NotInStore, UnknownId
from codebatch.model.digest import Digest
from codebatch.query.records import BatchRecords
from codebatch.query.sources import Unasked
from codebatch.snapshotting.staleness import stat_cache_of
from codebatch.store.batches import BatchDir, BatchFile, BatchId, iter_batches
from codebatch.store.references import resolve_snapshot
from codebatch.store.snapshots import Snapshot
from codebatch.store.store import StoreDir
from codebatch.system.git_ancestry import Repository

if TYPE_CHECKING:
    from codebatch.application.opened import Store

_SNAPSHOT = "snap-"
_SHOWN_MAX = 80


class Commit(NamedTuple):
    """A commit that a side names. `name` is the reference as it was given, `id` the full hash."""

    name: str
    id: str

    @property
    def label(self) -> str:
        """The commit for people: `HEAD~3 (commit 1a2b3c4d5e6f)`."""
        short = f"commit {self.id[:12]}"
        return short if self.id.startswith(self.name) else f"{self.name} ({short})"


RunCommit = Callable[[StoreDir, BatchDir, Commit], BatchDir]
"""Returns the finished batch of a commit. If there is none, runs the commit's tree under the tasks of another batch."""


def find_side(opened: Store, reference: str, *, partial: bool = False, of_files: bool = False) -> Batch:
    """Return the batch that a reference names. Of a snapshot, and of a commit, that is the latest batch over it.

    A batch whose tree was not just that of its commit never stands for the commit. Nothing is run: a commit without a
    batch is UnknownId. `of_files`: a snapshot without a batch will do; its side has the id of the snapshot and no task.
    Raises what `Store.batch` does.
    """
    side = name_side(opened, reference, partial=partial, of_files=of_files)
    if isinstance(side, Batch):
        return side
    found = find_batch_of(opened.store, side)
    if found is None:
        hint = f"to analyse the commit, run this command in the git work tree: codebatch diff {side.id[:12]} latest"
        raise UnknownId(f"no batch of {side.label}", hint=hint)
    return opened.batch(found.id, partial=partial)


def name_side(opened: Store, reference: str, *, partial: bool = False, of_files: bool = False) -> Batch | Commit:
    """Return the batch that a reference names, otherwise the commit. Raises what `Store.batch` does."""
    repository = _repository_here()
    commit_id = None if repository is None else repository.find(reference)
    is_of_snapshot = reference.startswith(_SNAPSHOT)
    try:
        if is_of_snapshot:
            found = _of_snapshot(opened, reference, partial=partial, of_files=of_files)
        else:
            found = opened.batch(reference, partial=partial)
    except (InvalidId, UnknownId, AmbiguousId) as error:
        if commit_id is not None:
            return Commit(reference, commit_id)
        if repository is None or is_of_snapshot or not isinstance(error, InvalidId | NotInStore):
            raise
        raise _named_nothing(reference, repository, error) from error
    if commit_id is not None:
        opened.note(f"using batch {found.id} for {reference}, which is also a git commit ({commit_id[:12]})")
    return found


def find_sides(
    opened: Store,
    old: str | None,
    new: str | None,
    run_commit: RunCommit,
    *,
    base: Store | None = None,
    of_files: bool = False,
) -> tuple[Batch, Batch]:
    """Return the older and the newer batch of a comparison, each open in part.

    None stands for `latest~1` and `latest`. A commit is run under the tasks of the other side. If both sides are
    commits, the newer one is run under the tasks of the latest batch, and the older one under those of the newer one.
    If `base` is given, the older side is found in that store, by default its `latest`, and never run. Raises what
    `find_side` and `run_commit` raise.
    """

    def name(reference: str | None, default: str) -> Batch | Commit:
        if reference is None:
            return opened.batch(default, partial=True)
        return name_side(opened, reference, partial=True, of_files=of_files)

    if base is None:
        older = name(old, "latest~1")
    else:
        older = base.side("latest" if old is None else old, partial=True, of_files=of_files)
    newer = name(new, "latest")
    if isinstance(newer, Commit):
        newer = open_commit(opened, newer, _head_for(opened, older if base is None else None), run_commit)
    if isinstance(older, Commit):
        older = open_commit(opened, older, _head_for(opened, newer), run_commit)
    return older, newer


def open_commit(opened: Store, commit: Commit, head: BatchDir, run_commit: RunCommit) -> Batch:
    """Return the batch of a commit in the place of `head`. It is open in part. Raises what `run_commit` raises."""
    return opened.batch(run_commit(opened.store, head, commit).id, partial=True)


def find_batch_of(store: StoreDir, commit: Commit) -> BatchDir | None:
    """Return the latest batch of just a commit's tree, wherever it was run; None if there is none."""
    return next((each for each in iter_batches(store) if each.about.is_clean and each.about.commit == commit.id), None)


def _head_for(opened: Store, side: Batch | Commit | None) -> BatchDir:
    """Return the batch under whose tasks a commit is run: the other side, or the latest batch if that has no tasks."""
    if isinstance(side, Batch) and side.question.batch.about.pipeline:
        return side.question.batch
    return opened.batch(partial=True).question.batch


def _of_snapshot(opened: Store, reference: str, *, partial: bool, of_files: bool) -> Batch:
    store = opened.store
    snapshot = resolve_snapshot(store, reference)
    of_it = (batch for batch in iter_batches(store, kind="any") if batch.about.snapshot_id == snapshot.id)
    found = next(of_it, None)
    if found is not None:
        return opened.batch(found.id, partial=partial)
    if of_files:
        return _of_tree(opened, snapshot, partial=partial)
    hint = "a snapshot without a batch can be compared only with --kind file; list batches with: codebatch batch list"
    raise UnknownId(f"no batch of the snapshot {snapshot.id}", hint=hint)


def _of_tree(opened: Store, snapshot: Snapshot, *, partial: bool) -> Batch:
    """Return a batch over a snapshot that is not in the store and has no task."""
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
    batch = BatchDir(store.files, store.batches / snapshot.id, about)
    question = Question(store, batch, is_named=True, note=opened.note)
    question.records = BatchRecords(store, batch, source=Unasked(str(store.root)))
    return Batch(question, opened.check_open, partial=partial)


def _repository_here() -> Repository | None:
    """Return the work tree that the current directory is in, None if there is none, or no git."""
    with contextlib.suppress(FileNotFoundError):  # The current directory was removed.
        found = repository_of((os.getcwdb(),))
        return None if found is None else Repository(*found)
    return None


def _named_nothing(reference: str, repository: Repository, error: InvalidId | NotInStore) -> InvalidId | UnknownId:
    """Return the error for a reference that names no batch and no commit, with what to do next."""
    kind: type[InvalidId | UnknownId] = InvalidId if isinstance(error, InvalidId) else UnknownId
    hint = "list batches with: codebatch batch list; list commits with: git log --oneline"
    first, dots, second = reference.partition("..")
    if dots:
        ends = [end for end in (first, second.lstrip(".")) if end]
        hint = f"ranges of commits are not supported; give both ends as arguments: {' '.join(ends)}"
    elif repository.is_shallow:
        hint = f"{hint}; this clone is shallow, fetch more commits with: git fetch --unshallow"
    return kind(f"no batch or commit {reference[:_SHOWN_MAX]!r}", hint=hint)
