"""Snapshots by reference."""

from __future__ import annotations

from codebatch.errors import UnknownId, WrongKind
from codebatch.model.work import WORK_LISTING
from codebatch.store.ids import PassedOver, latest_offset, resolve_prefix
from codebatch.store.snapshots import Snapshot, SnapshotDocument, list_snapshots, load_snapshot, snapshot_ids
from codebatch.store.store import Store


def resolve_snapshot(store: Store, reference: str, passed_over: PassedOver | None = None) -> Snapshot:
    """The snapshot that an id, a unique prefix or `latest` names. Raises InvalidId, UnknownId or AmbiguousId.

    `latest` is the one first taken last of those that can be read; `latest~N` counts back from it. A work list is none
    of these: it is WrongKind where it is named. Raises StoreCorrupt where the one that is named cannot be read.
    """
    offset = latest_offset(reference)
    if offset is None:
        found = resolve_prefix(reference, snapshot_ids(store.files, store.root), noun="snapshot", prefix="snap-")
        snapshot = load_snapshot(store.files, store.root, found)
        if _is_work_list(snapshot.document):
            raise WrongKind(
                f"{found} is a list of commands, and no tree",
                hint="see what runs them with: codebatch batch list --pipeline work",
            )
        return snapshot
    known = list_snapshots(store.files, store.root, passed_over)
    readable = [one for one in known if not _is_work_list(one)]
    ordered = sorted(readable, key=lambda one: (one.created_at, one.snapshot_id), reverse=True)
    if not known and (names := snapshot_ids(store.files, store.root)):
        return load_snapshot(store.files, store.root, names[-1])
    if offset >= len(ordered):
        raise UnknownId(f"there is no snapshot {reference} in this store", hint="take one with: codebatch snapshot DIR")
    return load_snapshot(store.files, store.root, ordered[offset].snapshot_id)


def _is_work_list(document: SnapshotDocument) -> bool:
    return document.source.listing == WORK_LISTING
