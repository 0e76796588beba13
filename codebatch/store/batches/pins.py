"""Pins: batches and snapshots that are kept until they are unpinned. Each pin is an empty file `pins/<id>`.

The name of a batch is a pin too: the file `pins/<id>@<name>`. A single rename(2) moves a name to another batch, so the
name belongs to a batch at all times.
"""

from __future__ import annotations

from codebatch.errors import AmbiguousId, UnknownId
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BATCH_ID_PATTERN, BatchId, batch_ids, check_name, read_batch_names
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.ids import SkipCallback, latest_offset, resolve_prefix
from codebatch.store.snapshots.snapshots import snapshot_ids


def pinned_ids(store: StoreDir) -> list[str]:
    """Return the IDs of all pinned batches and snapshots, sorted. They may no longer exist."""
    names = store.files.listing(store.root / layout.PINS)
    return [name for name in names if BATCH_ID_PATTERN.match(name) or layout.SNAPSHOT_ID_PATTERN.match(name)]


def pin_reference(store: StoreDir, reference: str, on_skipped: SkipCallback | None = None) -> str:
    """Pin the batch or snapshot that a reference names, and return its ID. On return the pin is on disk.

    Pinning again has no effect. The caller holds the shared lock of the store. Raises InvalidId, UnknownId or
    AmbiguousId.
    """
    if latest_offset(reference) is not None or reference.startswith("@"):
        pinned = str(resolve_batch(store, reference, on_skipped).id)
    else:
        pinned = _resolve_pin(reference, batch_ids(store), snapshot_ids(store.files, store.root))
    store.files.write_atomic(store.root / layout.PINS / pinned, b"")
    return pinned


def protected_ids(store: StoreDir) -> set[str]:
    """Return the IDs that are pinned or have a name. They may no longer exist."""
    return {*pinned_ids(store), *read_batch_names(store).values()}


def assign_name(store: StoreDir, batch_id: BatchId, name: str) -> BatchId | None:
    """Give a batch a name. Return the other batch that had the name before, or None. On return the name is on disk.

    The caller holds the shared lock of the store. Raises InvalidId.
    """
    check_name(name)
    pins = store.root / layout.PINS
    with store.making_batch():
        before = read_batch_names(store).get(name)
        if before is None:
            store.files.write_atomic(pins / f"{batch_id}@{name}", b"")
        elif before != batch_id:
            store.files.replace(pins / f"{before}@{name}", pins / f"{batch_id}@{name}")
            store.files.sync_directory(pins)
            return before
    return None


def unpin_reference(store: StoreDir, reference: str, on_skipped: SkipCallback | None = None) -> str:
    """Remove a pin. Given `@NAME`, remove this name instead. Return the ID that was pinned, or `@NAME`.

    On return the removal is on disk. Raises InvalidId, UnknownId or AmbiguousId.
    """
    if reference.startswith("@"):
        return _remove_name(store, reference)
    all_pinned = pinned_ids(store)
    if latest_offset(reference) is not None:
        reference = resolve_batch(store, reference, on_skipped).id
    batches = [name for name in all_pinned if BATCH_ID_PATTERN.match(name)]
    try:
        pinned = _resolve_pin(reference, batches, [name for name in all_pinned if name not in batches])
    except UnknownId as error:
        raise UnknownId(f"{reference!r} is not pinned", hint="see: codebatch store-stats") from error
    store.files.remove(store.root / layout.PINS / pinned)
    store.files.sync_directory(store.root / layout.PINS)
    return pinned


def _remove_name(store: StoreDir, reference: str) -> str:
    name = reference[1:]
    check_name(name)
    with store.making_batch():
        batch_id = read_batch_names(store).get(name)
        if batch_id is None:
            raise UnknownId(f"no batch is named {reference}", hint="see: codebatch batch list")
        store.files.remove(store.root / layout.PINS / f"{batch_id}@{name}")
        store.files.sync_directory(store.root / layout.PINS)
    return reference


def _resolve_pin(reference: str, batches: list[str], snapshots: list[str]) -> str:
    matches = []
    for noun, ids, prefix in (("batch", batches, "batch-"), ("snapshot", snapshots, "snap-")):
        try:
            matches.append(resolve_prefix(reference, ids, noun=noun, prefix=prefix))
        except UnknownId:
            continue
    if not matches:
        raise UnknownId(
            f"no batch or snapshot {reference!r} in this store",
            hint="see: codebatch batch list; codebatch snapshot list",
        )
    if len(matches) > 1:
        raise AmbiguousId(f"{reference!r} matches a batch and a snapshot", hint=f"one of: {', '.join(matches)}")
    return matches[0]
