"""Snapshots by reference."""

from __future__ import annotations

from codebatch.errors import UnknownId
from codebatch.store.ids import PassedOver, latest_offset, resolve_prefix
from codebatch.store.snapshots import Snapshot, list_snapshots, load_snapshot, snapshot_ids
from codebatch.store.store import Store


def resolve_snapshot(store: Store, reference: str, passed_over: PassedOver | None = None) -> Snapshot:
    """The snapshot that an id, a unique prefix or `latest` names. Raises InvalidId, UnknownId or AmbiguousId.

    `latest` is the one first taken last of those that can be read; `latest~N` counts back from it. Raises StoreCorrupt
    where the one that is named cannot be read.
    """
    offset = latest_offset(reference)
    if offset is None:
        known = snapshot_ids(store.files, store.root)
        found = resolve_prefix(reference, known, noun="snapshot", prefix="snap-")
        return load_snapshot(store.files, store.root, found)
    readable = list_snapshots(store.files, store.root, passed_over)
    ordered = sorted(readable, key=lambda one: (one.created_at, one.snapshot_id), reverse=True)
    if not ordered and (known := snapshot_ids(store.files, store.root)):
        return load_snapshot(store.files, store.root, known[-1])
    if offset >= len(ordered):
        raise UnknownId(f"there is no snapshot {reference} in this store", hint="take one with: codebatch snapshot DIR")
    return load_snapshot(store.files, store.root, ordered[offset].snapshot_id)
