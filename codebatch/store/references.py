"""Snapshots by reference."""

from __future__ import annotations

from codebatch.errors import UnknownId
from codebatch.store.ids import latest_offset, resolve_prefix
from codebatch.store.snapshots import Snapshot, list_snapshots, load_snapshot
from codebatch.store.store import Store


def resolve_snapshot(store: Store, reference: str) -> Snapshot:
    """The snapshot that an id, a unique prefix or `latest` names. Raises InvalidId, UnknownId or AmbiguousId.

    `latest` is the one first taken last; `latest~N` counts back from it.
    """
    known = list_snapshots(store.files, store.root)
    offset = latest_offset(reference)
    if offset is None:
        found = resolve_prefix(reference, [one.snapshot_id for one in known], noun="snapshot", prefix="snap-")
        return load_snapshot(store.files, store.root, found)
    ordered = sorted(known, key=lambda one: (one.created_at, one.snapshot_id), reverse=True)
    if offset >= len(ordered):
        raise UnknownId(f"there is no snapshot {reference} in this store", hint="take one with: codebatch snapshot DIR")
    return load_snapshot(store.files, store.root, ordered[offset].snapshot_id)
