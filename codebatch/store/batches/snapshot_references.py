"""Snapshots by reference."""

from __future__ import annotations

import os

from codebatch.errors import UnknownId, WrongBatchKind
from codebatch.model.entry import display_path
from codebatch.model.work.work_batch import WORK_LISTING
from codebatch.store.batches.resolution import iter_project_batches
from codebatch.store.batches.store import StoreDir
from codebatch.store.ids import PassedOver, latest_offset, resolve_prefix
from codebatch.store.snapshots.snapshots import Snapshot, SnapshotDocument, list_snapshots, load_snapshot, snapshot_ids


def resolve_snapshot(store: StoreDir, reference: str, passed_over: PassedOver | None = None) -> Snapshot:
    """The snapshot that an id, a unique prefix or `latest` names. Raises InvalidId, UnknownId or AmbiguousId.

    `latest` is the one first taken last of those of the current project that can be read; `latest~N` counts back from
    it. A work list is none of these: it is WrongBatchKind where it is named. Raises StoreCorrupt where the one that is
    named
    cannot be read.
    """
    offset = latest_offset(reference)
    if offset is None:
        found = resolve_prefix(reference, snapshot_ids(store.files, store.root), noun="snapshot", prefix="snap-")
        snapshot = load_snapshot(store.files, store.root, found)
        if _is_work_list(snapshot.document):
            raise WrongBatchKind(
                f"{found} is a task list, not a snapshot of files",
                hint="list the batches that run task lists with: codebatch batch list --pipeline work",
            )
        return snapshot
    known = list_snapshots(store.files, store.root, passed_over)
    readable = _of_project(store, [one for one in known if not _is_work_list(one)])
    ordered = sorted(readable, key=lambda one: (one.created_at, one.snapshot_id), reverse=True)
    if not known and (names := snapshot_ids(store.files, store.root)):
        return load_snapshot(store.files, store.root, names[-1])
    if offset >= len(ordered):
        root = "" if store.project is None else display_path(store.project.root)
        where = f"of project {root} in the store {store.root}" if root else "in this store"
        hint = "take one with: codebatch snapshot DIR; or list all with: codebatch snapshot list"
        raise UnknownId(f"no snapshot {reference} {where}", hint=hint)
    return load_snapshot(store.files, store.root, ordered[offset].snapshot_id)


def _of_project(store: StoreDir, known: list[SnapshotDocument]) -> list[SnapshotDocument]:
    """Return the snapshots that were taken in the current project, or that a batch of it is of.

    Equal trees have one snapshot, which says where it was taken first.
    """
    if store.project is None:
        return known
    project = store.project
    used = {batch.about.snapshot_id for batch in iter_project_batches(store)}
    return [
        one
        for one in known
        if one.snapshot_id in used or any(project.has_source(os.fsencode(root)) for root in one.source.roots)
    ]


def _is_work_list(document: SnapshotDocument) -> bool:
    return document.source.listing == WORK_LISTING
