"""Resolution of references to snapshots."""

from __future__ import annotations

import os

from codebatch.errors import UnknownId, WrongBatchKind
from codebatch.model.entry import display_path
from codebatch.model.work.work_batch import WORK_LISTING
from codebatch.store.batches.resolution import iter_project_batches
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.ids import SkipCallback, latest_offset, resolve_prefix
from codebatch.store.snapshots.snapshots import Snapshot, SnapshotDocument, list_snapshots, load_snapshot, snapshot_ids


def resolve_snapshot(store: StoreDir, reference: str, on_skipped: SkipCallback | None = None) -> Snapshot:
    """Return the snapshot that an ID, a unique prefix or `latest` names.

    Snapshots are ordered by the time at which they were first taken. `latest` is the last readable one of the current
    project, and `latest~N` the Nth before it. Snapshots of task lists are not counted. Raises InvalidId, UnknownId or
    AmbiguousId; WrongBatchKind if the reference names the snapshot of a task list; StoreCorrupt if the named snapshot
    cannot be read.
    """
    offset = latest_offset(reference)
    if offset is None:
        snapshot_id = resolve_prefix(reference, snapshot_ids(store.files, store.root), noun="snapshot", prefix="snap-")
        snapshot = load_snapshot(store.files, store.root, snapshot_id)
        if _is_work_list(snapshot.document):
            raise WrongBatchKind(
                f"{snapshot_id} is a task list, not a snapshot of files",
                hint="list the batches that run task lists with: codebatch batch list --pipeline work",
            )
        return snapshot
    documents = list_snapshots(store.files, store.root, on_skipped)
    readable = _current_project_snapshots(store, [document for document in documents if not _is_work_list(document)])
    ordered = sorted(readable, key=lambda document: (document.created_at, document.snapshot_id), reverse=True)
    if not documents and (names := snapshot_ids(store.files, store.root)):
        return load_snapshot(store.files, store.root, names[-1])
    if offset >= len(ordered):
        root = "" if store.project is None else display_path(store.project.root)
        where = f"of project {root} in the store {store.root}" if root else "in this store"
        hint = "take one with: codebatch snapshot DIR; or list all with: codebatch snapshot list"
        raise UnknownId(f"no snapshot {reference} {where}", hint=hint)
    return load_snapshot(store.files, store.root, ordered[offset].snapshot_id)


def _current_project_snapshots(store: StoreDir, documents: list[SnapshotDocument]) -> list[SnapshotDocument]:
    """Return the snapshots that were taken in the current project or are used by a batch of it.

    Equal trees share one snapshot, which records only the source of the first tree. So the batches of the project must
    be searched too.
    """
    if store.project is None:
        return documents
    project = store.project
    used = {batch.about.snapshot_id for batch in iter_project_batches(store)}
    return [
        document
        for document in documents
        if document.snapshot_id in used or any(project.has_source(os.fsencode(root)) for root in document.source.roots)
    ]


def _is_work_list(document: SnapshotDocument) -> bool:
    return document.source.listing == WORK_LISTING
